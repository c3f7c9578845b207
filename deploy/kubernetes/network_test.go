package kubernetes

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// policiesOf are the NetworkPolicies that hold for the pods of a workload.
func (r *rendered) policiesOf(t *testing.T, w workload) (found []*networkingv1.NetworkPolicy) {
	t.Helper()
	for _, policy := range all[*networkingv1.NetworkPolicy](r) {
		if matches(t, &policy.Spec.PodSelector, w.pods.Labels) {
			found = append(found, policy)
		}
	}
	return found
}

// egress are the rules by which the pods of a component may speak to somebody.
func (r *rendered) egress(t *testing.T, component string) (rules []networkingv1.NetworkPolicyEgressRule) {
	t.Helper()
	for _, policy := range r.policiesOf(t, r.workload(t, component)) {
		rules = append(rules, policy.Spec.Egress...)
	}
	return rules
}

func withNetworkPolicies(t *testing.T, test func(*testing.T, *rendered)) {
	withEach(t, func(t *testing.T, r *rendered) {
		if r.value("networkPolicy", "enabled") == true {
			test(t, r)
		} else if len(all[*networkingv1.NetworkPolicy](r)) > 0 {
			t.Error("there are network policies, and nobody wants them")
		}
	})
}

func TestEveryPodHearsAndSpeaksOnlyByARule(t *testing.T) {
	withNetworkPolicies(t, func(t *testing.T, r *rendered) {
		for _, policy := range all[*networkingv1.NetworkPolicy](r) {
			both := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
			if !slices.Equal(policy.Spec.PolicyTypes, both) {
				t.Errorf("%s is for %v", policy.Name, policy.Spec.PolicyTypes)
			}
			if len(r.selected(t, &policy.Spec.PodSelector)) == 0 {
				t.Errorf("%s selects nobody", policy.Name)
			}
			for _, rule := range policy.Spec.Ingress {
				if len(rule.Ports) == 0 {
					t.Errorf("%s opens every port", policy.Name)
				}
			}
		}
		for _, w := range r.workloads() {
			// One that forbids everything, and one that allows what the component needs.
			if len(r.policiesOf(t, w)) != 2 {
				t.Errorf("%d policies select the pods of %s", len(r.policiesOf(t, w)), w)
			}
		}
	})
}

// permits tells whether a rule lets pods speak to an address that is no pod's.
func permits(t *testing.T, rule networkingv1.NetworkPolicyEgressRule, address string) bool {
	t.Helper()
	within := func(cidr string) bool {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			t.Fatal(err)
		}
		return prefix.Contains(netip.MustParseAddr(address))
	}
	if len(rule.To) == 0 {
		return true
	}
	return slices.ContainsFunc(rule.To, func(peer networkingv1.NetworkPolicyPeer) bool {
		return peer.IPBlock != nil && within(peer.IPBlock.CIDR) && !slices.ContainsFunc(peer.IPBlock.Except, within)
	})
}

