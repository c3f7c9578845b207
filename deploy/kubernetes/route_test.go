package kubernetes

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// routed is the program that the Ingress sends a path to; "" where nothing answers. The
// longest rule counts, and an exact one before a prefix, as Kubernetes has it.
func (r *rendered) routed(t *testing.T, path string) string {
	t.Helper()
	target, longest := "", -1
	for _, rule := range all[*networkingv1.Ingress](r)[0].Spec.Rules {
		for _, to := range rule.HTTP.Paths {
			exact := *to.PathType == networkingv1.PathTypeExact && path == to.Path
			prefix := *to.PathType == networkingv1.PathTypePrefix && (path == to.Path || strings.HasPrefix(path, to.Path+"/"))
			length := 2 * len(to.Path)
			if exact {
				length++
			}
			if (exact || prefix) && length > longest {
				target, longest = strings.TrimPrefix(to.Backend.Service.Name, name+"-"), length
			}
		}
	}
	return target
}

// edge is the program that deploy/docker/Caddyfile sends a path to: the first matcher
// that has it, else sales.
func edge(t *testing.T) (matchers map[string][]string, route func(path string) string) {
	t.Helper()
	matchers = map[string][]string{}
	for _, found := range regexp.MustCompile(`(?m)^\s*@([a-z]+) path (.*)$`).FindAllStringSubmatch(readProject(t, "deploy/docker/Caddyfile"), -1) {
		matchers[found[1]] = strings.Fields(found[2])
	}
	return matchers, func(path string) string {
		for program, patterns := range matchers {
			if slices.ContainsFunc(patterns, func(pattern string) bool {
				prefix, open := strings.CutSuffix(pattern, "*")
				return path == pattern || open && strings.HasPrefix(path, prefix)
			}) {
				return program
			}
		}
		return "sales"
	}
}

func TestTheIngressRoutesWhatTheEdgeDoes(t *testing.T) {
	r := render(t, ``)
	matchers, route := edge(t)
	sameSet(t, "the programs that the edge names", []string{"commissions", "goals", "webhooks", "front"}, slices.Collect(maps.Keys(matchers)))

	// Prefix by prefix: PATH and PATH/* there are the Prefix PATH here.
	for program, patterns := range matchers {
		var edges, prefixes []string
		for _, pattern := range patterns {
			edges = append(edges, strings.TrimSuffix(pattern, "/*"))
		}
		for _, rule := range all[*networkingv1.Ingress](r)[0].Spec.Rules {
			for _, to := range rule.HTTP.Paths {
				if to.Backend.Service.Name == name+"-"+program {
					prefixes = append(prefixes, to.Path)
				}
			}
		}
		slices.Sort(edges)
		sameSet(t, "the prefixes of "+program, prefixes, slices.Compact(edges))
	}

	// Address by address: all that the services document.
	documented := regexp.MustCompile(`(?m)^  (/[^:]+):`)
	count := 0
	for _, store := range stores {
		for _, found := range documented.FindAllStringSubmatch(readProject(t, "services/"+store+"/openapi.yaml"), -1) {
			path := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(found[1], "x")
			for _, path := range []string{path, path + "/", path + "/more"} {
				if got, want := r.routed(t, path), route(path); got != want || strings.HasPrefix(path, "/api") && !strings.Contains(path, "/more") && got != store {
					t.Errorf("%s goes to %q, at the edge to %q, and is of %s", path, got, want, store)
				}
			}
			count++
		}
	}
	if count < 40 {
		t.Errorf("only %d addresses are documented", count)
	}
	for _, path := range []string{"/openapi.json", "/openapi/sales.json", "/docs", "/healthz", "/readyz"} {
		if got := r.routed(t, path); got != "front" || route(path) != "front" {
			t.Errorf("%s goes to %q, at the edge to %q", path, got, route(path))
		}
	}
}

func TestWhatIsMeasuredIsNotForTheWorld(t *testing.T) {
	r := render(t, ``)
	for _, path := range []string{"/metrics", "/metrics/", "/", "/debug/pprof", "/api", "/apis", "/docs/metrics", "/api/v1metrics"} {
		if got := r.routed(t, path); got != "" {
			t.Errorf("%s goes to %s", path, got)
		}
	}
}

func TestTheIngressLeadsToServicesThatAreThere(t *testing.T) {
	withEach(t, func(t *testing.T, r *rendered) {
		found := all[*networkingv1.Ingress](r)
		if (len(found) == 1) != (r.value("ingress", "enabled") == true) {
			t.Fatalf("there are %d Ingresses", len(found))
		}
		for _, ingress := range found {
			for _, rule := range ingress.Spec.Rules {
				if rule.Host != r.text("ingress", "host") {
					t.Errorf("the host is %q", rule.Host)
				}
				for _, to := range rule.HTTP.Paths {
					backend := to.Backend.Service
					if !slices.ContainsFunc(r.services(), func(s *corev1.Service) bool {
						return s.Name == backend.Name && s.Spec.Ports[0].Name == backend.Port.Name
					}) {
						t.Errorf("%s leads to %+v", to.Path, backend)
					}
				}
			}
			if secret := r.text("ingress", "tlsSecret"); secret != "" {
				if tls := ingress.Spec.TLS; len(tls) != 1 || tls[0].SecretName != secret || !slices.Equal(tls[0].Hosts, []string{r.text("ingress", "host")}) {
					t.Errorf("TLS is %+v", tls)
				}
			} else if len(ingress.Spec.TLS) > 0 {
				t.Errorf("TLS is %+v", ingress.Spec.TLS)
			}
		}
	})
}
