package check

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

func TestEveryRuleAsksForWhatTheServicesExport(t *testing.T) {
	known := exported(t)
	used := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, alert := range alertsOf(t) {
		labels, wrong := labelsOf(alert.Expr, known)
		for _, what := range wrong {
			t.Errorf("%s: %s", alert.Alert, what)
		}
		for _, annotation := range alert.Annotations {
			for _, found := range used.FindAllStringSubmatch(annotation, -1) {
				if !labels[found[1]] {
					t.Errorf("%s tells of a label %s that it does not have", alert.Alert, found[1])
				}
			}
		}
	}
}

// board is as much of a dashboard as is checked here.
type board struct {
	UID, Title string
	Panels     []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
}

func TestEveryDashboardAsksForWhatTheServicesExport(t *testing.T) {
	known := exported(t)
	files, err := filepath.Glob(dashboards)
	if err != nil || len(files) == 0 {
		t.Fatalf("%d dashboards: %v", len(files), err)
	}
	legend := regexp.MustCompile(`{{\s*(\w+)\s*}}`)
	titles := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var b board
		if err := json.Unmarshal(text, &b); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if b.UID == "" || titles[b.UID] != "" || len(b.Panels) == 0 {
			t.Errorf("%s has %d panels and the uid %q of %q", file, len(b.Panels), b.UID, titles[b.UID])
		}
		titles[b.UID] = b.Title
		for _, panel := range b.Panels {
			if len(panel.Targets) == 0 {
				t.Errorf("%s, %s: it shows nothing", file, panel.Title)
			}
			for _, target := range panel.Targets {
				labels, wrong := labelsOf(target.Expr, known)
				for _, what := range wrong {
					t.Errorf("%s, %s: %s", file, panel.Title, what)
				}
				for _, found := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
					if !labels[found[1]] {
						t.Errorf("%s, %s: the legend names the label %s, which %s does not have", file, panel.Title, found[1], target.Expr)
					}
				}
			}
		}
	}
}

func TestTheCheckFindsWhatIsNotExported(t *testing.T) {
	known := exported(t)
	for expression, complaint := range map[string]string{
		`partilha_outbox_penned`:                                               `there is no metric "partilha_outbox_penned"`,
		`rate(partilha_http_request_seconds[5m])`:                              `there is no metric "partilha_http_request_seconds"`,
		`partilha_outbox_pending{queue="SALES"}`:                               `partilha_outbox_pending has no label queue`,
		`sum by (tenant) (partilha_outbox_pending)`:                            `partilha_outbox_pending has no label tenant to be grouped by`,
		`sum by (stream) (sum by (service) (partilha_outbox_pending))`:         `sum by (service) (partilha_outbox_pending) has no label stream to be grouped by`,
		`histogram_quantile(0.5, rate(partilha_http_request_seconds_sum[5m]))`: `histogram_quantile(0.5, rate(partilha_http_request_seconds_sum[5m])) has no buckets`,
	} {
		if _, wrong := labelsOf(expression, known); len(wrong) != 1 || wrong[0] != complaint {
			t.Errorf("of %s it says %q, want %q", expression, wrong, complaint)
		}
	}
}
