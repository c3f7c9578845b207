package service

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// write puts content into a file and returns its path.
func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// clean leaves nothing in the environment that config would read, for one test.
func clean(t *testing.T, config any) {
	t.Helper()
	for _, v := range variablesOf(config) {
		for _, name := range []string{v.name, v.name + "_FILE"} {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
}

// sample has settings of every kind.
type sample struct {
	Count  int           `env:"SAMPLE_COUNT" envDefault:"3" allow:"2..50"`
	Wait   time.Duration `env:"SAMPLE_WAIT" envDefault:"5s" allow:"1s..1m"`
	Mode   string        `env:"SAMPLE_MODE" envDefault:"off" allow:"on|off"`
	Loud   bool          `env:"SAMPLE_LOUD" envDefault:"false" allow:"true|false"`
	Colour string        `env:"SAMPLE_COLOUR" allow:"red|green|blue"`
	Key    string        `env:"SAMPLE_KEY" allow:"keys of 32 bytes in base64" secret:"true"`
	Base   string        `env:"SAMPLE_BASE" allow:"PostgreSQL URL" secret:"true"`
	Bus    string        `env:"SAMPLE_BUS" allow:"NATS URLs"`
	Peer   string        `env:"SAMPLE_PEER" allow:"HTTP URL"`
	Addr   string        `env:"SAMPLE_ADDR" allow:"host:port"`
	Nets   string        `env:"SAMPLE_NETS" allow:"networks"`
	Ports  string        `env:"SAMPLE_PORTS" allow:"ports, or *"`
	Grow   string        `env:"SAMPLE_GROW" allow:"percentage, or off"`
	Inner  struct {
		Name string `env:"SAMPLE_NAME,required" allow:"text"`
	} `required:"false"`
}

func TestWhatAVariableMayBeIsWhatItsTagSays(t *testing.T) {
	key := func(b byte) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(b), 32))) }
	for name, values := range map[string]struct {
		good, bad []string
		want      string
	}{
		"SAMPLE_COUNT":  {[]string{"2", "50", ""}, []string{"1", "51", "0", "-3", "many", "3.5", " 3", "99999999999999999999"}, "is not a whole number from 2 to 50"},
		"SAMPLE_WAIT":   {[]string{"1s", "1m", "2500ms", ""}, []string{"5", "999ms", "61s", "-2s", "soon"}, "is not a duration such as 1s, from 1s to 1m"},
		"SAMPLE_MODE":   {[]string{"on", "off", ""}, []string{"true", "ON", "on "}, "is neither on nor off"},
		"SAMPLE_LOUD":   {[]string{"true", "false", ""}, []string{"on", "1", "TRUE"}, "is neither true nor false"},
		"SAMPLE_COLOUR": {[]string{"red", "blue", ""}, []string{"pink", "red|green"}, "is none of red, green, blue"},
		"SAMPLE_KEY":    {[]string{key('a'), key('a') + "," + key('b'), ""}, []string{"short", key('a') + ",", key('a') + "," + key('a')}, "is not one or more keys of 32 bytes in base64"},
		"SAMPLE_BASE": {[]string{"postgres://u:p@h:5432/d", "postgresql://h/d?sslmode=disable", "postgres://u:p@one:5432,two:5432/d", "postgres://u:p@one:5432,two/d",
			"postgres://u:p@[::1]:5432,[::2]:5432/d", "postgres://u:p@/d?host=one,two&port=5432,5433"},
			[]string{"nonsense", "http://h/d", "host=h dbname=d", "postgres://u:hunter2%zz@h/d", "postgres://u:hunter2@h:port/d", "postgres://u:hunter2@one:5432,two:port/d", "postgres://u:hunter2%zz@one:5432,two/d"}, "is not of the form postgres://user:password@host:port/database"},
		"SAMPLE_BUS":   {[]string{"nats://h:4222", "nats://u:p@a:1, tls://b:2"}, []string{"h:4222", "http://h", "nats://", "nats://a:1,"}, "is not of the form nats://user:password@host:port, several separated by commas"},
		"SAMPLE_PEER":  {[]string{"http://h:4318", "https://h/v1/traces"}, []string{"h:4318", "ftp://h", "http://"}, "is not of the form http://host:port"},
		"SAMPLE_ADDR":  {[]string{":8080", "127.0.0.1:0", "[::1]:80"}, []string{"8080", "h:http", "h:65536", "h:-1"}, "is not an address such as 127.0.0.1:8080"},
		"SAMPLE_NETS":  {[]string{"10.0.0.0/8", "10.0.0.0/8,2001:db8::/32", "10.0.0.0/8, 2001:db8::/32 "}, []string{"10.0.0.1", "10.0.0.0/8,", "10.0.0.0/8 2001:db8::/32", "10.0.0.0/33", "edge", "10.0.0.0/8;10.1.0.0/16"}, "is not a list of networks such as"},
		"SAMPLE_PORTS": {[]string{"*", "443,8443", "443, 8443"}, []string{"https", "443 8443", "0", "65536", "443,", "*,443"}, "is neither * nor a list of ports"},
		"SAMPLE_GROW":  {[]string{"off", "100"}, []string{"on", "0", "-1", "100%"}, "is neither off nor a whole number above 0"},
	} {
		for _, value := range values.good {
			clean(t, sample{})
			t.Setenv(name, value)
			if err := ReadEnvironment(new(sample)); err != nil {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
		for _, value := range values.bad {
			clean(t, sample{})
			t.Setenv(name, value)
			err := ReadEnvironment(new(sample))
			if err == nil || !strings.HasPrefix(err.Error(), name+" ") || !strings.Contains(err.Error(), values.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
	}
}

func TestWhatIsSetToNothingHasItsDefault(t *testing.T) {
	clean(t, sample{})
	t.Setenv("SAMPLE_COUNT", "")
	got := sample{}
	if err := ReadEnvironment(&got); err != nil || got.Count != 3 || got.Wait != 5*time.Second || got.Mode != "off" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestEverythingThatIsWrongIsToldAtOnce(t *testing.T) {
	clean(t, sample{})
	var config struct {
		Sample sample
		Token  string `env:"SAMPLE_TOKEN,required" allow:"text" secret:"true"`
	}
	t.Setenv("SAMPLE_TOKEN", "")
	t.Setenv("SAMPLE_COUNT", "many")
	t.Setenv("SAMPLE_MODE", "yes")
	err := ReadEnvironment(&config)
	if want := `SAMPLE_COUNT "many" is not a whole number from 2 to 50; SAMPLE_MODE "yes" is neither on nor off; SAMPLE_TOKEN is not set`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// together has two settings that must agree.
type together struct {
	Least int `env:"TOGETHER_LEAST" envDefault:"1" allow:"1..9"`
	Most  int `env:"TOGETHER_MOST" envDefault:"2" allow:"1..9"`
}

func (c together) Check() error {
	if c.Least > c.Most {
		return os.ErrInvalid
	}
	return nil
}

func TestSettingsThatDoNotGoTogetherAreRefused(t *testing.T) {
	clean(t, together{})
	if err := ReadEnvironment(new(together)); err != nil {
		t.Error(err)
	}
	t.Setenv("TOGETHER_LEAST", "3")
	if err := ReadEnvironment(new(together)); err != os.ErrInvalid {
		t.Error(err)
	}
}

func TestASecretMayComeFromAFile(t *testing.T) {
	type secrets struct {
		Plain string `env:"SAMPLE_PLAIN" allow:"text" secret:"true"`
		Lines string `env:"SAMPLE_LINES,required" allow:"text" secret:"true"`
		Other string `env:"SAMPLE_OTHER" allow:"text"`
	}
	clean(t, secrets{})
	for name, content := range map[string]string{"SAMPLE_PLAIN": " kept as it is \r\n\n", "SAMPLE_LINES": "line\nbreak\n", "SAMPLE_OTHER": "x"} {
		t.Setenv(name+"_FILE", write(t, content))
	}
	var got secrets
	if err := ReadEnvironment(&got); err != nil || got != (secrets{" kept as it is ", "line\nbreak", ""}) {
		t.Errorf("%+v, %v", got, err)
	}
	t.Setenv("SAMPLE_LINES_FILE", write(t, "\n"))
	if err := ReadEnvironment(&got); err == nil || err.Error() != "SAMPLE_LINES is not set" {
		t.Errorf("an empty file: %v", err)
	}
}

func TestASecretIsGivenOnce(t *testing.T) {
	var config struct {
		Admin string `env:"ADMIN_TOKEN" allow:"text" secret:"true"`
	}
	t.Setenv("ADMIN_TOKEN", "hunter2")
	t.Setenv("ADMIN_TOKEN_FILE", write(t, "hunter3"))
	err := ReadEnvironment(&config)
	if err == nil || err.Error() != "set ADMIN_TOKEN or ADMIN_TOKEN_FILE, not both" {
		t.Error(err)
	}
	os.Unsetenv("ADMIN_TOKEN")
	t.Setenv("ADMIN_TOKEN_FILE", filepath.Join(t.TempDir(), "absent"))
	if err := ReadEnvironment(&config); err == nil || !strings.Contains(err.Error(), "read ADMIN_TOKEN_FILE") {
		t.Error(err)
	}
}

func TestEveryServersAddressIsASecret(t *testing.T) {
	var secrets []string
	for _, v := range variablesOf(Config{}) {
		if v.secret {
			secrets = append(secrets, v.name)
		}
	}
	if want := []string{"DATABASE_URL", "NATS_URL"}; !slices.Equal(secrets, want) { // they hold passwords
		t.Errorf("%v, want %v", secrets, want)
	}
}
