package sales

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestEveryStatementFitsTheSchema(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	conn, err := f.deps.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	statements := sqlConstants(t)
	if len(statements) < 30 {
		t.Fatalf("only %d statements are found", len(statements))
	}
	for name, text := range statements {
		// Without arguments every named one is rewritten to a position, as in a call.
		numbered, _, err := pgx.NamedArgs{}.RewriteQuery(context.Background(), conn.Conn(), text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Conn().Prepare(t.Context(), name, numbered); err != nil {
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