// portsTo are the ports at which the pods of a component reach an address; 0 is every port.
func (r *rendered) portsTo(t *testing.T, component, address string) (ports []int) {
	t.Helper()
	for _, rule := range r.egress(t, component) {
		if !permits(t, rule, address) {
			continue
		}
		if len(rule.Ports) == 0 {
			ports = append(ports, 0)
		}
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.IntValue())
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

func TestOnlyWebhooksGoOutToTheWorld(t *testing.T) {
	r := render(t, ``)
	for _, w := range r.workloads() {
		for _, address := range []string{"8.8.8.8", "2606:4700::1111"} {
			var want []int
			if w.component() == "webhooks" {
				want = []int{443, 8443}
			}
			if got := r.portsTo(t, w.component(), address); !slices.Equal(got, want) {
				t.Errorf("%s reaches %s at the ports %v, want %v", w.component(), address, got, want)
			}
		}
		// Where a cloud tells its machines their credentials.
		for _, address := range []string{"169.254.169.254", "fd00:ec2::254", "168.63.129.16"} {
			if got := r.portsTo(t, w.component(), address); slices.Contains(got, 80) || slices.Contains(got, 443) || slices.Contains(got, 0) {
				t.Errorf("%s reaches %s at the ports %v", w.component(), address, got)
			}
		}
	}
}

func TestNobodyOfATrialButWebhooksLeavesTheCluster(t *testing.T) {
	r := render(t, valueSets["a trial"])
	for _, w := range r.workloads() {
		for _, address := range []string{"8.8.8.8", "10.1.2.3"} {
			if got := r.portsTo(t, w.component(), address); len(got) > 0 && (w.component() != "webhooks" || address != "8.8.8.8") {
				t.Errorf("%s reaches %s at the ports %v", w.component(), address, got)
			}
		}
	}
}

func TestThePolicyForbidsWhatTheWebhooksServiceRefuses(t *testing.T) {
	var except []string
	for _, rule := range render(t, ``).egress(t, "webhooks") {
		for _, peer := range rule.To {
			if peer.IPBlock != nil {
				except = append(except, peer.IPBlock.Except...)
			}
		}
	}
	var refused []string
	for _, list := range []string{"refusedV4", "refusedV6"} {
		refused = append(refused, texts(t, expression(t, "services/webhooks/dial.go", list))...)
	}
	sameSet(t, "the networks that are left out", except, refused)
}

func TestTheSettingsOfWebhooksOpenWhatTheyName(t *testing.T) {
	for _, row := range []struct {
		settings, address string
		want              []int
	}{
		{`{ WEBHOOKS_PORTS: "443, 9443" }`, "8.8.8.8", []int{443, 9443}},
		{`{ WEBHOOKS_ALLOW_HTTP: true }`, "8.8.8.8", []int{80, 443, 8443}},
		{`{ WEBHOOKS_ALLOW_HTTP: true, WEBHOOKS_PORTS: "443" }`, "8.8.8.8", []int{443}},
		{`{ WEBHOOKS_ALLOW_HTTP: false }`, "8.8.8.8", []int{443, 8443}},
		{`{ WEBHOOKS_PORTS: "*" }`, "8.8.8.8", []int{0}},
		{`{ WEBHOOKS_ALLOW_NETS: "10.9.0.0/16,fd12::/64" }`, "10.9.1.1", []int{443, 4222, 5432, 8443}},
		{`{ WEBHOOKS_ALLOW_NETS: "10.9.0.0/16,fd12::/64" }`, "fd12::1", []int{443, 4222, 5432, 8443}},
		{`{ WEBHOOKS_ALLOW_NETS: "10.9.0.0/16, fd12::/64" }`, "fd12::1", []int{443, 4222, 5432, 8443}},
		{`{ WEBHOOKS_ALLOW_NETS: "10.9.0.0/16" }`, "10.8.1.1", []int{4222, 5432}},
	} {
		r := render(t, `services: { webhooks: { settings: `+row.settings+` } }`)
		if got := r.portsTo(t, "webhooks", row.address); !slices.Equal(got, row.want) {
			t.Errorf("%s: %s is reached at the ports %v, want %v", row.settings, row.address, got, row.want)
		}
	}
}

// reaches tells whether a rule lets somebody speak to these pods at a port.
func reaches(t *testing.T, rule networkingv1.NetworkPolicyEgressRule, pods map[string]string, port int) bool {
	t.Helper()
	return slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntValue() == port }) &&
		slices.ContainsFunc(rule.To, func(peer networkingv1.NetworkPolicyPeer) bool {
			return peer.PodSelector != nil && peer.NamespaceSelector == nil && matches(t, peer.PodSelector, pods)
		})
}

// hears tells whether the pods of a component listen at a port to these pods beside them.
func (r *rendered) hears(t *testing.T, component string, from map[string]string, port int) bool {
	t.Helper()
	for _, policy := range r.policiesOf(t, r.workload(t, component)) {
		for _, rule := range policy.Spec.Ingress {
			if reaches(t, networkingv1.NetworkPolicyEgressRule{Ports: rule.Ports, To: rule.From}, from, port) {
				return true
			}
		}
	}
	return false
}

