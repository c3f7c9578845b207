package goals

import (
	"testing"

	"partilha.dev/pkg/testkit"
)

func TestEveryStatementFitsTheSchema(t *testing.T) {
	t.Parallel()
	testkit.PrepareStatements(t, 30, Migrations...)
}
