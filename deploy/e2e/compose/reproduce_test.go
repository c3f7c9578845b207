package compose

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheSameTreeMakesTheSameBytes holds the program in an image against one that is
// built here, in another folder, by another build cache.
func TestTheSameTreeMakesTheSameBytes(t *testing.T) {
	environment(t)
	shipped, built := filepath.Join(t.TempDir(), "shipped"), filepath.Join(t.TempDir(), "built")
	container := run(t, "docker", "create", "partilha-sales:trial")
	t.Cleanup(func() { run(t, "docker", "rm", container) })
	run(t, "docker", "cp", container+":/service", shipped)
	run(t, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-buildvcs=false", "-tags", "timetzdata",
		"-ldflags", "-s -w -buildid= -X partilha.dev/pkg/service.version=trial -X partilha.dev/pkg/service.commit=of-the-test",
		"-o", built, "./services/sales/cmd/sales")
	compiler := func(file string) string { return strings.TrimPrefix(run(t, "go", "version", file), file) }
	if compiler(shipped) != compiler(built) {
		t.Skipf("the image is built by%s, this machine has%s", compiler(shipped), compiler(built))
	}
	digest := func(file string) [sha256.Size]byte {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256(content)
	}
	if a, b := digest(shipped), digest(built); a != b {
		t.Errorf("the image has %x, here it is %x", a, b)
	}
}