func TestWhoNeedsSomebodyBesideThemReachesThem(t *testing.T) {
	r := render(t, `{ trial: { enabled: true }, networkPolicy: { callers: [{ ipBlock: { cidr: 10.1.0.0/24 } }] } }`)
	type way struct {
		from, to string
		port     int
	}
	open := map[way]bool{}
	for _, store := range stores {
		open[way{"front", store, 8080}] = true
		open[way{store, "postgres", 5432}] = true
		open[way{store, "nats", 4222}] = true
	}
	for _, from := range r.workloads() {
		for _, to := range r.workloads() {
			for _, port := range []int{8080, 5432, 4222, 8222} {
				speaks := slices.ContainsFunc(r.egress(t, from.component()), func(rule networkingv1.NetworkPolicyEgressRule) bool {
					return reaches(t, rule, to.pods.Labels, port)
				})
				hears := r.hears(t, to.component(), from.pods.Labels, port)
				if want := open[way{from.component(), to.component(), port}]; speaks != want || hears != want {
					t.Errorf("%s to %s at %d: it may speak: %v, it may be heard: %v, want %v", from.component(), to.component(), port, speaks, hears, want)
				}
			}
		}
	}
}

func TestEverybodyFindsNamesAndServicesReachTheirServers(t *testing.T) {
	withNetworkPolicies(t, func(t *testing.T, r *rendered) {
		for _, w := range r.workloads() {
			ports := map[int]corev1.Protocol{}
			for _, rule := range r.egress(t, w.component()) {
				for _, port := range rule.Ports {
					ports[port.Port.IntValue()] = *port.Protocol
				}
			}
			var want []int
			switch program := w.program(); {
			case program == "":
			case program == "front":
				want = []int{53, 8080}
			case strings.HasSuffix(w.component(), "-migrate"):
				want = []int{53, 5432}
			default:
				want = []int{53, 5432, 4222}
				if r.text("tracing", "endpoint") != "" {
					want = append(want, 4318)
				}
			}
			for _, port := range want {
				if _, found := ports[port]; !found {
					t.Errorf("%s cannot reach port %d", w, port)
				}
			}
			if len(want) == 0 && len(ports) > 0 {
				t.Errorf("%s may speak to %v", w, ports)
			}
		}
	})
}

func TestTheCollectorIsReachedAtThePortOfItsAddress(t *testing.T) {
	for endpoint, want := range map[string]int{
		"http://collector:4318": 4318, "http://collector": 80, "https://collector/otlp": 443, "http://[fd00::1]:4318": 4318, "http://[fd00::1]": 80,
	} {
		r := render(t, `{ tracing: { endpoint: "`+endpoint+`" }, networkPolicy: { traces: { to: [{ podSelector: { matchLabels: { app: collector } } }] } } }`)
		if !slices.ContainsFunc(r.egress(t, "goals"), func(rule networkingv1.NetworkPolicyEgressRule) bool {
			return reaches(t, rule, map[string]string{"app": "collector"}, want)
		}) {
			t.Errorf("%s: port %d is closed", endpoint, want)
		}
	}
}

func TestOnlyTheCallersOfTheValuesAreHeard(t *testing.T) {
	r := render(t, `networkPolicy: { callers: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: ingress } } }] }`)
	for _, program := range programs {
		for _, policy := range r.policiesOf(t, r.workload(t, program)) {
			for _, rule := range policy.Spec.Ingress {
				for _, peer := range rule.From {
					ofValues := peer.NamespaceSelector != nil && matches(t, peer.NamespaceSelector, map[string]string{"kubernetes.io/metadata.name": "ingress"}) &&
						!matches(t, peer.NamespaceSelector, map[string]string{})
					ofFront := peer.NamespaceSelector == nil && peer.PodSelector != nil &&
						slices.Equal(r.selected(t, peer.PodSelector), []string{"front"}) && program != "front"
					if !ofValues && !ofFront {
						t.Errorf("%s hears %+v", program, peer)
					}
				}
			}
		}
	}
	for _, policy := range all[*networkingv1.NetworkPolicy](render(t, `networkPolicy: { callers: [] }`)) {
		for _, rule := range policy.Spec.Ingress {
			if len(rule.From) > 0 {
				t.Errorf("%s hears only %+v, where everybody may call", policy.Name, rule.From)
			}
		}
	}
}
