package kubernetes

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	networkingv1 "k8s.io/api/networking/v1"

	release "helm.sh/helm/v4/pkg/release/v1"
)

func TestAPodIsAskedWhatTellsOfIt(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		for _, program := range programs {
			container := r.workload(t, program).pods.Spec.Containers[0]
			ready := "/readyz"
			if program == "front" { // it tells of the others, so it must be reached when they are not ready
				ready = "/healthz"
			}
			if got := container.ReadinessProbe.HTTPGet; got.Path != ready || got.Port.StrVal != "http" {
				t.Errorf("%s: readiness asks %+v", program, got)
			}
			// A service without PostgreSQL is as healthy as it can be: to restart it helps nobody.
			for _, probe := range []string{container.LivenessProbe.HTTPGet.Path, container.StartupProbe.HTTPGet.Path} {
				if probe != "/healthz" {
					t.Errorf("%s: a pod lives by %s", program, probe)
				}
			}
			// What /readyz may take, and what a service that waits for another's migration may.
			if container.ReadinessProbe.TimeoutSeconds <= 2 || container.StartupProbe.PeriodSeconds*container.StartupProbe.FailureThreshold < 60 {
				t.Errorf("%s: the probes have no patience", program)
			}
			if !slices.Equal(container.Args, []string{"serve"}) || container.Command != nil {
				t.Errorf("%s runs %q %q", program, container.Command, container.Args)
			}
		}
	})
}

func TestAPodHasTheTimeThatItsEndTakes(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		attempt := seconds(t, "services/webhooks/client.go", "attemptTimeout")
		if given := r.text("services", "webhooks", "settings", "WEBHOOKS_TIMEOUT"); given != "" {
			var err error
			if attempt, err = time.ParseDuration(given); err != nil {
				t.Fatal(err)
			}
		}
		for _, program := range programs {
			spec := r.workload(t, program).pods.Spec
			stop := spec.Containers[0].Lifecycle.PreStop.Sleep
			if stop == nil || stop.Seconds < 1 {
				t.Fatalf("%s ends while the cluster still sends it calls", program)
			}
			needs := time.Duration(stop.Seconds)*time.Second + endTakes(t, attempt)
			if has := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second; has < needs+5*time.Second {
				t.Errorf("%s has %s to end, and needs up to %s", program, has, needs)
			}
		}
	})
}

// endTakes is how long a program may take to end by its own promises, where an attempt
// to send a webhook takes so long.
func endTakes(t *testing.T, attempt time.Duration) time.Duration {
	t.Helper()
	return seconds(t, "pkg/web/server.go", "drainWithin") + attempt +
		seconds(t, "services/webhooks/dispatch.go", "recordGrace") + seconds(t, "pkg/service/main.go", "flushWithin")
}

func TestAContainerOfDockerComposeHasTheTimeThatItsEndTakes(t *testing.T) {
	given := regexp.MustCompile(`stop_grace_period: \$\{STOP_GRACE:-(.+)\}`).FindStringSubmatch(readProject(t, "docker-compose.yml"))
	if given == nil {
		t.Fatal("docker-compose.yml names no STOP_GRACE")
	}
	has, err := time.ParseDuration(given[1])
	if needs := endTakes(t, seconds(t, "services/webhooks/client.go", "attemptTimeout")); err != nil || has < needs+5*time.Second {
		t.Errorf("a service has %s to end, and needs up to %s: %v", has, needs, err)
	}
}

