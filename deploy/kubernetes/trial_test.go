package kubernetes

import (
	"encoding/base64"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestATrialIsOffUnlessItIsAskedForAndSaysWhatItIs(t *testing.T) {
	for what, values := range valueSets {
		r := render(t, values)
		if asked := strings.Contains(values, "trial:"); asked != r.trial() || asked != (len(all[*appsv1.StatefulSet](r)) > 0) {
			t.Errorf("%s: a trial is %v", what, r.trial())
		}
		if r.trial() != strings.Contains(r.notes, "THIS IS A TRIAL") {
			t.Errorf("%s: whoever installs it reads %s", what, r.notes)
		}
	}
}

func TestTheServersOfATrialAreThoseOfDockerCompose(t *testing.T) {
	r := render(t, valueSets["a trial"])
	compose := readProject(t, "docker-compose.yml")
	for _, row := range []struct{ server, key, file string }{
		{"postgres", "roles.sql", "deploy/docker/roles.sql"},
		{"nats", "nats.conf", "deploy/nats/nats.conf"},
	} {
		want := readProject(t, row.file)
		if got := named[*corev1.ConfigMap](r, name+"-"+row.server).Data[row.key]; got != want {
			t.Errorf("%s of the trial is not %s; the chart keeps a copy in partilha/files", row.key, row.file)
		}
		container := r.workload(t, row.server).pods.Spec.Containers[0]
		if !strings.Contains(compose, "\n    image: "+container.Image+"\n") {
			t.Errorf("docker-compose.yml does not name the image %s", container.Image)
		}
		mounts := map[string]string{}
		for _, mount := range container.VolumeMounts {
			mounts[mount.Name] = mount.MountPath
		}
		given := r.environment(t, container)
		for _, variable := range regexp.MustCompile(`\$?\b[A-Z]+(_[A-Z]+)*_PASSWORD\b`).FindAllString(want, -1) {
			if _, found := given[strings.TrimPrefix(variable, "$")]; !found {
				t.Errorf("%s asks for %s, which the trial does not give", row.file, variable)
			}
		}
		if row.server == "nats" && !slices.Contains(container.Args, mounts["configuration"]+"/nats.conf") {
			t.Errorf("NATS is started with %q", container.Args)
		}
		if store := regexp.MustCompile(`store_dir: (\S+)`).FindStringSubmatch(want); store != nil && mounts["data"] != store[1] {
			t.Errorf("NATS keeps its streams in %s, and the volume is at %s", store[1], mounts["data"])
		}
	}
}

// A server whose disk was full answers 503 at /healthz for good, and takes nothing before
// it is restarted. One that only starts slowly is left alone.
func TestNATSOfATrialIsRestartedWhereItDoesNotRecover(t *testing.T) {
	container := render(t, valueSets["a trial"]).workload(t, "nats").pods.Spec.Containers[0]
	probe := container.LivenessProbe
	if probe == nil || probe.HTTPGet.Path != "/healthz" || probe.HTTPGet.Port.StrVal != "monitor" {
		t.Fatalf("NATS lives by %+v", probe)
	}
	if patience := probe.PeriodSeconds * probe.FailureThreshold; patience < 60 || patience > 300 || container.StartupProbe == nil {
		t.Errorf("NATS is restarted after %d seconds", patience)
	}
}

// TestEveryServiceSpeaksToNATSAsItsOwnUser holds both sides against deploy/nats/nats.conf:
// the URL that a trial makes, and the one that the values tell an operator to make.
func TestEveryServiceSpeaksToNATSAsItsOwnUser(t *testing.T) {
	r := render(t, valueSets["a trial"])
	passwords := named[*corev1.Secret](r, name+"-trial").Data
	users := map[string]string{}
	for _, found := range regexp.MustCompile(`user: ([a-z]+), password: \$([A-Z_]+)`).FindAllStringSubmatch(readProject(t, "deploy/nats/nats.conf"), -1) {
		users[found[1]] = found[2]
	}
	if len(users) != len(stores) {
		t.Errorf("NATS knows %v", users)
	}
	for _, store := range stores {
		secret := named[*corev1.Secret](r, name+"-"+store).Data
		variable, known := users[store]
		if want := "nats://" + store + ":" + string(passwords[variable]) + "@" + name + "-nats:4222"; !known || string(secret["NATS_URL"]) != want {
			t.Errorf("NATS_URL of %s is %s, want %s", store, secret["NATS_URL"], want)
		}
		role := string(passwords[strings.ToUpper(store)+"_DATABASE_PASSWORD"])
		if want := "postgres://" + store + ":" + role + "@" + name + "-postgres:5432/partilha_" + store + "?sslmode=disable"; string(secret["DATABASE_URL"]) != want {
			t.Errorf("DATABASE_URL of %s is %s, want %s", store, secret["DATABASE_URL"], want)
		}
	}
	values, err := os.ReadFile("partilha/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, told := range regexp.MustCompile(`nats://([a-z]+):`).FindAllStringSubmatch(string(values), -1) {
		if users[told[1]] == "" {
			t.Errorf("the values tell of the NATS user %s", told[1])
		}
	}
}

func TestTheSecretsOfATrialAreRandomAndGoodForTheirUse(t *testing.T) {
	secrets := func() map[string][]byte {
		return named[*corev1.Secret](renderAs(t, releaseName, valueSets["a trial"], nil), name+"-trial").Data
	}
	first, second := secrets(), secrets()
	seen := map[string]string{}
	for key, value := range first {
		text := string(value)
		if seen[text] != "" || text == string(second[key]) {
			t.Errorf("%s is that of %q, or of another installation", key, seen[text])
		}
		seen[text] = key
		switch {
		case strings.HasSuffix(key, "_SECRET_KEY"):
			if raw, err := base64.StdEncoding.DecodeString(text); err != nil || len(raw) != 32 {
				t.Errorf("%s is no key of 32 bytes: %v", key, err)
			}
		case !regexp.MustCompile(`^[a-z][A-Za-z0-9]{40,}$`).MatchString(text): // goes into a URL, and is no number to NATS
			t.Errorf("%s cannot stand in a URL or nats.conf", key)
		}
	}
}

func TestAnUpgradeOfATrialKeepsItsSecrets(t *testing.T) {
	before := render(t, valueSets["a trial"])
	kept := named[*corev1.Secret](before, name+"-trial")
	if kept.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Error("an uninstallation takes the secrets and leaves the volumes")
	}
	data := map[string]any{}
	for key, value := range kept.Data {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	after := renderAs(t, releaseName, valueSets["a trial"], template.FuncMap{
		"lookup": func(version, kind, space, named string) map[string]any {
			if version != "v1" || kind != "Secret" || space != namespace || named != kept.Name {
				t.Errorf("the chart looks for %s %s %s/%s", version, kind, space, named)
			}
			return map[string]any{"data": data}
		},
	})
	for _, secret := range all[*corev1.Secret](before) {
		for key, value := range secret.Data {
			if got := named[*corev1.Secret](after, secret.Name).Data[key]; string(got) != string(value) {
				t.Errorf("the upgrade changes %s of %s", key, secret.Name)
			}
		}
	}
}
