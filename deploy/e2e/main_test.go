package e2e

import (
	"testing"

	"partilha.dev/pkg/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// root is the folder of the whole project.
const root = "../.."
