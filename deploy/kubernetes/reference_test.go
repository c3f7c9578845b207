package kubernetes

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// matches tells whether a selector selects these labels.
func matches(t *testing.T, selector *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Matches(labels.Set(of))
}

func (r *rendered) services() []*corev1.Service { return all[*corev1.Service](r) }

// selected are the components whose pods a selector selects.
func (r *rendered) selected(t *testing.T, selector *metav1.LabelSelector) (components []string) {
	t.Helper()
	for _, w := range r.workloads() {
		if matches(t, selector, w.pods.Labels) {
			components = append(components, w.component())
		}
	}
	return components
}

func TestEveryProgramIsThere(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		want, services := slices.Clone(programs), slices.Clone(programs)
		if r.trial() {
			want, services = append(want, "postgres", "nats"), append(services, "postgres", "nats")
		} else {
			for _, store := range stores {
				if r.text("restore") != "stop" {
					want = append(want, store+"-migrate")
				}
			}
		}
		if r.text("restore") == "catch-up" {
			want = append(want, restoreSteps...)
		}
		var found, answering []string
		for _, w := range r.workloads() {
			found = append(found, w.component())
		}
		for _, service := range r.services() {
			answering = append(answering, service.Labels["app.kubernetes.io/component"])
		}
		sameSet(t, "pods", found, want)
		sameSet(t, "services", answering, services)
	})
}

func TestEveryObjectHasANameOfItsOwnThatTheClusterAccepts(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		seen := map[string]bool{}
		for _, one := range r.objects {
			key := one.GetObjectKind().GroupVersionKind().Kind + "/" + one.GetName()
			if wrong := validation.IsDNS1035Label(one.GetName()); seen[key] || len(wrong) > 0 {
				t.Errorf("%s is there twice, or is wrong: %q", key, wrong)
			}
			seen[key] = true
			for label, value := range one.GetLabels() {
				if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 || value == "" {
					t.Errorf("%s: the label %s is %q: %q", key, label, value, wrong)
				}
			}
		}
	})
}

func TestEveryNameFitsWhateverTheReleaseIsCalled(t *testing.T) {
	for release, want := range map[string]string{
		"partilha":              "partilha",
		"shop":                  "shop-partilha",
		"partilha-eu":           "partilha-eu",
		strings.Repeat("r", 53): strings.Repeat("r", 31) + "-partilha", // Helm allows no longer one
	} {
		r := renderAs(t, release, valueSets["it scales"], nil)
		for _, one := range r.objects {
			if !strings.HasPrefix(one.GetName(), want) || len(validation.IsDNS1035Label(one.GetName())) > 0 {
				t.Errorf("the release %s has an object %s", release, one.GetName())
			}
		}
		if got := volumeOf(r.workload(t, "goals").pods.Spec, "secrets").Secret.SecretName; got != want+"-goals" {
			t.Errorf("the release %s asks for the Secret %s", release, got)
		}
	}
}

func TestNamesThatLookLikeNumbersStayNames(t *testing.T) {
	r := render(t, `
image: { tag: "1.0", pullSecrets: ["1"] }
settings: { TRUSTED_PROXIES: "10.0.0.0/8" }
services: { sales: { secret: "2026" } }
certificateAuthority: { configMap: "2", key: "3" }
ingress: { className: "4", host: "5", tlsSecret: "6" }
priorityClassName: "7"
`)
	spec := r.workload(t, "sales").pods.Spec
	if spec.PriorityClassName != "7" || spec.ImagePullSecrets[0].Name != "1" || volumeOf(spec, "secrets").Secret.SecretName != "2026" || volumeOf(spec, "ca").ConfigMap.Name != "2" {
		t.Errorf("%+v", spec)
	}
}

func TestEverySelectorSelectsItsOwnPodsAndNoOthers(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		own := func(what string, one metav1.Object, selector *metav1.LabelSelector) {
			t.Helper()
			component := one.GetLabels()["app.kubernetes.io/component"]
			if got := r.selected(t, selector); !slices.Equal(got, []string{component}) {
				t.Errorf("%s %s selects the pods of %q", what, one.GetName(), got)
			}
		}
		for _, w := range r.workloads() {
			if w.selector != nil {
				own("workload", w, w.selector)
			}
			for _, spread := range w.pods.Spec.TopologySpreadConstraints {
				own("topology spread of", w, spread.LabelSelector)
			}
			for _, label := range []string{"app.kubernetes.io/instance", "app.kubernetes.io/name"} {
				if w.pods.Labels[label] == "" {
					t.Errorf("the pods of %s have no %s", w, label)
				}
			}
		}
		for _, service := range r.services() {
			own("service", service, &metav1.LabelSelector{MatchLabels: service.Spec.Selector})
		}
		for _, budget := range all[*policyv1.PodDisruptionBudget](r) {
			own("budget", budget, budget.Spec.Selector)
		}
	})
}

func TestEveryServiceLeadsToAPortOfItsPods(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		for _, service := range r.services() {
			pods := r.workload(t, service.Labels["app.kubernetes.io/component"]).pods
			for _, port := range service.Spec.Ports {
				if !slices.ContainsFunc(pods.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
					return p.Name == port.TargetPort.StrVal && p.ContainerPort == port.Port
				}) {
					t.Errorf("service %s: no port %s of its pods is %d", service.Name, port.TargetPort.StrVal, port.Port)
				}
			}
		}
	})
}

