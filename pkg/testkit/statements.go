package testkit

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

	"partilha.dev/pkg/postgres"
)

// PrepareStatements has PostgreSQL prepare, on a new database of these schemas, every
// constant of the tested package whose name ends in Query or Statement: a statement
// that does not fit the schema fails here and not at the first customer who needs it.
// It fails as well if it finds fewer than so many.
func PrepareStatements(t testing.TB, least int, schemas ...postgres.Schema) {
	t.Helper()
	statements := statementsIn(t, ".")
	if len(statements) < least {
		t.Fatalf("only %d statements are found", len(statements))
	}
	conn, err := pgx.Connect(t.Context(), Database(t, schemas...))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for name, text := range statements {
		// Named arguments become numbered ones, as in a call.
		numbered, _, err := pgx.NamedArgs{}.RewriteQuery(t.Context(), conn, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Prepare(t.Context(), name, numbered); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// statementsIn returns the statements of the package in a folder by their names.
func statementsIn(t testing.TB, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]ast.Expr{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == len(spec.Names) {
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
			statements[name] = textOf(t, value, constants)
		}
	}
	return statements
}

// textOf is the value of a constant that is made of literals and other constants.
func textOf(t testing.TB, value ast.Expr, constants map[string]ast.Expr) string {
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
		t.Fatalf("a statement is made of a %T", value)
		return ""
	}
}
