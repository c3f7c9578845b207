package webhooks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestEveryStatementFitsTheSchema has PostgreSQL prepare every constant of the package
// whose name ends in Query or Statement.
func TestEveryStatementFitsTheSchema(t *testing.T) {
	t.Parallel()
	pool := newStack(t).pool
	statements := stringConstants(t)
	found := 0
	for name, sql := range statements {
		if !strings.HasSuffix(name, "Query") && !strings.HasSuffix(name, "Statement") {
			continue
		}
		found++
		conn, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Conn().Prepare(t.Context(), name, sql); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		conn.Release()
	}
	if found < 10 {
		t.Errorf("only %d statements were found", found)
	}
}

// stringConstants returns the package's constants that are made of text and each other.
func stringConstants(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	expressions := map[string]ast.Expr{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == len(spec.Names) {
				for i, name := range spec.Names {
					expressions[name.Name] = spec.Values[i]
				}
			}
			return true
		})
	}
	values := map[string]string{}
	for name, expression := range expressions {
		if text, ok := evaluate(expression, expressions); ok {
			values[name] = text
		}
	}
	return values
}

func evaluate(expression ast.Expr, known map[string]ast.Expr) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.Ident:
		inner, ok := known[e.Name]
		if !ok {
			return "", false
		}
		return evaluate(inner, known)
	case *ast.BinaryExpr:
		left, ok := evaluate(e.X, known)
		right, ok2 := evaluate(e.Y, known)
		return left + right, ok && ok2 && e.Op == token.ADD
	default:
		return "", false
	}
}
