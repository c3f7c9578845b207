package kubernetes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func TestEveryPodIsWhatPodSecurityCallsRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	withEach(t, func(t *testing.T, r *rendered) {
		for _, w := range r.workloads() {
			if verdict := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &w.pods.ObjectMeta, &w.pods.Spec)); !verdict.Allowed {
				t.Errorf("%s: %s: %s", w, verdict.ForbiddenReason(), verdict.ForbiddenDetail())
			}
		}
	})
}

// TestAContainerCanDoNoMoreThanItNeeds asks for what Pod Security does not.
func TestAContainerCanDoNoMoreThanItNeeds(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		for _, w := range r.workloads() {
			spec := w.pods.Spec
			if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
				t.Errorf("%s has a token of the cluster", w)
			}
			if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
				t.Errorf("%s finds other services in its environment", w)
			}
			if user := spec.SecurityContext.RunAsUser; user == nil || *user < 999 {
				t.Errorf("%s runs as user %v", w, user)
			}
			if len(spec.Containers) != 1 || len(spec.InitContainers) != 0 {
				t.Errorf("%s has other containers than one", w)
			}
			for _, container := range spec.Containers {
				context := container.SecurityContext
				if context.ReadOnlyRootFilesystem == nil || !*context.ReadOnlyRootFilesystem {
					t.Errorf("%s can write to its root", w)
				}
				if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() || container.Resources.Limits.Memory().IsZero() {
					t.Errorf("%s takes what it likes: %v", w, container.Resources)
				}
				for _, mount := range container.VolumeMounts {
					if volumeOf(spec, mount.Name).Secret != nil && !mount.ReadOnly {
						t.Errorf("%s can write to its secrets", w)
					}
				}
			}
		}
	})
}

func volumeOf(spec corev1.PodSpec, name string) (found corev1.Volume) {
	for _, volume := range spec.Volumes {
		if volume.Name == name {
			found = volume
		}
	}
	return found
}

func TestOnlyATrialHasSecretsInTheChart(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		if made := len(all[*corev1.Secret](r)); (made > 0) != r.trial() {
			t.Errorf("the chart makes %d Secrets", made)
		}
	})
}
