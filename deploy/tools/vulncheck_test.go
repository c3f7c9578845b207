// Package tools holds the tests of the scripts beside it.
package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// made is a database of one made-up vulnerability, and modules that may have it.
var made = map[string]string{
	"database/index/db.json":      `{"modified":"2026-01-01T00:00:00Z"}`,
	"database/index/modules.json": `[{"path":"stdlib","vulns":[{"id":"GO-2026-0001","modified":"2026-01-01T00:00:00Z"}]}]`,
	"database/index/vulns.json":   `[{"id":"GO-2026-0001","modified":"2026-01-01T00:00:00Z"}]`,
	"database/ID/GO-2026-0001.json": `{
		"id": "GO-2026-0001", "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z", "summary": "made up", "details": "made up",
		"affected": [{
			"package": {"name": "stdlib", "ecosystem": "Go"},
			"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
			"ecosystem_specific": {"imports": [{"path": "errors", "symbols": ["Join"]}]}
		}],
		"database_specific": {"url": "https://pkg.go.dev/vuln/GO-2026-0001"}}`,
	"go.work":        "go 1.26.0\n\nuse (\n\t./first\n\t./second\n\t./third\n)\n",
	"first/go.mod":   "module example.com/first\n\ngo 1.26.0\n",
	"first/main.go":  "package main\n\nfunc main() {}\n",
	"second/go.mod":  "module example.com/second\n\ngo 1.26.0\n",
	"second/main.go": "package main\n\nimport \"errors\"\n\nfunc main() { panic(errors.Join(nil)) }\n",
	"third/go.mod":   "module example.com/third\n\ngo 1.26.0\n",
	"third/main.go":  "package main\n\nimport \"errors\"\n\nfunc main() { panic(errors.New(\"\")) }\n",
}

func TestVulncheckFailsWhereVulnerableCodeIsCalledAndWhereNothingWasCompared(t *testing.T) {
	folder := t.TempDir()
	for name, content := range made {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	govulncheck := filepath.Join(folder, "govulncheck")
	if out, err := exec.Command("go", "build", "-o", govulncheck, "golang.org/x/vuln/cmd/govulncheck").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, row := range map[string]struct{ database, pattern, says string }{
		"code that is called":           {"database", "example.com/...", "vulncheck: vulnerable code is called"},
		"code beside it that is called": {"database", "example.com/third", ""},
		"a database that is not there":  {"elsewhere", "example.com/...", "vulncheck: nothing was compared with file://" + folder + "/elsewhere; govulncheck says above why"},
		"code that does not compile":    {"database", "example.com/fourth", "vulncheck: nothing was compared with file://" + folder + "/database; govulncheck says above why"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.Command("./vulncheck", govulncheck, "file://"+filepath.Join(folder, row.database), filepath.Join(folder, "first"), row.pattern)
			command.Env = append(os.Environ(), "GOWORK=auto")
			out, err := command.CombinedOutput()
			if (err != nil) != (row.says != "") || !strings.HasSuffix(strings.TrimSpace(string(out)), row.says) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
