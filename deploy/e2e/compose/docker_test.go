// Package compose tests docker-compose.yml as it is shipped, in a project of its own on a
// Docker engine: through the edge, while containers are killed, and down and up again.
//
// deploy/docker/trial, which make compose-test runs, sees to the engine, the images and
// the secrets, and runs these tests; without it they are skipped. There is nothing in
// this package but tests and the customer's server that they need.
package compose

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"partilha.dev/pkg/testkit"
)

const (
	root     = "../../.."
	project  = "partilha-trial"
	patience = 3 * time.Minute
	soon     = 30 * time.Second
)

// environment is what deploy/docker/trial tells these tests.
func environment(t *testing.T) (secrets string) {
	t.Helper()
	secrets = os.Getenv("COMPOSE_TEST_ENV")
	if secrets == "" {
		t.Skip("this needs a Docker engine: make compose-test")
	}
	return secrets
}

// run runs a program in the project's root and returns what it printed, trimmed.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := try(name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return out
}

func try(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = root
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		return "", &failed{err, stderr.String()}
	}
	return strings.TrimSpace(stdout.String()), nil
}

// failed is a program that has ended badly, with its last words.
type failed struct {
	error
	said string
}

func (f *failed) Error() string { return f.error.Error() + ": " + f.said[max(0, len(f.said)-2000):] }

// stack is the project as docker compose sees it.
type stack struct {
	secrets string // the path of the file with the secrets
}

// compose runs docker compose on the shipped file and what the tests add to it.
func (s stack) compose(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, "docker", s.arguments(args...)...)
}

func (s stack) arguments(args ...string) []string {
	return append([]string{"compose", "--progress", "plain", "-p", project, "--env-file", s.secrets,
		"-f", "docker-compose.yml", "-f", filepath.Join("deploy", "e2e", "compose", "trial.yml")}, args...)
}

// up brings everything up and returns when all is healthy. Containers that are there stay.
// Docker gives up where a container is not well at that moment, as a service is whose
// database was killed just now; so it is asked again.
func (s stack) up(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, patience, "everything is healthy", func() bool {
		_, err := try("docker", s.arguments("up", "-d", "--wait", "--no-recreate", "--scale", "sales=2", "--scale", "webhooks=3")...)
		return err == nil
	})
}

// containers are the ids of a service's running containers.
func (s stack) containers(t *testing.T, service string) []string {
	t.Helper()
	return strings.Fields(s.compose(t, "ps", "-q", service))
}

// at is the URL of a port that a service has published.
func (s stack) at(t *testing.T, service, port string) string {
	t.Helper()
	return "http://" + s.compose(t, "port", service, port)
}

// inspected is what Docker tells of a container.
type inspected struct {
	Name   string
	Config struct {
		User string
		Env  []string
	}
	HostConfig struct {
		ReadonlyRootfs bool
		CapDrop        []string
		SecurityOpt    []string
		RestartPolicy  struct{ Name string }
	}
	NetworkSettings struct {
		Networks map[string]json.RawMessage
		Ports    map[string][]json.RawMessage
	}
	State struct{ Health struct{ Status string } }
}

func inspect(t *testing.T, container string) (found inspected) {
	t.Helper()
	var all []inspected
	if err := json.Unmarshal([]byte(run(t, "docker", "inspect", container)), &all); err != nil || len(all) != 1 {
		t.Fatalf("inspect %s: %d found, %v", container, len(all), err)
	}
	return all[0]
}
