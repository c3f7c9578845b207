package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// binaries are the programs' file names, and what each says first of an error.
var binaries = map[string]struct{ file, says string }{
	"sales": {"sales", "sales"}, "commissions": {"commissions", "commissions"}, "goals": {"goals", "goals"}, "webhooks": {"webhooks", "webhooks"},
	"front": {"front", "front"}, "make run": {"local", "partilha"}, "make demo-compose": {"demo", "demo"},
}

var build = sync.OnceValues(func() (string, error) {
	folder, err := filepath.Abs(filepath.Join(root, ".bin", "configuration"))
	if err != nil {
		return "", err
	}
	command := exec.Command("go", "build", "-o", folder+string(filepath.Separator), "./services/sales/cmd/sales", "./services/commissions/cmd/commissions",
		"./services/goals/cmd/goals", "./services/webhooks/cmd/webhooks", "./deploy/local", "./deploy/local/cmd/front", "./deploy/local/cmd/demo")
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return folder, nil
})

// right are values for what is required, with servers that nobody runs.
var right = map[string]string{
	"PostgreSQL URL": "postgres://u:p@127.0.0.1:1/d", "HTTP URL": "http://127.0.0.1:1", "text": "hunter2",
	"keys of 32 bytes in base64": base64.StdEncoding.EncodeToString(make([]byte, 32)),
}

// wrong are values that a variable may not be.
func wrong(allow string) []string {
	if least, _, ok := strings.Cut(allow, ".."); ok {
		if _, err := time.ParseDuration(least); err == nil {
			return []string{"soon", "5", "-1s", "0s", "100h"}
		}
		return []string{"many", "-1", "0", "1.5", "10000001", "99999999999999999999"}
	}
	if strings.Contains(allow, "|") {
		return []string{"perhaps"}
	}
	return map[string][]string{
		"PostgreSQL URL": {"nonsense", "http://host/database"}, "NATS URLs": {"nonsense", "http://host"}, "HTTP URL": {"nonsense", "ftp://host"},
		"host:port": {"nowhere", "host:99999"}, "networks": {"edge"}, "ports, or *": {"https", "0"}, "keys of 32 bytes in base64": {"short"},
		"percentage, or off": {"some", "-1"}, "text": {}, "bytes such as 512MiB, or off": {},
	}[allow]
}

func TestAWrongValueEndsAProgramWithOneSentenceThatNamesTheVariable(t *testing.T) {
	folder, err := build()
	if err != nil {
		t.Fatal(err)
	}
	all := everyVariable(t)
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, v := range all {
				if v.program == p.name {
					wantRefused(t, folder, all, v)
				}
			}
		})
	}
}

func wantRefused(t *testing.T, folder string, all []variable, v variable) {
	t.Helper()
	values := wrong(v.allow)
	if values == nil {
		t.Errorf("%s of %s may be %s, of which no wrong value is known", v.name, v.program, v.allow)
	}
	told := binaries[v.program].says + ": " + v.name
	for _, value := range values {
		status, said := start(t, folder, all, v, value)
		if status != 1 || !strings.HasPrefix(said, told+" ") || strings.Contains(said, "\n") || v.secret && strings.Contains(said, value) {
			t.Errorf("%s with %s=%s: status %d, %q", v.program, v.name, value, status, said)
		}
	}
	if !v.required {
		return
	}
	if status, said := start(t, folder, all, v, ""); status != 1 || said != told+" is not set" {
		t.Errorf("%s without %s: status %d, %q", v.program, v.name, status, said)
	}
}

func TestALeaseThatIsTooShortForTheTimeoutIsNamed(t *testing.T) {
	folder, err := build()
	if err != nil {
		t.Fatal(err)
	}
	all := everyVariable(t)
	for _, v := range all {
		if v.name != "WEBHOOKS_LEASE" {
			continue
		}
		if status, said := start(t, folder, all, v, "9s"); status != 1 || said != binaries[v.program].says+": WEBHOOKS_LEASE 9s is not at least twice WEBHOOKS_TIMEOUT, which is 5s" {
			t.Errorf("%s: status %d, %q", v.program, status, said)
		}
	}
}

// start runs a program with all that is required and one variable more, and returns its
// status and what it said.
func start(t *testing.T, folder string, all []variable, v variable, value string) (status int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(folder, binaries[v.program].file), "serve")
	command.Env = []string{"DATA_DIR=" + filepath.Join(t.TempDir(), "data"), "PATH=" + os.Getenv("PATH")}
	for _, other := range all {
		if other.program == v.program && other.required && other.name != v.name {
			command.Env = append(command.Env, other.name+"="+right[other.allow])
		}
	}
	command.Env = append(command.Env, v.name+"="+value)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), strings.TrimSpace(out.String())
}
