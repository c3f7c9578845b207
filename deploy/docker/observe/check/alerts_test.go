package check

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// row is a course of things, and what an alert says at its end.
type row struct {
	alert, when string
	after       time.Duration
	series      []string // with a sample for each minute, as promtool reads them
	want        []string // summaries; none: it does not fire
}

func up(services ...string) (series []string) {
	for _, service := range services {
		series = append(series, `up{job="partilha",service="`+service+`",instance="a"} 1x60`)
	}
	return series
}

var courses = []row{
	{"ServiceDown", "while all are up", 10 * time.Minute, up("sales", "commissions", "goals", "webhooks", "front"), nil},
	{"ServiceDown", "when one is no target any more", 10 * time.Minute, up("sales", "commissions", "webhooks", "front"), []string{"No replica of goals answers."}},
	{"ServiceDown", "when one of two replicas answers", 10 * time.Minute,
		append(up("sales", "commissions", "goals", "webhooks", "front"), `up{job="partilha",service="sales",instance="b"} 0x60`), nil},
	{"ServiceDown", "when all replicas are silent", 10 * time.Minute,
		append(up("commissions", "goals", "webhooks", "front"), `up{job="partilha",service="sales",instance="a"} 1 0x60`), []string{"No replica of sales answers."}},
	{"ServiceDown", "when the front is no target any more", 10 * time.Minute, up("sales", "commissions", "goals", "webhooks"), []string{"No replica of front answers."}},
	{"ServiceDown", "when the front is silent", 10 * time.Minute,
		append(up("sales", "commissions", "goals", "webhooks"), `up{job="partilha",service="front",instance="a"} 1 0x60`), []string{"No replica of front answers."}},
	{"EdgeDown", "while it answers", 10 * time.Minute, []string{`up{job="edge",service="edge",instance="edge:8078"} 1x60`}, nil},
	{"EdgeDown", "where there is none", 10 * time.Minute, up("sales"), nil},
	{"EdgeDown", "when it is silent", 10 * time.Minute, []string{`up{job="edge",service="edge",instance="edge:8078"} 1 0x60`},
		[]string{"The edge does not answer; nobody outside reaches anything."}},
	{"ReplicaDown", "after two minutes", 2 * time.Minute, []string{`up{job="partilha",service="sales",instance="b:8080"} 0x60`}, nil},
	{"ReplicaDown", "after six minutes", 6 * time.Minute, []string{`up{job="partilha",service="sales",instance="b:8080"} 0x60`},
		[]string{"b:8080 of sales does not answer."}},
	{"NATSAway", "while it is there", 10 * time.Minute, []string{`partilha_nats_connected{client="goals",service="goals"} 1x60`}, nil},
	{"NATSAway", "during a short break", 10 * time.Minute, []string{`partilha_nats_connected{client="goals",service="goals"} 1x8 0 1x9`}, nil},
	{"NATSAway", "when it stays away", 10 * time.Minute, []string{`partilha_nats_connected{client="goals",service="goals"} 1 0x60`},
		[]string{"goals does not reach NATS; events wait."}},
	{"KeysUnheard", "while the bucket is followed", 10 * time.Minute, []string{`partilha_keys_heard_timestamp_seconds{bucket="keys",service="webhooks"} 0+60x60`}, nil},
	{"KeysUnheard", "when nothing is heard any more", 10 * time.Minute, []string{`partilha_keys_heard_timestamp_seconds{bucket="keys",service="webhooks"} 0+60x5 300x60`},
		[]string{"webhooks has heard nothing of keys for 5m 0s and refuses what moves money."}},
	{"PoolExhausted", "while calls wait now and then", 15 * time.Minute, []string{`partilha_pool_wait_seconds_total{pool="sales",service="sales"} 0+6x60`}, nil},
	{"PoolExhausted", "while two calls wait all the time", 15 * time.Minute, []string{`partilha_pool_wait_seconds_total{pool="sales",service="sales"} 0+120x60`},
		[]string{"Calls of sales wait for a connection to PostgreSQL."}},
	{"PartitionsNotMade", "an hour after", 60 * time.Minute, []string{`partilha_partitions_maintained_timestamp_seconds{schema="outbox",service="sales"} 0x90`}, nil},
	{"PartitionsNotMade", "seven hours after", 60 * time.Minute, []string{`partilha_partitions_maintained_timestamp_seconds{schema="outbox",service="sales"} -21600x90`},
		[]string{"sales has made no days for outbox since six hours."}},

	{"RequestsFail", "when 1 % fails", 15 * time.Minute, []string{
		`partilha_http_request_seconds_count{service="goals",method="GET",route="/x",status="200"} 0+99x60`,
		`partilha_http_request_seconds_count{service="goals",method="GET",route="/x",status="500"} 0+1x60`}, nil},
	{"RequestsFail", "when the callers are wrong", 15 * time.Minute, []string{
		`partilha_http_request_seconds_count{service="goals",method="GET",route="/x",status="200"} 0+1x60`,
		`partilha_http_request_seconds_count{service="goals",method="GET",route="/x",status="422"} 0+99x60`}, nil},
	{"RequestsFail", "when a tenth fails", 15 * time.Minute, []string{
		`partilha_http_request_seconds_count{service="goals",method="GET",route="/x",status="200"} 0+90x60`,
		`partilha_http_request_seconds_count{service="goals",method="GET",route="/y",status="503"} 0+10x60`},
		[]string{"goals answers 10% of its calls with 5xx."}},
	{"SalesFail", "while sales are recorded, repeated and refused", 15 * time.Minute, []string{
		`partilha_sales_reports_total{kind="sale",result="recorded"} 0+50x60`, `partilha_sales_reports_total{kind="sale",result="repeated"} 0+25x60`,
		`partilha_sales_reports_total{kind="sale",result="refused"} 0+25x60`, `partilha_sales_reports_total{kind="sale",result="failed"} 0x60`}, nil},
	{"SalesFail", "when a quarter of the refunds fails", 15 * time.Minute, []string{
		`partilha_sales_reports_total{kind="sale",result="recorded"} 0+50x60`, `partilha_sales_reports_total{kind="sale",result="failed"} 0x60`,
		`partilha_sales_reports_total{kind="refund",result="recorded"} 0+75x60`, `partilha_sales_reports_total{kind="refund",result="failed"} 0+25x60`},
		[]string{"25% of the reports of a refund cannot be recorded."}},
	{"SalesSlow", "when all take a tenth of a second", 20 * time.Minute, []string{
		`partilha_http_request_seconds_bucket{service="sales",method="POST",route="/api/v1/sales",status="201",le="0.1"} 0+100x60`,
		`partilha_http_request_seconds_bucket{service="sales",method="POST",route="/api/v1/sales",status="201",le="5"} 0+100x60`,
		`partilha_http_request_seconds_bucket{service="sales",method="POST",route="/api/v1/sales",status="201",le="+Inf"} 0+100x60`}, nil},
	{"SalesSlow", "when lists are slow", 20 * time.Minute, []string{
		`partilha_http_request_seconds_bucket{service="sales",method="GET",route="/api/v1/sales",status="200",le="2.5"} 0x60`,
		`partilha_http_request_seconds_bucket{service="sales",method="GET",route="/api/v1/sales",status="200",le="+Inf"} 0+100x60`}, nil},
	{"SalesSlow", "when a tenth takes longer", 20 * time.Minute, []string{
		`partilha_http_request_seconds_bucket{service="sales",method="POST",route="/api/v1/sales",status="201",le="0.1"} 0+90x60`,
		`partilha_http_request_seconds_bucket{service="sales",method="POST",route="/api/v1/sales",status="201",le="2.5"} 0+90x60`,
		`partilha_http_request_seconds_bucket{service="sales",method="POST",route="/api/v1/sales",status="201",le="5"} 0+100x60`,
		`partilha_http_request_seconds_bucket{service="sales",method="POST",route="/api/v1/sales",status="201",le="+Inf"} 0+100x60`},
		[]string{"One of a hundred sales takes 4.75s to be answered."}},

	{"OutboxStuck", "while all is published", 15 * time.Minute, []string{`partilha_outbox_oldest_seconds{service="sales",stream="SALES"} 2x60`}, nil},
	{"OutboxStuck", "when one event waits longer and longer", 5 * time.Minute, []string{`partilha_outbox_oldest_seconds{service="sales",stream="SALES"} 0+60x60`},
		[]string{"An event of SALES has waited 5m 0s to be published."}},
	{"OutboxDeep", "while half as many wait", 15 * time.Minute, []string{`partilha_outbox_pending{service="sales",stream="SALES"} 50000x60`}, nil},
	{"OutboxDeep", "when the count has come to its end", 15 * time.Minute, []string{`partilha_outbox_pending{service="sales",stream="SALES"} 100000x60`},
		[]string{"At least 100000 events of SALES are not published."}},
	{"StreamRepaired", "while nothing is lost", 30 * time.Minute, []string{`partilha_outbox_repairs_total{service="sales",stream="SALES"} 3x60`}, nil},
	{"StreamRepaired", "after a repair", 30 * time.Minute, []string{`partilha_outbox_repairs_total{service="sales",stream="SALES"} 3x20 4x40`},
		[]string{"SALES lacked events, or may have; they were published again."}},
	{"StreamRepaired", "an hour after a repair", 60 * time.Minute, []string{`partilha_outbox_repairs_total{service="sales",stream="SALES"} 3x2 4x60`}, nil},
	{"StreamLacked", "while nothing is missing", 30 * time.Minute, []string{`partilha_reconcile_missing_total{service="sales",stream="SALES"} 0x60`}, nil},
	{"StreamLacked", "after one was missing", 30 * time.Minute, []string{`partilha_reconcile_missing_total{service="sales",stream="SALES"} 0x20 1x40`},
		[]string{"SALES lacked events in its middle; they were published again."}},
	{"NotCompared", "while one of two replicas does it", 30 * time.Minute, []string{
		`partilha_reconcile_compared_timestamp_seconds{service="sales",instance="a",stream="SALES"} 0x60`,
		`partilha_reconcile_compared_timestamp_seconds{service="sales",instance="b",stream="SALES"} 0+60x60`}, nil},
	{"NotCompared", "when it stopped", 30 * time.Minute, []string{`partilha_reconcile_compared_timestamp_seconds{service="sales",stream="SALES"} 600x60`},
		[]string{"The outbox of SALES has not been compared with its stream for 20m 0s."}},
	{"WindowsDiffer", "while all agree", 10 * time.Minute, []string{`partilha_reconcile_windows_differing{service="goals",stream="SALES",consumer="goals-count"} 0x60`}, nil},
	{"WindowsDiffer", "when two replicas tell of the same two", 10 * time.Minute, []string{
		`partilha_reconcile_windows_differing{service="goals",instance="a",stream="SALES",consumer="goals-count"} 2x60`,
		`partilha_reconcile_windows_differing{service="goals",instance="b",stream="SALES",consumer="goals-count"} 2x60`},
		[]string{"goals-count has not what SALES told, in 2 windows."}},
	{"ConsumerStands", "while it works off what there is", 20 * time.Minute, []string{
		`partilha_consumer_lag{service="goals",consumer="goals-count"} 70x60`, `partilha_events_handled_total{service="goals",consumer="goals-count"} 0+10x60`}, nil},
	{"ConsumerStands", "while there is nothing to do", 20 * time.Minute, []string{
		`partilha_consumer_lag{service="goals",consumer="goals-count"} 0x60`, `partilha_events_handled_total{service="goals",consumer="goals-count"} 10x60`}, nil},
	{"ConsumerStands", "when another works in its place", 20 * time.Minute, []string{
		`partilha_consumer_lag{service="goals",consumer="goals-count"} 70x60`, `partilha_events_handled_total{service="goals",consumer="goals-count"} 10x60`,
		`partilha_events_handled_total{service="webhooks",consumer="webhooks-goals"} 0+10x60`},
		[]string{"goals-count has 70 events to handle and handles none."}},
	{"ConsumerLags", "while a thousand wait", 30 * time.Minute, []string{`partilha_consumer_lag{service="goals",consumer="goals-count"} 1000x60`}, nil},
	{"ConsumerLags", "when twenty thousand wait", 30 * time.Minute, []string{`partilha_consumer_lag{service="goals",consumer="goals-count"} 20000x60`},
		[]string{"goals-count is 20000 events behind."}},
	{"EventsRetried", "while some come again", 30 * time.Minute, []string{`partilha_events_retried_total{service="goals",consumer="goals-count"} 0+6x60`}, nil},
	{"EventsRetried", "when hundreds come again", 30 * time.Minute, []string{`partilha_events_retried_total{service="goals",consumer="goals-count"} 0+600x60`},
		[]string{"goals-count fails again and again."}},
	{"EventsParked", "while none is", 10 * time.Minute, []string{`partilha_parked_events{service="commissions",consumer="commissions-earn"} 0x60`}, nil},
	{"EventsParked", "when two replicas tell of the same three", 10 * time.Minute, []string{
		`partilha_parked_events{service="commissions",instance="a",consumer="commissions-earn"} 3x60`,
		`partilha_parked_events{service="commissions",instance="b",consumer="commissions-earn"} 3x60`},
		[]string{"3 events of commissions-earn wait for you."}},

	{"WebhooksWait", "while they leave", 20 * time.Minute, []string{`partilha_webhook_oldest_ready_seconds{service="webhooks"} 1x60`}, nil},
	{"WebhooksWait", "when the oldest waits", 20 * time.Minute, []string{`partilha_webhook_oldest_ready_seconds{service="webhooks"} 0+60x60`},
		[]string{"A webhook has waited 20m 0s to be sent."}},
	{"WebhooksFail", "when a few receivers are broken", 40 * time.Minute, []string{
		`partilha_webhook_deliveries_total{service="webhooks",result="delivered"} 0+90x60`, `partilha_webhook_deliveries_total{service="webhooks",result="failed"} 0+10x60`,
		`partilha_webhook_deliveries_total{service="webhooks",result="skipped"} 0x60`}, nil},
	{"WebhooksFail", "when most fail, whatever is skipped", 40 * time.Minute, []string{
		`partilha_webhook_deliveries_total{service="webhooks",result="delivered"} 0+20x60`, `partilha_webhook_deliveries_total{service="webhooks",result="failed"} 0+80x60`,
		`partilha_webhook_deliveries_total{service="webhooks",result="skipped"} 0+900x60`},
		[]string{"80% of all webhooks fail."}},
	{"WebhooksUnknown", "while workers live", 20 * time.Minute, []string{`partilha_webhook_deliveries_total{service="webhooks",result="unknown"} 4x60`}, nil},
	{"WebhooksUnknown", "when one has died", 20 * time.Minute, []string{`partilha_webhook_deliveries_total{service="webhooks",result="unknown"} 4x10 8x50`},
		[]string{"Of 4.286 webhooks nobody knows whether they arrived."}},
}

