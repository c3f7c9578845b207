module partilha.dev/services/goals

go 1.26

require partilha.dev/pkg v0.0.0

replace partilha.dev/pkg => ../../pkg
