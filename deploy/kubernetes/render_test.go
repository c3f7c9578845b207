package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

const releaseName, namespace = "shop", "payments"

// name is what the chart puts in front of every object's name.
const name = releaseName + "-partilha"

// object is any of the Kubernetes types.
type object interface {
	runtime.Object
	metav1.Object
}

// rendered is what Helm would install.
type rendered struct {
	values  map[string]any // the given ones on top of the defaults
	objects []object       // hooks among them
	hooks   map[string]*release.Hook
	notes   string
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir("partilha")
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// tryRender renders the chart with the values of a YAML text, into the text of each file.
func tryRender(t *testing.T, values string) (map[string]any, map[string]string, error) {
	t.Helper()
	return tryRenderAs(t, releaseName, values, nil)
}

// tryRenderAs is tryRender for a release of another name, where some functions of the
// templates are others.
func tryRenderAs(t *testing.T, called, values string, functions template.FuncMap) (map[string]any, map[string]string, error) {
	t.Helper()
	given, err := loader.LoadValues(strings.NewReader(values))
	if err != nil {
		t.Fatal(err)
	}
	loaded := loadChart(t)
	all, err := util.ToRenderValues(loaded, given, common.ReleaseOptions{Name: called, Namespace: namespace, Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, nil, err
	}
	files, err := engine.Engine{Strict: true, CustomTemplateFuncs: functions}.Render(loaded, all)
	merged, _ := all["Values"].(common.Values)
	return merged, files, err
}

// renders are what render has made, by the values; nobody changes it.
var renders sync.Map

// render is renderAs for the usual release with the templates' own functions. The same values are rendered once.
func render(t *testing.T, values string) *rendered {
	t.Helper()
	if r, found := renders.Load(values); found {
		return r.(*rendered)
	}
	r := renderAs(t, releaseName, values, nil)
	renders.Store(values, r)
	return r
}

// renderAs renders the chart and reads every document. It fails the test where one has
// a member that its type lacks, or has a member twice.
func renderAs(t *testing.T, called, values string, functions template.FuncMap) *rendered {
	t.Helper()
	merged, files, err := tryRenderAs(t, called, values, functions)
	if err != nil {
		t.Fatal(err)
	}
	r := &rendered{values: merged, hooks: map[string]*release.Hook{}}
	for path, text := range files {
		if strings.HasSuffix(path, "NOTES.txt") {
			r.notes = text
			delete(files, path)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		t.Fatal(err)
	}
	read := func(path, text string) {
		one, err := decode(text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, text)
		}
		r.objects = append(r.objects, one)
	}
	for _, manifest := range manifests {
		read(manifest.Name, manifest.Content)
	}
	for _, hook := range hooks {
		r.hooks[hook.Kind+"/"+hook.Name] = hook
		read(hook.Path, hook.Manifest)
	}
	return r
}

var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme, addMonitoring,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

func decode(text string) (object, error) {
	raw, _, err := decoder.Decode([]byte(text), nil, nil)
	if err != nil {
		return nil, err
	}
	one, ok := raw.(object)
	if !ok {
		return nil, fmt.Errorf("%T has no name", raw)
	}
	return one, nil
}

// all are the rendered objects of one type.
func all[T object](r *rendered) (found []T) {
	for _, one := range r.objects {
		if typed, ok := one.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// named is the rendered object of one type and name; the zero value if there is none.
func named[T object](r *rendered, name string) (found T) {
	of := all[T](r)
	if i := slices.IndexFunc(of, func(one T) bool { return one.GetName() == name }); i >= 0 {
		found = of[i]
	}
	return found
}

// workload is something that makes pods.
type workload struct {
	object
	pods     corev1.PodTemplateSpec
	selector *metav1.LabelSelector // nil: a Job, which chooses its own
}

func (w workload) String() string { return fmt.Sprintf("%T %s", w.object, w.GetName()) }

// component is which part of the platform the pods are.
func (w workload) component() string { return w.pods.Labels["app.kubernetes.io/component"] }

func (r *rendered) workloads() (found []workload) {
	for _, d := range all[*appsv1.Deployment](r) {
		found = append(found, workload{d, d.Spec.Template, d.Spec.Selector})
	}
	for _, s := range all[*appsv1.StatefulSet](r) {
		found = append(found, workload{s, s.Spec.Template, s.Spec.Selector})
	}
	for _, j := range all[*batchv1.Job](r) {
		found = append(found, workload{j, j.Spec.Template, nil})
	}
	return found
}

// value looks up a value of the chart: "trial", "enabled".
func (r *rendered) value(path ...string) any {
	var at any = r.values
	for _, key := range path {
		switch level := at.(type) {
		case map[string]any:
			at = level[key]
		case common.Values:
			at = level[key]
		default:
			return nil
		}
	}
	return at
}

// text is a value that is a text, "" where there is none.
func (r *rendered) text(path ...string) string {
	text, _ := r.value(path...).(string)
	return text
}

// restoreSteps are the components that a restore runs, in its order.
var restoreSteps = []string{"sales-catch-up", "goals-catch-up", "commissions-catch-up", "webhooks-restored", "webhooks-catch-up"}

func (r *rendered) trial() bool { return r.value("trial", "enabled") == true }
