package e2e

import (
	"testing"
	"time"

	"partilha.dev/pkg/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// patience is how long anything may take on a busy machine. It is longer than the half
// minute after which a message comes again that a killed process had taken.
const patience = 2 * time.Minute

// soon is how long may pass until something has reached every service while all is
// well. What is promised is a second or two; a busy machine gets more.
const soon = 20 * time.Second
