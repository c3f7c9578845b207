package main

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ourselves is the running test as a built program, and its parts as if each had the MIT
// licence and one had another one as well.
func ourselves(t *testing.T) (binary string, info *debug.BuildInfo, parts []part) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err = buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) < 3 {
		t.Fatalf("only %d modules", len(info.Deps))
	}
	parts = []part{{path: standard, licences: []string{"BSD-3-Clause"}}, {path: info.Main.Path, own: true, licences: []string{"Apache-2.0"}}}
	for _, m := range info.Deps {
		parts = append(parts, part{path: m.Path, version: m.Version, licences: []string{"MIT"}})
	}
	parts[2].licences = []string{"Apache-2.0", "MIT"}
	return binary, info, parts
}

func TestABillIsWhatCycloneDXSays(t *testing.T) {
	binary, info, parts := ourselves(t)
	path := filepath.Join(t.TempDir(), "bill.json")
	if err := writeBill(binary, path, parts); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bill, err := jsonschema.UnmarshalJSON(strings.NewReader(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	if err := cycloneDX(t).Validate(bill); err != nil {
		t.Error(err)
	}
	for _, m := range info.Deps {
		name, _ := json.Marshal(m.Path)
		if !strings.Contains(string(content), `"name": `+string(name)) || !strings.Contains(string(content), m.Sum) {
			t.Errorf("%s is not in the bill", m.Path)
		}
	}
	if !strings.Contains(string(content), `"expression": "Apache-2.0 AND MIT"`) {
		t.Error("two licences are not in the bill")
	}
}

// cycloneDX is CycloneDX' own schema, which its library brings along.
func cycloneDX(t *testing.T) *jsonschema.Schema {
	t.Helper()
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	schemas := jsonschema.NewCompiler()
	for id, file := range map[string]string{
		"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		content, err := os.Open(filepath.Join(strings.TrimSpace(string(module)), "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		schema, err := jsonschema.UnmarshalJSON(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas.AddResource("http://cyclonedx.org/schema/"+id, schema); err != nil {
			t.Fatal(err)
		}
	}
	compiled, err := schemas.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestNoBillOfAModuleWhoseLicenceIsNotKnown(t *testing.T) {
	binary, info, parts := ourselves(t)
	last := info.Deps[len(info.Deps)-1]
	parts[len(parts)-1].version = "v0.0.1" // the licence of another version says nothing
	path := filepath.Join(t.TempDir(), "bill.json")
	if err := writeBill(binary, path, parts); err == nil || err.Error() != "no licence is known of "+last.Path+" "+last.Version {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it was written")
	}
}

func TestABillThatLacksSomethingIsRefused(t *testing.T) {
	binary, info, parts := ourselves(t)
	path := filepath.Join(t.TempDir(), "bill.json")
	if err := writeBill(binary, path, parts); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m := info.Deps[0]
	for what, with := range map[string][2]string{
		"a module":       {`"name": "` + m.Path + `"`, `"name": "another"`},
		"a version":      {`"version": "` + m.Version + `"`, `"version": "v0.0.1"`},
		"a sum":          {m.Sum, "h1:another"},
		"a package URL":  {`"purl": "pkg:`, `"purl": "`},
		"a licence list": {`"licenses"`, `"others"`},
	} {
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(content), with[0], with[1])), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := wantComplete(path, info); err == nil {
			t.Errorf("a bill without %s is complete", what)
		}
	}
}
