package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestProgramsAreBuiltAsInTheImages keeps a bill's hash that of the program in an image.
func TestProgramsAreBuiltAsInTheImages(t *testing.T) {
	dockerfile, err := os.ReadFile(filepath.Join(root, "deploy/docker/Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(strings.ReplaceAll(string(dockerfile), "\\\n", " "))
	at := slices.Index(fields, "CGO_ENABLED=0")
	want := strings.Fields("CGO_ENABLED=0 go build " + buildFlags + ` -ldflags "` + linkFlags + `"`)
	if at < 0 || len(fields) < at+len(want) || !slices.Equal(fields[at:at+len(want)], want) {
		t.Errorf("the Dockerfile does not build with %v", want)
	}
	for name, value := range map[string]string{"VERSION": "dev", "COMMIT": "unknown"} {
		t.Setenv(name, "")
		if stamp(name) != value || !strings.Contains(string(dockerfile), "ARG "+name+"="+value+"\n") {
			t.Errorf("%s is not %s by default", name, value)
		}
	}
}
