// Package check holds what an operator is given to see by (alert rules, dashboards, the
// runbook) against Prometheus' own library and against what the services export. It is
// a module of its own: Prometheus brings more along than the services may have.
//
// There is nothing in it but tests.
package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	_ "github.com/prometheus/prometheus/discovery/dns" // prometheus.yml finds its targets so
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	configFile = "../prometheus.yml"
	metricFile = "../metrics.txt" // deploy/e2e keeps it as the services are
	dashboards = "../dashboards/*.json"
	runbook    = "../../../RUNBOOK.md"
)

var promQL = parser.NewParser(parser.Options{})

// ruleFiles are the files that prometheus.yml names, which must be correct.
func ruleFiles(t *testing.T) []string {
	t.Helper()
	read, err := config.LoadFile(configFile, false, promslog.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, pattern := range read.RuleFiles {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s names %s, of which there are %d: %v", configFile, pattern, len(found), err)
		}
		files = append(files, found...)
	}
	return files
}

// rulesOf are all rules of all files, which must be correct.
func rulesOf(t *testing.T) (all []rulefmt.Rule) {
	t.Helper()
	for _, file := range ruleFiles(t) {
		groups, errs := rulefmt.ParseFile(file, false, model.LegacyValidation, promQL, promslog.NewNopLogger())
		for _, err := range errs {
			t.Errorf("%v", err)
		}
		if groups == nil {
			t.FailNow()
		}
		for _, group := range groups.Groups {
			all = append(all, group.Rules...)
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d rules", len(all))
	}
	return all
}

// alertsOf are those of the rules that wake somebody.
func alertsOf(t *testing.T) (alerts []rulefmt.Rule) {
	t.Helper()
	for _, rule := range rulesOf(t) {
		if rule.Alert != "" {
			alerts = append(alerts, rule)
		}
	}
	return alerts
}

// labelSet are the names of labels.
type labelSet map[string]bool

func (s labelSet) with(names ...string) labelSet {
	all := labelSet{}
	for name := range s {
		all[name] = true
	}
	for _, name := range names {
		all[name] = true
	}
	return all
}

// scraped are the labels that Prometheus adds to whatever it scrapes, as prometheus.yml
// says.
var scraped = labelSet{"job": true, "instance": true, "service": true}

// exported are the series that Prometheus has, with their labels: what the services
// export, what it says of its targets, and what the rules record.
func exported(t *testing.T) map[string]labelSet {
	t.Helper()
	text, err := os.ReadFile(metricFile)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]labelSet{"up": scraped, "ALERTS": labelSet{}.with("alertname", "alertstate", "severity")}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] == "#" {
			continue
		}
		kind, name, labels := fields[1], fields[2], scraped.with(fields[3:]...)
		if kind != "histogram" {
			known[name] = labels
			continue
		}
		known[name+"_bucket"] = labels.with("le")
		known[name+"_sum"], known[name+"_count"] = labels, labels
	}
	for _, rule := range rulesOf(t) {
		if rule.Record == "" {
			continue
		}
		labels, wrong := labelsOf(rule.Expr, known)
		for _, what := range wrong {
			t.Errorf("%s: %s", rule.Record, what)
		}
		known[rule.Record] = labels
	}
	return known
}
