package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../../.."

func everyVariable(t *testing.T) []variable {
	t.Helper()
	all, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("only %d variables", len(all))
	}
	return all
}

func TestThePageIsWhatTheCodeSays(t *testing.T) {
	kept, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != render(everyVariable(t)) {
		t.Errorf("%s is not what the code says: run make generate", page)
	}
}

func TestEveryVariableIsExplained(t *testing.T) {
	for _, v := range everyVariable(t) {
		if v.about == "" || v.allow == "" {
			t.Errorf("%s of %s: it may be %q and is %q", v.name, v.program, v.allow, v.about)
		}
		if holdsSecret := strings.HasSuffix(v.name, "_TOKEN") || strings.HasSuffix(v.name, "_KEY") || v.name == "DATABASE_URL" || v.name == "NATS_URL"; holdsSecret != v.secret {
			t.Errorf("%s of %s is a secret: %v", v.name, v.program, v.secret)
		}
	}
}

// TestNothingIsReadPastTheTable finds structs that no program is said to read, and
// variables that are looked up without a struct.
func TestNothingIsReadPastTheTable(t *testing.T) {
	structs, err := parse(root)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"PATH": true}
	for _, v := range everyVariable(t) {
		known[v.name] = true
	}
	for name, s := range structs {
		for _, field := range s.fields {
			if own, ok := tagOf(field).Lookup("env"); ok && !known[strings.Split(own, ",")[0]] {
				t.Errorf("%s of %s belongs to no program", own, name)
			}
		}
	}
	for _, part := range []string{"pkg", "services", "deploy/local"} {
		err := filepath.WalkDir(filepath.Join(root, part), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, name := range lookedUp(file) {
				if !known[name] {
					t.Errorf("%s looks up %s", path, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// lookedUp are the names that a file asks package os for; one that is no literal is
// named by its source.
func lookedUp(file *ast.File) (names []string) {
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Getenv", "LookupEnv", "ExpandEnv"}, f.Sel.Name) {
			return true
		}
		name := f.Sel.Name + " of what is no literal"
		if literal, ok := call.Args[0].(*ast.BasicLit); ok {
			name, _ = strconv.Unquote(literal.Value) // the parser has accepted it
		}
		names = append(names, name)
		return true
	})
	return names
}