func TestEveryProgramMayLoseOnePodAtATime(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		for _, program := range programs {
			budget := named[*policyv1.PodDisruptionBudget](r, name+"-"+program)
			if budget == nil || budget.Spec.MaxUnavailable == nil || budget.Spec.MaxUnavailable.IntValue() != 1 {
				t.Errorf("%s has no budget of one pod", program)
			}
			deployment := named[*appsv1.Deployment](r, name+"-"+program)
			if rolling := deployment.Spec.Strategy.RollingUpdate; rolling == nil || rolling.MaxUnavailable.IntValue() != 0 {
				t.Errorf("an upgrade takes a pod of %s away before another is ready", program)
			}
		}
	})
}

func TestWhatScalesIsADeploymentThatDoesNotSayHowManyPodsItHas(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		for _, program := range programs {
			deployment := named[*appsv1.Deployment](r, name+"-"+program)
			scaler := named[*autoscalingv2.HorizontalPodAutoscaler](r, name+"-"+program)
			on := r.value("services", program, "autoscaling", "enabled") == true && r.text("restore") == ""
			if on != (scaler != nil) || on != (deployment.Spec.Replicas == nil) {
				t.Errorf("%s: autoscaling is %v, the scaler %v, the replicas %v", program, on, scaler != nil, deployment.Spec.Replicas)
			}
		}
		for _, scaler := range all[*autoscalingv2.HorizontalPodAutoscaler](r) {
			target := named[*appsv1.Deployment](r, scaler.Spec.ScaleTargetRef.Name)
			if target == nil || scaler.Spec.ScaleTargetRef.Kind != "Deployment" || scaler.Spec.ScaleTargetRef.APIVersion != "apps/v1" {
				t.Errorf("%s scales %+v, which is not there", scaler.Name, scaler.Spec.ScaleTargetRef)
				continue
			}
			if target.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s goes by a share of a request that is not made", scaler.Name)
			}
			if *scaler.Spec.MinReplicas > scaler.Spec.MaxReplicas {
				t.Errorf("%s: from %d to %d", scaler.Name, *scaler.Spec.MinReplicas, scaler.Spec.MaxReplicas)
			}
		}
	})
	if scalers := all[*autoscalingv2.HorizontalPodAutoscaler](render(t, valueSets["it scales"])); len(scalers) != len(programs) {
		t.Errorf("%d programs scale, want all", len(scalers))
	}
}

// outside are the Secrets and ConfigMaps that the values name, or leave to their
// default, and that somebody else makes.
func (r *rendered) outside() (secrets, configMaps map[string]bool) {
	secrets, configMaps = map[string]bool{}, map[string]bool{}
	for _, store := range stores {
		if given := r.text("services", store, "secret"); given != "" {
			secrets[given] = true
		} else if !r.trial() {
			secrets[name+"-"+store] = true
		}
	}
	if given := r.text("ingress", "tlsSecret"); given != "" {
		secrets[given] = true
	}
	if given := r.text("certificateAuthority", "configMap"); given != "" {
		configMaps[given] = true
	}
	pull, _ := r.value("image", "pullSecrets").([]any)
	for _, one := range pull {
		secrets[one.(string)] = true
	}
	return secrets, configMaps
}

func TestWhateverAPodRefersToIsThereOrSaidToBe(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		secrets, configMaps := r.outside()
		keys := map[string][]string{} // of what the chart makes
		for _, one := range all[*corev1.Secret](r) {
			keys["secret "+one.Name] = slices.Collect(maps.Keys(one.Data))
		}
		for _, one := range all[*corev1.ConfigMap](r) {
			keys["config "+one.Name] = slices.Collect(maps.Keys(one.Data))
		}
		needs := func(w workload, kind, name string, wanted ...string) {
			t.Helper()
			if kind == "secret" && secrets[name] || kind == "config" && configMaps[name] {
				return
			}
			made, found := keys[kind+" "+name]
			if !found {
				t.Errorf("%s needs the %s %s, which nobody makes", w, kind, name)
			}
			for _, key := range wanted {
				if found && !slices.Contains(made, key) {
					t.Errorf("%s needs %s of %s %s, which has %q", w, key, kind, name, made)
				}
			}
		}
		for _, w := range r.workloads() {
			spec := w.pods.Spec
			for _, one := range spec.ImagePullSecrets {
				needs(w, "secret", one.Name)
			}
			var volumes []string
			for _, volume := range spec.Volumes {
				volumes = append(volumes, volume.Name)
				if volume.Secret != nil {
					for _, item := range volume.Secret.Items {
						needs(w, "secret", volume.Secret.SecretName, item.Key)
					}
				}
				if volume.ConfigMap != nil {
					needs(w, "config", volume.ConfigMap.Name)
				}
			}
			if set, ok := w.object.(*appsv1.StatefulSet); ok {
				for _, claim := range set.Spec.VolumeClaimTemplates {
					volumes = append(volumes, claim.Name)
				}
				if named[*corev1.Service](r, set.Spec.ServiceName) == nil {
					t.Errorf("%s has no service %s", w, set.Spec.ServiceName)
				}
			}
			var mounted []string
			for _, container := range spec.Containers {
				for _, mount := range container.VolumeMounts {
					mounted = append(mounted, mount.Name)
				}
				for _, from := range container.EnvFrom {
					needs(w, "config", from.ConfigMapRef.Name)
				}
				for _, one := range container.Env {
					if one.ValueFrom != nil {
						needs(w, "secret", one.ValueFrom.SecretKeyRef.Name, one.ValueFrom.SecretKeyRef.Key)
					}
				}
			}
			sameSet(t, w.String()+" mounts", mounted, volumes)
		}
	})
}
