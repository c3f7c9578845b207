package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"partilha.dev/deploy/e2e/stage"
)

func readProject(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	required = regexp.MustCompile(`\$\{([A-Z_]+):\?`)
	assigned = regexp.MustCompile(`(?m)^([A-Z_]+)=(.+)$`)
)

// secretsOf runs deploy/docker/env on a file and returns what it says then.
func secretsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	if out, err := exec.Command(filepath.Join(root, "deploy", "docker", "env"), file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{}
	for _, found := range assigned.FindAllStringSubmatch(string(text), -1) {
		secrets[found[1]] = found[2]
	}
	return secrets
}

func TestMakeEnvGivesEverySecretThatTheComposeFileAsksFor(t *testing.T) {
	secrets := secretsOf(t, filepath.Join(t.TempDir(), ".env"))
	for _, found := range required.FindAllStringSubmatch(readProject(t, "docker-compose.yml"), -1) {
		if secrets[found[1]] == "" {
			t.Errorf("docker-compose.yml asks for %s, which make env does not give", found[1])
		}
	}
	seen := map[string]string{}
	for name, value := range secrets {
		if len(value) < 43 || seen[value] != "" {
			t.Errorf("%s has %d characters and is that of %q too", name, len(value), seen[value])
		}
		seen[value] = name
	}
}

func TestMakeEnvKeepsWhatThereIsAndAddsWhatIsMissing(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(file, []byte("ADMIN_TOKEN=mine\nOTHER=kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	first := secretsOf(t, file)
	if first["ADMIN_TOKEN"] != "mine" || first["OTHER"] != "kept" || first["POSTGRES_PASSWORD"] == "" {
		t.Errorf("ADMIN_TOKEN is %q, OTHER is %q", first["ADMIN_TOKEN"], first["OTHER"])
	}
	for name, value := range secretsOf(t, file) {
		if first[name] != value {
			t.Errorf("a second run changes %s", name)
		}
	}
	about, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if about.Mode().Perm() != 0o600 {
		t.Errorf("the file of the secrets has mode %o", about.Mode().Perm())
	}
}

// What says how many replicas there are must outlive a command: an up without it would
// take all but one away.
func TestTheReplicasOfAServiceAreAVariableThatTheReadmeNames(t *testing.T) {
	file, readme := readProject(t, "docker-compose.yml"), readProject(t, "README.md")
	for _, service := range stage.Services {
		variable := strings.ToUpper(service) + "_REPLICAS"
		of := regexp.MustCompile(`(?m)^  ` + service + `:.*\n    <<: \*service\n    scale: (.*)$`).FindStringSubmatch(file)
		if of == nil || of[1] != "${"+variable+":-1}" {
			t.Errorf("%s has %q replicas, want those of %s", service, of, variable)
		}
		if !strings.Contains(readme, "`"+variable+"`") {
			t.Errorf("the README does not name %s", variable)
		}
	}
}

// TestTheEdgeKnowsEveryPath holds the edge's routes against the services' documents; what
// it does not name goes to sales.
func TestTheEdgeKnowsEveryPath(t *testing.T) {
	edge := readProject(t, "deploy/docker/Caddyfile")
	first := regexp.MustCompile(`(?m)^  (/api/v1/[a-z-]+)`)
	for _, service := range stage.Services {
		routed := regexp.MustCompile(`(?m)^\s*@` + service + ` path (.*)$`).FindStringSubmatch(edge)
		var routes []string
		if routed != nil {
			routes = strings.Fields(routed[1])
		}
		paths := first.FindAllStringSubmatch(readProject(t, "services/"+service+"/openapi.yaml"), -1)
		if len(paths) == 0 {
			t.Errorf("%s has no paths", service)
		}
		for _, path := range paths {
			for _, want := range []string{path[1], path[1] + "/*"} {
				if slices.Contains(routes, want) != (service != "sales") {
					t.Errorf("the edge sends %s elsewhere than to %s", want, service)
				}
			}
		}
	}
}
