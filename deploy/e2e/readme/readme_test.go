// Package readme tests that what README.md tells integrators to paste does work.
package readme

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	body   = `{"event":"commission.available","note":"ação <b> & \u2028"}`
)

// harness turns a snippet into a program that prints true or false for the secret,
// the body and the header that it is given as arguments.
type harness struct {
	language, program, file string
	before, after           string
	arguments               []string
}

var harnesses = []harness{
	{
		language: "go", program: "go", file: "main.go", arguments: []string{"run"},
		before: "package main\nimport (\"crypto/hmac\"; \"crypto/sha256\"; \"encoding/hex\"; \"fmt\"; \"os\")\n",
		after:  "\nfunc main() { fmt.Print(verified(os.Args[1], []byte(os.Args[2]), os.Args[3])) }\n",
	},
	{
		language: "js", program: "node", file: "main.js",
		after: "\nprocess.stdout.write(String(verified(process.argv[2], Buffer.from(process.argv[3]), process.argv[4])));\n",
	},
	{
		language: "python", program: "python3", file: "main.py",
		after: "\nimport sys\nprint(str(verified(sys.argv[1], sys.argv[2].encode(), sys.argv[3])).lower(), end='')\n",
	},
	{
		language: "php", program: "php", file: "main.php", before: "<?php\n",
		after: "\necho verified($argv[1], $argv[2], $argv[3]) ? 'true' : 'false';\n",
	},
}

// TestTheSnippetsTellTrueSignaturesFromFalseOnes runs each snippet of README.md whose
// interpreter this machine has; Go's it always has.
func TestTheSnippetsTellTrueSignaturesFromFalseOnes(t *testing.T) {
	page, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	genuine := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	ran := 0
	for _, h := range harnesses {
		snippet := regexp.MustCompile("(?s)```" + h.language + "\n(.*?)```").FindSubmatch(page)
		if snippet == nil {
			t.Errorf("README.md has no %s snippet", h.language)
			continue
		}
		if _, err := exec.LookPath(h.program); err != nil {
			t.Logf("%s is not on this machine; its snippet is not run", h.program)
			continue
		}
		ran++
		file := filepath.Join(t.TempDir(), h.file)
		if err := os.WriteFile(file, []byte(h.before+string(snippet[1])+h.after), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			name, secret, body, header, want string
		}{
			{"a genuine one", secret, body, genuine, "true"},
			{"another body", secret, body + " ", genuine, "false"},
			{"another secret", secret + "x", body, genuine, "false"},
			{"capitals", secret, body, strings.ToUpper(genuine), "false"},
			{"one digit short", secret, body, genuine[:len(genuine)-1], "false"},
			{"nothing", secret, body, "", "false"},
		} {
			command := exec.Command(h.program, append(append([]string{}, h.arguments...), file, row.secret, row.body, row.header)...)
			command.Env = append(os.Environ(), "GOWORK=off")
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%s, %s: %v: %s", h.language, row.name, err, out)
			}
			if string(out) != row.want {
				t.Errorf("%s says %s to %s, want %s", h.language, out, row.name, row.want)
			}
		}
	}
	if ran == 0 {
		t.Error("no snippet was run")
	}
}

// TestTheSnippetOfTheClientCompiles builds the body of a function that has what the
// snippet takes for granted.
func TestTheSnippetOfTheClientCompiles(t *testing.T) {
	page, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	snippet := regexp.MustCompile("(?s)## From Go\n.*?```go\n(.*?)```").FindSubmatch(page)
	if snippet == nil {
		t.Fatal("README.md has no Go snippet under From Go")
	}
	const before = `package main

import ("context"; "errors"; "fmt"; "os"; "github.com/google/uuid"; "partilha.dev/pkg/client"; "partilha.dev/pkg/money")

func main() {}

func sell(ctx context.Context, campaign, plan uuid.UUID) error {
`
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	program, overlay := filepath.Join(folder, "main.go"), filepath.Join(folder, "overlay.json")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(here, "snippet", "main.go"): program}})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{program: []byte(before + string(snippet[1]) + "return nil\n}\n"), overlay: replaced} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("go", "build", "-overlay", overlay, "-o", filepath.Join(folder, "snippet"), "./snippet").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
