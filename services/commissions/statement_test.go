package commissions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestEveryStatementFitsTheSchema(t *testing.T) {
	f := prepare(t, nowhere)
	conn, err := f.deps.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	statements := sqlConstants(t)
	if len(statements) == 0 {
		t.Fatal("there is no statement")
	}
	for name, text := range statements {
		if _, err := conn.Conn().Prepare(t.Context(), name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sqlConstants are the package's constants whose name ends in Query or Statement.
func sqlConstants(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]ast.Expr{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
				for i, name := range spec.Names {
					written[name.Name] = spec.Values[i]
				}
			}
			return true
		})
	}
	found := map[string]string{}
	for name, value := range written {
		if strings.HasSuffix(name, "Query") || strings.HasSuffix(name, "Statement") {
			found[name] = textOf(t, value, written)
		}
	}
	return found
}

// textOf is the value of a constant that is made of literals and other constants.
func textOf(t *testing.T, value ast.Expr, constants map[string]ast.Expr) string {
	t.Helper()
	switch v := value.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(v.Value)
		if err != nil {
			t.Fatal(err)
		}
		return text
	case *ast.BinaryExpr:
		return textOf(t, v.X, constants) + textOf(t, v.Y, constants)
	case *ast.Ident:
		return textOf(t, constants[v.Name], constants)
	default:
		t.Fatalf("a constant is made of a %T", value)
		return ""
	}
}
