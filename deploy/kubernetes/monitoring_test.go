package kubernetes

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The Prometheus operator's types, as far as the chart uses them.
type (
	serviceMonitor struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			JobLabel  string               `json:"jobLabel"`
			Selector  metav1.LabelSelector `json:"selector"`
			Endpoints []struct {
				Port        string `json:"port"`
				Interval    string `json:"interval"`
				Relabelings []struct {
					SourceLabels []string `json:"sourceLabels"`
					TargetLabel  string   `json:"targetLabel"`
				} `json:"relabelings"`
			} `json:"endpoints"`
		} `json:"spec"`
	}

	prometheusRule struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Groups []struct {
				Name  string `json:"name"`
				Rules []rule `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}

	rule struct {
		Record      string            `json:"record"`
		Alert       string            `json:"alert"`
		Expr        string            `json:"expr"`
		For         string            `json:"for"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	}
)

func (m *serviceMonitor) DeepCopyObject() runtime.Object { one := *m; return &one }
func (r *prometheusRule) DeepCopyObject() runtime.Object { one := *r; return &one }

func addMonitoring(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}
	scheme.AddKnownTypeWithName(version.WithKind("ServiceMonitor"), &serviceMonitor{})
	scheme.AddKnownTypeWithName(version.WithKind("PrometheusRule"), &prometheusRule{})
	return nil
}

func TestPrometheusFindsEveryProgramByTheLabelOfTheDashboards(t *testing.T) {
	r := render(t, everything)
	monitor := named[*serviceMonitor](r, name)
	if monitor == nil {
		t.Fatal("there is no ServiceMonitor")
	}
	var found []string
	for _, service := range r.services() {
		if matches(t, &monitor.Spec.Selector, service.Labels) {
			found = append(found, service.Labels["app.kubernetes.io/component"])
		}
		if service.Labels[monitor.Spec.JobLabel] != "partilha" {
			t.Errorf("the job of %s is not partilha", service.Name)
		}
	}
	sameSet(t, "the services that are asked", found, programs)
	endpoint := monitor.Spec.Endpoints[0]
	if endpoint.Port != "http" || endpoint.Relabelings[0].TargetLabel != "service" ||
		endpoint.Relabelings[0].SourceLabels[0] != "__meta_kubernetes_service_label_app_kubernetes_io_component" {
		t.Errorf("%+v", endpoint)
	}
	if monitor.Labels["release"] != "prometheus" {
		t.Errorf("Prometheus does not find it by its labels: %v", monitor.Labels)
	}
}

// rulesOf are all rules that the chart gives to Prometheus.
func (r *rendered) rulesOf() (rules []rule) {
	for _, one := range all[*prometheusRule](r) {
		for _, group := range one.Spec.Groups {
			rules = append(rules, group.Rules...)
		}
	}
	return rules
}

func TestTheRulesAreThoseOfDockerCompose(t *testing.T) {
	files, err := filepath.Glob("../docker/observe/rules/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of rules: %v", len(files), err)
	}
	for _, file := range files {
		what := strings.TrimSuffix(filepath.Base(file), ".yml")
		if what == "edge" { // of docker compose alone
			continue
		}
		want := readProject(t, "deploy/docker/observe/rules/"+what+".yml")
		if readProject(t, "deploy/kubernetes/partilha/files/rules/"+what+".yml") != want {
			t.Errorf("files/rules/%[1]s.yml of the chart is not deploy/docker/observe/rules/%[1]s.yml, of which it keeps a copy", what)
		}
		found := named[*prometheusRule](render(t, everything), name+"-"+what)
		if found == nil {
			t.Fatalf("there is no PrometheusRule of %s.yml", what)
		}
		if found.Labels["release"] != "prometheus" {
			t.Errorf("Prometheus does not find it by its labels: %v", found.Labels)
		}
		var rendered int
		for _, group := range found.Spec.Groups {
			rendered += len(group.Rules)
		}
		if written := len(regexp.MustCompile(`(?m)^ +- (alert|record): `).FindAllString(want, -1)); rendered != written || written == 0 {
			t.Errorf("%d of %d rules of %s.yml are rendered", rendered, written, what)
		}
	}
	if rules := render(t, ``).rulesOf(); len(rules) > 0 {
		t.Errorf("nobody asks for rules, and there are %d", len(rules))
	}
}

func TestEveryRecordedNameThatAnAlertAsksForIsRecorded(t *testing.T) {
	rules := render(t, everything).rulesOf()
	recorded, asked := map[string]bool{}, 0
	for _, one := range rules {
		recorded[one.Record] = true
	}
	for _, one := range rules {
		for _, used := range regexp.MustCompile(`\b[a-z_]+:[a-z0-9_:]+`).FindAllString(one.Expr, -1) {
			asked++
			if !recorded[used] {
				t.Errorf("%s%s asks for %s, which nothing records", one.Alert, one.Record, used)
			}
		}
	}
	if asked == 0 {
		t.Error("no rule asks for anything that is recorded")
	}
}

func TestTheLabelsThatAlertsGoByAreThoseThatTheServiceMonitorGives(t *testing.T) {
	r := render(t, everything)
	monitor := named[*serviceMonitor](r, name)
	given := map[string][]string{}
	for _, service := range r.services() {
		if !matches(t, &monitor.Spec.Selector, service.Labels) {
			continue
		}
		given["job"] = append(given["job"], service.Labels[monitor.Spec.JobLabel])
		for _, relabeling := range monitor.Spec.Endpoints[0].Relabelings {
			for label, value := range service.Labels {
				meta := "__meta_kubernetes_service_label_" + regexp.MustCompile(`[^a-zA-Z0-9_]`).ReplaceAllString(label, "_")
				if slices.Equal(relabeling.SourceLabels, []string{meta}) {
					given[relabeling.TargetLabel] = append(given[relabeling.TargetLabel], value)
				}
			}
		}
	}
	asked := map[string]bool{}
	for _, one := range r.rulesOf() {
		for _, matcher := range regexp.MustCompile(`\b(job|service)=~?"([^"]*)"`).FindAllStringSubmatch(one.Expr, -1) {
			asked[matcher[1]] = true
			for value := range strings.SplitSeq(matcher[2], "|") {
				if !slices.Contains(given[matcher[1]], value) {
					t.Errorf("%s asks for %s, and the ServiceMonitor gives %q", one.Alert, matcher[0], given[matcher[1]])
				}
			}
		}
	}
	if !asked["job"] || !asked["service"] {
		t.Errorf("alerts ask only for %v", asked)
	}
}