func TestAlertsFireWhenTheyShouldAndOnlyThen(t *testing.T) {
	files := ruleFiles(t)
	for _, course := range courses {
		t.Run(course.alert+" "+course.when, func(t *testing.T) {
			if got := firing(t, files, course); !slices.Equal(got, course.want) {
				t.Errorf("it says %q, want %q", got, course.want)
			}
		})
	}
}

func TestEachAlertIsSeenToFireAndNotToFire(t *testing.T) {
	seen := map[string][2]bool{}
	for _, course := range courses {
		both := seen[course.alert]
		both[min(len(course.want), 1)] = true
		seen[course.alert] = both
	}
	for _, alert := range alertsOf(t) {
		if seen[alert.Alert] != [2]bool{true, true} {
			t.Errorf("of %s it is not tested both that it fires and that it does not", alert.Alert)
		}
		delete(seen, alert.Alert)
	}
	for name := range seen {
		t.Errorf("there is no alert %s", name)
	}
}

// firing evaluates all rules for each minute of the course and returns the summaries of the
// alert that fires at its end.
func firing(t *testing.T, files []string, course row) (summaries []string) {
	t.Helper()
	history, err := promqltest.NewLazyLoader("load 1m\n  "+strings.Join(course.series, "\n  "),
		promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer history.Close()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:  rules.EngineQueryFunc(history.QueryEngine(), history.Storage()),
		Appendable: history.Storage(), Context: context.Background(), Parser: promQL, Logger: promslog.NewNopLogger(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	})
	loaded, errs := manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, files...)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	recordedFirst := func(a, b *rules.Group) int {
		return cmp.Or(cmp.Compare(len(a.AlertingRules()), len(b.AlertingRules())), cmp.Compare(a.Name(), b.Name()))
	}
	groups := slices.SortedFunc(maps.Values(loaded), recordedFirst)
	for _, group := range groups {
		for _, rule := range group.AlertingRules() {
			rule.SetRestored(true) // there is nothing from before a restart
		}
	}
	for at := time.Unix(0, 0); at.Sub(time.Unix(0, 0)) <= course.after; at = at.Add(time.Minute) {
		history.WithSamplesTill(at, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range groups {
				group.Eval(history.Context(), at)
				for _, rule := range group.Rules() {
					if rule.LastError() != nil {
						t.Fatalf("%s: %v", rule.Name(), rule.LastError())
					}
				}
			}
		})
	}
	for _, group := range groups {
		for _, rule := range group.AlertingRules() {
			for _, active := range rule.ActiveAlerts() {
				if rule.Name() == course.alert && active.State == rules.StateFiring {
					summaries = append(summaries, active.Annotations.Get("summary"))
				}
			}
		}
	}
	slices.Sort(summaries)
	return summaries
}
