package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ofLibraries are variables that no struct names: Go's own list of folders with
// certificates, and the collector of traces, for front.
var ofLibraries = []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "SSL_CERT_DIR"}

// environment is what one container of the chart finds in its environment; the value of
// what comes from a Secret is "".
func (r *rendered) environment(t *testing.T, container corev1.Container) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, from := range container.EnvFrom {
		given := named[*corev1.ConfigMap](r, from.ConfigMapRef.Name)
		if given == nil {
			t.Fatalf("there is no ConfigMap %s", from.ConfigMapRef.Name)
		}
		maps.Copy(found, given.Data)
	}
	for _, one := range container.Env {
		if _, twice := found[one.Name]; twice {
			t.Errorf("%s is given twice", one.Name)
		}
		found[one.Name] = one.Value
	}
	return found
}

// program is the program that a workload of the chart runs; "" for a server of a trial.
func (w workload) program() string {
	program, _, _ := strings.Cut(w.component(), "-") // goals-migrate, goals-catch-up
	if !slices.Contains(programs, program) {
		return ""
	}
	return program
}

func TestEveryVariableThatIsGivenIsOneThatTheProgramReads(t *testing.T) {
	secrets := secretVariables(t)
	withEach(t, func(t *testing.T, r *rendered) {
		for _, w := range r.workloads() {
			program := w.program()
			if program == "" {
				continue
			}
			known := append(slices.Collect(maps.Keys(variables(t, program))), ofLibraries...)
			for variable := range r.environment(t, w.pods.Spec.Containers[0]) {
				base, file := strings.CutSuffix(variable, "_FILE")
				switch {
				case !slices.Contains(known, base):
					t.Errorf("%s is given %s, which it does not read", w, variable)
				case file && !slices.Contains(secrets, base):
					t.Errorf("%s is given %s, which it does not read from a file", w, variable)
				case !file && slices.Contains(secrets, base):
					t.Errorf("%s is given %s in the open", w, variable)
				}
			}
		}
	})
}

func TestEverySecretIsAFileOfTheServicesOwnSecret(t *testing.T) {
	secrets := secretVariables(t)
	withEach(t, func(t *testing.T, r *rendered) {
		for _, w := range r.workloads() {
			program := w.program()
			if program == "" || program == "front" {
				continue
			}
			var want []string
			for variable := range variables(t, program) {
				if slices.Contains(secrets, variable) && (w.component() != program+"-migrate" || variable == "DATABASE_URL") {
					want = append(want, variable)
				}
			}
			var mounted, named []string
			for _, volume := range w.pods.Spec.Volumes {
				if volume.Secret == nil {
					continue
				}
				if volume.Secret.DefaultMode == nil || *volume.Secret.DefaultMode != 0o440 {
					t.Errorf("%s: the secrets have mode %v", w, volume.Secret.DefaultMode)
				}
				for _, item := range volume.Secret.Items {
					mounted = append(mounted, "/run/secrets/partilha/"+item.Path)
				}
			}
			for variable, path := range r.environment(t, w.pods.Spec.Containers[0]) {
				if base, file := strings.CutSuffix(variable, "_FILE"); file {
					named = append(named, base)
					if !slices.Contains(mounted, path) {
						t.Errorf("%s: %s is %s, and there are %q", w, variable, path, mounted)
					}
				}
			}
			sameSet(t, w.String(), named, want)
		}
	})
}

// schemaOf is a definition of the schema, by the names that lead to it.
func schemaOf(t *testing.T, path ...string) map[string]any {
	t.Helper()
	var at map[string]any
	if err := json.Unmarshal(loadChart(t).Schema, &at); err != nil {
		t.Fatal(err)
	}
	for _, key := range path {
		next, ok := at[key].(map[string]any)
		if !ok {
			t.Fatalf("the schema has no %s", strings.Join(path, "."))
		}
		at = next
	}
	return at
}

