package kubernetes

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// stores are the services that have a database, and programs all that run.
var (
	stores   = []string{"sales", "commissions", "goals", "webhooks"}
	programs = append(slices.Clone(stores), "front")
)

// readProject is a file of the project, by its path from the root.
func readProject(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parsed are the files that sources has read, by name.
var parsed sync.Map

// sources are the parsed Go files of some folders and files of the project, without tests.
func sources(t *testing.T, paths ...string) (files []*ast.File) {
	t.Helper()
	for _, path := range paths {
		names := []string{filepath.Join("..", "..", path)}
		if !strings.HasSuffix(path, ".go") {
			var err error
			if names, err = filepath.Glob(filepath.Join("..", "..", path, "*.go")); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, found := parsed.Load(name)
			if !found {
				var err error
				if file, err = parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution); err != nil {
					t.Fatal(err)
				}
				parsed.Store(name, file)
			}
			files = append(files, file.(*ast.File))
		}
	}
	if len(files) == 0 {
		t.Fatalf("there is no source in %q", paths)
	}
	return files
}

// variables are what a program's structs are filled from: the name of each variable in
// the environment, with the type of its member.
func variables(t *testing.T, program string) map[string]string {
	t.Helper()
	found := map[string]string{}
	paths := []string{"pkg/service", "services/" + program, "services/" + program + "/cmd/" + program}
	if program == "front" {
		paths = []string{"pkg/service/healthcheck.go", "deploy/local/cmd/front"}
	}
	eachVariable(t, paths, func(name, kind string, _ reflect.StructTag) { found[name] = kind })
	if found["ADDR"] == "" {
		t.Fatalf("%s reads only %v", program, found)
	}
	return found
}

// secretVariables are those that any of the services reads from a file, too.
func secretVariables(t *testing.T) (found []string) {
	t.Helper()
	paths := []string{"pkg/service"}
	for _, program := range programs {
		if program != "front" {
			paths = append(paths, "services/"+program)
		}
	}
	eachVariable(t, paths, func(name, _ string, tag reflect.StructTag) {
		if tag.Get("secret") == "true" {
			found = append(found, name)
		}
	})
	if len(found) < 5 {
		t.Fatalf("only %v are secret", found)
	}
	return found
}

// eachVariable visits the fields that are read from the environment.
func eachVariable(t *testing.T, paths []string, visit func(name, kind string, tag reflect.StructTag)) {
	t.Helper()
	for _, file := range sources(t, paths...) {
		ast.Inspect(file, func(node ast.Node) bool {
			field, ok := node.(*ast.Field)
			if !ok || field.Tag == nil {
				return true
			}
			tag, err := strconv.Unquote(field.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			if name, _, _ := strings.Cut(reflect.StructTag(tag).Get("env"), ","); name != "" {
				visit(name, types.ExprString(field.Type), reflect.StructTag(tag))
			}
			return true
		})
	}
}

// expression is what a package's variable or constant is set to.
func expression(t *testing.T, path, name string) ast.Expr {
	t.Helper()
	for _, file := range sources(t, path) {
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				value, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				if i := slices.IndexFunc(value.Names, func(n *ast.Ident) bool { return n.Name == name }); i >= 0 {
					return value.Values[i]
				}
			}
		}
	}
	t.Fatalf("%s has no %s", path, name)
	return nil
}

// texts are the string literals in an expression.
func texts(t *testing.T, in ast.Expr) (found []string) {
	t.Helper()
	ast.Inspect(in, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, text)
		}
		return true
	})
	return found
}

// seconds is a constant such as 10 * time.Second.
func seconds(t *testing.T, path, name string) time.Duration {
	t.Helper()
	product, ok := expression(t, path, name).(*ast.BinaryExpr)
	if ok {
		number, isNumber := product.X.(*ast.BasicLit)
		unit, isUnit := product.Y.(*ast.SelectorExpr)
		if isNumber && isUnit && unit.Sel.Name == "Second" {
			count, err := strconv.Atoi(number.Value)
			if err == nil {
				return time.Duration(count) * time.Second
			}
		}
	}
	t.Fatalf("%s of %s is no number of seconds", name, path)
	return 0
}

// sameSet fails the test where two lists do not hold the same, in whatever order.
func sameSet(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}
