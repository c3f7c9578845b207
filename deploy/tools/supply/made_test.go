package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

func TestAPartIsKnownWithTheProgramsThatLinkIt(t *testing.T) {
	parts, err := madeOf(root)
	if err != nil {
		t.Fatal(err)
	}
	every := []string{"commissions", "goals", "sales", "webhooks", "local", "demo", "front"}
	for path, want := range map[string]part{
		standard:                            {licences: []string{"BSD-3-Clause"}, programs: every},
		"partilha.dev/pkg":                  {own: true, licences: []string{"Apache-2.0"}, programs: every},
		"partilha.dev/services/goals":       {own: true, licences: []string{"Apache-2.0"}, programs: []string{"goals", "local", "front"}},
		"github.com/nats-io/nats-server/v2": {licences: []string{"Apache-2.0"}, programs: []string{"local"}},
		"go.yaml.in/yaml/v3":                {licences: []string{"Apache-2.0", "MIT"}, programs: every},
	} {
		i := slices.IndexFunc(parts, func(p part) bool { return p.path == path })
		if i < 0 {
			t.Errorf("%s is in no program", path)
			continue
		}
		got := parts[i]
		if got.own != want.own || !slices.Equal(got.licences, want.licences) || !slices.Equal(got.programs, want.programs) {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
		if released := !got.own && path != standard; released != strings.HasPrefix(got.version, "v") {
			t.Errorf("%s has the version %q", path, got.version)
		}
	}
}

func TestALicenceInsideAModuleCountsWhereItsFolderIsLinked(t *testing.T) {
	var one linked
	one.Dir = "/cache/module@v1.0.0/zstd/internal/xxhash"
	one.Module.Path, one.Module.Version, one.Module.Dir = "example.com/module", "v1.0.0", "/cache/module@v1.0.0"
	_, folders := one.part(root, "/go")
	want := []string{one.Dir, "/cache/module@v1.0.0/zstd/internal", "/cache/module@v1.0.0/zstd", "/cache/module@v1.0.0"}
	if !slices.Equal(folders, want) {
		t.Errorf("%v, want %v", folders, want)
	}
}

func TestAPageThatIsNotUpToDateIsRefused(t *testing.T) {
	parts := []part{
		{path: "example.com/module", version: "v1.0.0", licences: []string{"Apache-2.0", "MIT"}, programs: []string{"sales"}},
		{path: "partilha.dev/pkg", own: true, licences: []string{"Apache-2.0"}, programs: []string{"goals", "sales"}},
		{path: standard, licences: []string{"BSD-3-Clause"}, programs: []string{"goals", "sales"}},
	}
	project := t.TempDir()
	if err := os.Mkdir(filepath.Join(project, "deploy"), 0o755); err != nil {
		t.Fatal(err)
	}
	kept := intro + "| `example.com/module` | v1.0.0 | Apache-2.0 AND MIT | sales |\n| `std` |  | BSD-3-Clause | all |\n"
	if err := os.WriteFile(filepath.Join(project, page), []byte(kept), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := compare(project, parts); err != nil {
		t.Error(err)
	}
	parts[0].version = "v1.0.1"
	if err := compare(project, parts); err == nil || !strings.HasSuffix(err.Error(), "run make generate") {
		t.Errorf("after another version: %v", err)
	}
}
