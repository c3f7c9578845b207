package goals

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/testkit"
)

func TestEveryStatementFitsTheSchema(t *testing.T) {
	statements := statementsOf(t)
	if len(statements) < 10 {
		t.Fatalf("found only %d statements", len(statements))
	}
	conn, err := pgx.Connect(t.Context(), testkit.Database(t, Migrations...))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for name, text := range statements {
		if _, err := conn.Prepare(t.Context(), name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// statementsOf returns the package's string constants whose names end in Query or Statement.
func statementsOf(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]ast.Expr{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
				for i, name := range spec.Names {
					constants[name.Name] = spec.Values[i]
				}
			}
			return true
		})
	}
	statements := map[string]string{}
	for name, value := range constants {
		if strings.HasSuffix(name, "Query") || strings.HasSuffix(name, "Statement") {
			statements[name] = textOf(t, constants, value)
		}
	}
	return statements
}

func textOf(t *testing.T, constants map[string]ast.Expr, value ast.Expr) string {
	t.Helper()
	switch value := value.(type) {
	case *ast.BinaryExpr:
		return textOf(t, constants, value.X) + textOf(t, constants, value.Y)
	case *ast.Ident:
		return textOf(t, constants, constants[value.Name])
	case *ast.BasicLit:
		text, err := strconv.Unquote(value.Value)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	t.Fatalf("a statement is built in a way that this test does not know: %T", value)
	return ""
}
