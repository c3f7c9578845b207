package e2e

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"partilha.dev/deploy/e2e/stage"

	"partilha.dev/pkg/testkit"
)

var update = flag.Bool("update", false, "write the list of metrics anew")

// metricList is what alert rules and dashboards are held against, where the services
// themselves do not run.
const metricList = "deploy/docker/observe/metrics.txt"

const metricListHead = `# Every metric that a service exports, with its labels, as its /metrics tells once it has done
# all that it does. Written by: go test ./deploy/e2e -run TheListOfMetrics -update
`

var (
	metricType   = regexp.MustCompile(`(?m)^# TYPE (partilha_\w+|process_resident_memory_bytes) (\w+)$`)
	metricLabel  = regexp.MustCompile(`(\w+)="`)
	metricSeries = `(?m)^%s(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`
)

// exportedBy lists what a service exports: its name, and the kind, the name and the labels
// of each metric.
func exportedBy(t *testing.T, p *stage.Platform, service string) (lines []string) {
	t.Helper()
	scrape := string(p.SystemAddress(t, service, "/metrics").Body)
	for _, found := range metricType.FindAllStringSubmatch(scrape, -1) {
		name, kind := found[1], found[2]
		labels := map[string]bool{}
		for _, series := range regexp.MustCompile(fmt.Sprintf(metricSeries, name)).FindAllStringSubmatch(scrape, -1) {
			for _, label := range metricLabel.FindAllStringSubmatch(series[1], -1) {
				labels[label[1]] = label[1] != "le"
			}
		}
		maps.DeleteFunc(labels, func(_ string, told bool) bool { return !told })
		lines = append(lines, strings.Join(append([]string{service, kind, name}, slices.Sorted(maps.Keys(labels))...), " "))
	}
	return lines
}

func TestTheListOfMetricsIsWhatTheServicesExport(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	stage.Books{Platform: p, Shop: shop}.Settle(t, shop.SellMany(t, "order", 2))
	list := func() string {
		var lines []string
		for _, service := range stage.Services {
			lines = append(lines, exportedBy(t, p, service)...)
		}
		return metricListHead + strings.Join(lines, "\n") + "\n"
	}
	if *update {
		testkit.Eventually(t, stage.Soon, "every consumer tells its lag", func() bool { return strings.Count(list(), "partilha_consumer_lag") == 3 })
		if err := os.WriteFile(filepath.Join(root, metricList), []byte(list()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, got := readProject(t, metricList), ""
	defer func() {
		if got != want {
			t.Logf("the services export\n%s", got)
		}
	}()
	// Some are told only after seconds, as lag is.
	testkit.Eventually(t, stage.Soon, metricList+" is what the services export; -update writes it anew", func() bool {
		got = list()
		return got == want
	})
}

// TestNoMetricNamesATenantOrAnAddress looks for what would make a series of every tenant,
// or of every path that somebody asks for.
func TestNoMetricNamesATenantOrAnAddress(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	stage.Books{Platform: p, Shop: shop}.Settle(t, shop.SellMany(t, "order", 2))
	nowhere := "/api/v1/sales/" + shop.PartnerID
	shop.Must(t, 404, "GET", nowhere, nil)
	shop.Must(t, 404, "GET", "/api/v1/of-nobody", nil)
	for _, service := range stage.Services {
		scrape := string(p.SystemAddress(t, service, "/metrics").Body)
		for _, told := range []string{shop.TenantID, shop.PartnerID, shop.KeyID, shop.EndpointID, shop.GoalID, "of-nobody"} {
			if strings.Contains(scrape, told) {
				t.Errorf("the metrics of %s name %s", service, told)
			}
		}
	}
}
