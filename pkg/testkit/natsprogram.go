package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"partilha.dev/pkg/internal/child"
)

const natsPackage = "github.com/nats-io/nats-server/v2"

// natsProgram returns the path of the nats-server program, and builds it if this
// version never was. Test binaries that need it at the same moment build it once.
//
// It is a program, not a package, so that no module which uses testkit requires
// the server.
var natsProgram = sync.OnceValues(func() (string, error) {
	module, err := natsModule()
	if err != nil {
		return "", err
	}
	version, err := natsVersion(module)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	program := filepath.Join(cache, "partilha", "nats-server-"+version)
	if err := buildOnce(module, program); err != nil {
		return "", fmt.Errorf("build nats-server: %w", err)
	}
	return program, nil
})

// natsModule finds the module that names the server, from the folder of the tests.
func natsModule() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for folder := start; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return filepath.Join(folder, "deploy", "local"), nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("find the repository: no go.work in %s or above", start)
		}
	}
}

var natsRequirement = regexp.MustCompile(`(?m)^\s*(?:require\s+)?` + regexp.QuoteMeta(natsPackage) + `\s+(v\S+)`)

func natsVersion(module string) (string, error) {
	text, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("find the version of nats-server: %w", err)
	}
	found := natsRequirement.FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("find the version of nats-server: %s/go.mod does not require it", module)
	}
	return string(found[1]), nil
}

func buildOnce(module, program string) error {
	if _, err := os.Stat(program); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(program+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := flock(lock); err != nil {
		return err
	}
	if _, err := os.Stat(program); err == nil {
		return nil // by whom we waited for
	}
	unfinished := program + ".new"
	cmd := exec.Command("go", "build", "-o", unfinished, natsPackage)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	output := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = output, output
	if err := child.Run(cmd, syscall.SIGKILL); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(output.String()))
	}
	return os.Rename(unfinished, program)
}

// flock waits for the lock; a signal to this process may interrupt the wait.
func flock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