func TestTheValuesNameEverySettingOfTheCodeAndNoOther(t *testing.T) {
	// A secret is no setting, and these the chart decides itself.
	notSet := append(secretVariables(t), "ADDR", "MIGRATE", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	for _, store := range stores {
		notSet = append(notSet, strings.ToUpper(store)+"_URL")
	}
	common := schemaOf(t, "$defs", "settings", "properties")
	sameSet(t, "the settings of all", slices.Collect(maps.Keys(schemaOf(t, "properties", "settings", "properties"))), slices.Collect(maps.Keys(common)))
	for _, program := range programs {
		settings := schemaOf(t, "properties", "services", "properties", program, "properties", "settings", "properties")
		want := slices.DeleteFunc(slices.Collect(maps.Keys(variables(t, program))), func(name string) bool { return slices.Contains(notSet, name) })
		sameSet(t, "the settings of "+program, slices.Collect(maps.Keys(settings)), want)
		for setting, rule := range settings {
			if _, isCommon := common[setting]; rule == true && !isCommon {
				t.Errorf("%s of %s may be anything", setting, program)
			}
		}
	}
}

func TestASettingArrivesAsItWasWritten(t *testing.T) {
	r := render(t, everything)
	for _, row := range []struct{ program, variable, want string }{
		{"sales", "RATE_LIMIT_PER_SECOND", "2000000"},
		{"sales", "RATE_LIMIT", "on"},
		{"sales", "DATABASE_POOL", "48"}, // the service's own comes first
		{"goals", "DATABASE_POOL", "24"},
		{"sales", "SALES_WRITERS", "2"},
		{"goals", "SALES_WRITERS", ""},
		{"webhooks", "WEBHOOKS_ALLOW_HTTP", "false"},
		{"webhooks", "WEBHOOKS_PORTS", "443,8443,9443"},
		{"webhooks", "OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.observe:4318/otlp"},
		{"goals", "MIGRATE", "off"},
		{"front", "LOG_LEVEL", "error"},
		{"front", "COMMISSIONS_URL", "http://" + name + "-commissions:8080"},
		{"front", "RATE_LIMIT", ""},
		{"front", "ADDR", ":8080"},
	} {
		given := named[*corev1.ConfigMap](r, name+"-"+row.program)
		if got := given.Data[row.variable]; got != row.want {
			t.Errorf("%s of %s is %q, want %q", row.variable, row.program, got, row.want)
		}
	}
	migrate := r.workload(t, "webhooks-migrate")
	if got := r.environment(t, migrate.pods.Spec.Containers[0])["WEBHOOKS_KEEP_DAYS"]; got != "60" {
		t.Errorf("the migration of webhooks keeps %q days", got)
	}
}

// readable tells whether the environment's reader makes a value of that Go type of a text.
func readable(kind, text string) (err error) {
	switch kind {
	case "string":
	case "int":
		_, err = strconv.Atoi(text)
	case "bool":
		_, err = strconv.ParseBool(text)
	case "time.Duration":
		_, err = time.ParseDuration(text)
	case "[]netip.Prefix":
		for _, one := range strings.Split(text, ",") {
			if _, err = netip.ParsePrefix(one); err != nil {
				return err
			}
		}
	default:
		err = fmt.Errorf("no setting has the type %s yet", kind)
	}
	return err
}

func TestEverySettingArrivesInAFormThatTheProgramReads(t *testing.T) {
	r := render(t, everything)
	for _, program := range programs {
		given := named[*corev1.ConfigMap](r, name+"-"+program).Data
		for setting := range schemaOf(t, "properties", "services", "properties", program, "properties", "settings", "properties") {
			text, found := given[setting]
			if !found {
				t.Errorf("nothing is set for %s of %s here: name it in everything", setting, program)
			} else if err := readable(variables(t, program)[setting], text); err != nil {
				t.Errorf("%s of %s: %v", setting, program, err)
			}
		}
	}
}

func TestAChangedSettingMakesNewPods(t *testing.T) {
	stamp := func(values string) string {
		return render(t, values).workload(t, "goals").pods.Annotations["partilha.dev/settings"]
	}
	before := stamp(``)
	if before == "" || stamp(`services: { goals: { settings: { GOALS_PER_TENANT: 7 } } }`) == before {
		t.Error("the pods stay as they are")
	}
	if stamp(`services: { sales: { settings: { SALES_WRITERS: 2 } } }`) != before {
		t.Error("a setting of sales makes new pods of goals")
	}
}

// workload is the one whose pods are a component.
func (r *rendered) workload(t *testing.T, component string) workload {
	t.Helper()
	all := r.workloads()
	i := slices.IndexFunc(all, func(w workload) bool { return w.component() == component })
	if i < 0 {
		t.Fatalf("nothing makes pods of %s", component)
	}
	return all[i]
}
