package e2e

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"partilha.dev/deploy/e2e/stage"
)

const projectPath = "partilha.dev/"

// listed is a package of the project as `go list` describes it.
type listed struct {
	ImportPath, Dir, Doc               string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

// under tells whether the package is in one of these folders of the project.
func (p listed) under(folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return p.ImportPath == projectPath+folder || strings.HasPrefix(p.ImportPath, projectPath+folder+"/")
	})
}

// packages are all packages of all modules of the workspace.
var packages = sync.OnceValues(func() (all []listed, err error) {
	var work struct{ Use []struct{ DiskPath string } }
	if err := readGo(&work, "work", "edit", "-json"); err != nil {
		return nil, err
	}
	args := []string{"list", "-json=ImportPath,Dir,Doc,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports"}
	for _, module := range work.Use {
		args = append(args, module.DiskPath+"/...")
	}
	list := exec.Command("go", args...)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	lines := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var one listed
		switch err := lines.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, one)
	}
})

func readGo(into any, args ...string) error {
	command := exec.Command("go", args...)
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

func everyPackage(t *testing.T) []listed {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("go list finds only %d packages", len(all))
	}
	return all
}

func TestServicesNeverImportEachOther(t *testing.T) {
	for _, p := range everyPackage(t) {
		for _, service := range stage.Services {
			if !p.under("services/" + service) {
				continue
			}
			for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
				other := listed{ImportPath: path}
				if other.under("services", "deploy") && !other.under("services/"+service) {
					t.Errorf("%s imports %s", p.ImportPath, path)
				}
			}
		}
	}
}

func TestWhatIsSharedImportsNoService(t *testing.T) {
	for _, p := range everyPackage(t) {
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if other := (listed{ImportPath: path}); p.under("pkg") && other.under("services", "deploy") {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
}

// TestTheClientBringsNoServerAlong keeps small what a payment system has to build in.
func TestTheClientBringsNoServerAlong(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./pkg/client")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	want := []string{"github.com/go-json-experiment/json", "github.com/google/uuid", "github.com/shopspring/decimal", projectPath + "pkg"}
	if got := slices.Compact(modules); !slices.Equal(got, want) {
		t.Errorf("the client is made of %v, want %v", got, want)
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range everyPackage(t) {
		doc := p.Doc
		if len(p.GoFiles) == 0 { // go list looks for a comment in nothing else
			for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
				doc += parse(t, filepath.Join(p.Dir, name), parser.ParseComments).Doc.Text()
			}
		}
		if doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// measured are the files in which a float may stand, because it goes into a metric and
// nowhere else.
var measured = []string{
	"services/sales/recorder.go", "services/webhooks/lane.go", "services/webhooks/metric.go",
}

func TestNoFloatComesNearMoney(t *testing.T) {
	used := map[string]bool{}
	for _, p := range everyPackage(t) {
		if !p.under("services", "pkg/money", "pkg/event", "pkg/client") {
			continue
		}
		for _, file := range p.GoFiles {
			path := filepath.Join(p.Dir, file)
			name := inProject(t, path)
			ast.Inspect(parse(t, path, 0), func(node ast.Node) bool {
				ident, ok := node.(*ast.Ident)
				if !ok || !slices.Contains([]string{"float64", "float32", "ParseFloat", "Float64", "InexactFloat64", "NewFromFloat"}, ident.Name) {
					return true
				}
				used[name] = true
				if !slices.Contains(measured, name) {
					t.Errorf("%s uses %s", name, ident.Name)
				}
				return true
			})
		}
	}
	for _, name := range measured {
		if !used[name] {
			t.Errorf("%s may use a float and does not: take it off the list", name)
		}
	}
}

func TestNothingIsLeftToDo(t *testing.T) {
	marks := []string{"TO" + "DO", "FIX" + "ME"}
	files := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); path != root && strings.HasPrefix(name, ".") && name != ".ci" {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".sql", ".yaml", ".yml", ".md", ".html", ".conf", ".json", ""}, filepath.Ext(path)) || !entry.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, mark := range marks {
			if strings.Contains(string(content), mark) {
				t.Errorf("%s says %s", path, mark)
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("looked into %d files: %v", files, err)
	}
}

func TestWhatOnlyTestsNeedNeverReachesAService(t *testing.T) {
	for _, service := range stage.Services {
		content, err := os.ReadFile(filepath.Join(root, "services", service, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, module := range []string{"nats-server", "rapid", "standard-webhooks", "toxiproxy", "vegeta", "chromedp", projectPath + "deploy"} {
			if strings.Contains(string(content), module) {
				t.Errorf("the go.mod of %s names %s", service, module)
			}
		}
	}
}

func parse(t *testing.T, path string, mode parser.Mode) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, mode|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// inProject is a path as it is seen from the project's root.
func inProject(t *testing.T, path string) string {
	t.Helper()
	base, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	name, err := filepath.Rel(base, path)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(name)
}
