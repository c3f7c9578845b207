package stage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Services are the four, in the order in which a sale passes through them.
var Services = []string{"sales", "commissions", "goals", "webhooks"}

// Program returns the path of a service's binary, as it is built from this tree.
func Program(t testing.TB, service string) string {
	t.Helper()
	folder, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, service)
}

// buildOnce builds the four binaries once in a test run, into the folder where the
// project keeps what it builds.
var buildOnce = sync.OnceValues(func() (string, error) {
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, ".bin", "e2e")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	args := []string{"build", "-o", folder + string(filepath.Separator)}
	for _, service := range Services {
		args = append(args, fmt.Sprintf("./services/%s/cmd/%s", service, service))
	}
	build := exec.Command("go", args...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build the services: %w", err), errors.New(string(out)))
	}
	return folder, nil
})

// findRoot finds the folder of the whole project from the folder of the tests.
func findRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the project: %w", err)
	}
	for folder := start; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("find the project: no go.work in %s or above", start)
		}
	}
}
