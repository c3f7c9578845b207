package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// services are the four, in the order in which a sale passes through them.
var services = []string{"sales", "commissions", "goals", "webhooks"}

// root is the folder of the whole project.
const root = "../.."

// program returns the path of a service's binary, as it is built from this tree.
func program(t testing.TB, service string) string {
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
	folder, err := filepath.Abs(filepath.Join(root, ".bin", "e2e"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	args := []string{"build", "-o", folder + string(filepath.Separator)}
	for _, service := range services {
		args = append(args, fmt.Sprintf("./services/%s/cmd/%s", service, service))
	}
	build := exec.Command("go", args...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build the services: %w", err), errors.New(string(out)))
	}
	return folder, nil
})