func TestEveryDatabaseIsMigratedBeforeAnythingChanges(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		if r.trial() { // its PostgreSQL is not there before; the services migrate as they start
			if jobs := all[*batchv1.Job](r); len(jobs) > 0 || len(r.hooks) > 0 {
				t.Errorf("%d migrations wait for a server that is installed after them", len(jobs))
			}
			for _, store := range stores {
				if got := r.environment(t, r.workload(t, store).pods.Spec.Containers[0])["MIGRATE"]; got != "on" {
					t.Errorf("%s has MIGRATE=%s", store, got)
				}
			}
			return
		}
		if r.text("restore") == "stop" { // the databases may be gone
			if len(r.hooks) > 0 {
				t.Errorf("%d hooks need databases that are to be replaced", len(r.hooks))
			}
			return
		}
		for _, store := range stores {
			hook := r.hooks["Job/"+name+"-"+store+"-migrate"]
			if hook == nil || !slices.Equal(hook.Events, []release.HookEvent{release.HookPreInstall, release.HookPreUpgrade}) ||
				!slices.Contains(hook.DeletePolicies, release.HookBeforeHookCreation) || slices.Contains(hook.DeletePolicies, release.HookFailed) {
				t.Fatalf("the migration of %s is %+v", store, hook)
			}
			job := named[*batchv1.Job](r, name+"-"+store+"-migrate")
			container := job.Spec.Template.Spec.Containers[0]
			if !slices.Equal(container.Args, []string{"migrate"}) || job.Spec.ActiveDeadlineSeconds == nil {
				t.Errorf("%s runs %q", job.Name, container.Args)
			}
			serving := named[*appsv1.Deployment](r, name+"-"+store).Spec.Template.Spec.Containers[0]
			if serving.Image != container.Image {
				t.Errorf("%s is migrated by %s and served by %s", store, container.Image, serving.Image)
			}
			// Of a first installation nothing is there yet but the hooks.
			if len(container.EnvFrom) > 0 {
				t.Errorf("%s needs a ConfigMap that comes after it", job.Name)
			}
			for _, policy := range all[*networkingv1.NetworkPolicy](r) {
				other := r.hooks["NetworkPolicy/"+policy.Name]
				if other != nil && other.Weight >= hook.Weight {
					t.Errorf("%s runs before %s lets it", job.Name, policy.Name)
				}
			}
		}
	})
}

func TestNobodyServesWhileDatabasesAreRestored(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		for _, program := range programs {
			replicas := named[*appsv1.Deployment](r, name+"-"+program).Spec.Replicas
			if none := replicas != nil && *replicas == 0; none != (r.text("restore") != "") {
				t.Errorf("%s: that it has no pods is %v", program, none)
			}
		}
	})
}

// TestARestoreRunsWhatTheRunbookSaysInItsOrder takes the commands of docker compose in the
// runbook; those that migrate are hooks of their own, before all others.
func TestARestoreRunsWhatTheRunbookSaysInItsOrder(t *testing.T) {
	r := render(t, valueSets["a restore"])
	var ran []string
	for i, component := range restoreSteps {
		job := r.workload(t, component)
		container := job.pods.Spec.Containers[0]
		ran = append(ran, job.program()+" "+strings.Join(container.Args, " "))
		hook := r.hooks["Job/"+job.GetName()]
		if hook == nil || hook.Weight != i || !slices.Equal(hook.Events, []release.HookEvent{release.HookPostInstall, release.HookPostUpgrade}) ||
			!slices.Equal(hook.DeletePolicies, []release.HookDeletePolicy{release.HookBeforeHookCreation}) {
			t.Errorf("the hook of %s is %+v", component, hook)
		}
		serving := named[*appsv1.Deployment](r, name+"-"+job.program()).Spec.Template.Spec.Containers[0]
		if container.Image != serving.Image || !maps.Equal(r.environment(t, container), r.environment(t, serving)) {
			t.Errorf("%s is another program than what serves, or has other settings", component)
		}
		if addresses := r.portsTo(t, component, "8.8.8.8"); len(addresses) > 0 {
			t.Errorf("%s reaches the world at the ports %v, and must send nothing", component, addresses)
		}
	}
	var want []string
	for _, told := range regexp.MustCompile(`(?m)^\$ docker compose run --rm (\w+ (?:catch-up|restored now))\b`).FindAllStringSubmatch(readProject(t, "deploy/RUNBOOK.md"), -1) {
		want = append(want, told[1])
	}
	if !slices.Equal(ran, want) {
		t.Errorf("the chart runs %q, the runbook %q", ran, want)
	}
}

func TestPodsOfOneProgramKeepApart(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		for _, program := range programs {
			var over []string
			for _, spread := range r.workload(t, program).pods.Spec.TopologySpreadConstraints {
				over = append(over, spread.TopologyKey)
			}
			sameSet(t, program, over, []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone"})
		}
	})
}
