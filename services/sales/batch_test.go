package sales

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/web"
)

const batchPath = "/api/v1/sales/batch"

// batchOf is the body of a batch.
func batchOf(elements ...string) string { return `{"sales":[` + strings.Join(elements, ",") + `]}` }

// batchResult is what one element is answered.
type batchResult struct {
	Status     int             `json:"status"`
	SaleID     string          `json:"sale_id"`
	Commission json.Number     `json:"commission_amount_brl"`
	Idempotent *bool           `json:"idempotent"`
	Mismatch   []string        `json:"idempotency_mismatch"`
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Details    json.RawMessage `json:"details"`
}

// results are what the elements of a batch are answered.
func (r *response) results() []batchResult {
	r.t.Helper()
	var body struct {
		Results []batchResult `json:"results"`
	}
	if err := json.Unmarshal(r.want(200).raw, &body); err != nil {
		r.t.Fatal(err)
	}
	return body.Results
}

// batch sends the elements and returns what each is answered.
func (f *fixture) batch(elements ...string) []batchResult {
	f.t.Helper()
	results := f.post(batchPath, batchOf(elements...)).results()
	if len(results) != len(elements) {
		f.t.Fatalf("%d results of %d elements", len(results), len(elements))
	}
	return results
}

func statuses(results []batchResult) (all []int) {
	for _, r := range results {
		all = append(all, r.Status)
	}
	return all
}

func TestAnElementIsAnsweredAsIfItWereReportedAlone(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	other := f.stranger()
	f.post("/api/v1/sales", f.sale("known")).want(201)
	elements := []struct {
		sent   string
		status int
	}{
		{f.sale("new"), 201},
		{f.sale("known"), 200},
		{f.sale("known", "amount_brl", "7", "notes", `"other"`), 200},
		{f.sale("with more", "unknown", `{"a":[null]}`, "sold_at", "null"), 201},
		{f.sale("nobody", "referral_code", `"nobody"`), 404},
		{f.sale("theirs", "referral_code", quoted(other.code)), 404},
		{f.sale("no campaign", "campaign_id", quoted(other.campaign)), 422},
		{f.sale("no plan", "plan_id", quoted(other.plan)), 422},
		{f.sale("too early", "sold_at", quoted(time.Now().Add(25*time.Hour).Format(time.RFC3339))), 422},
		{"{}", 400}, {"[]", 400}, {"null", 400}, {`"x"`, 400}, {"17", 400}, {"true", 400},
		{f.sale("twice", "amount_brl", `1,"amount_brl":1`), 400},
		{f.sale("twice", "amount_brl", `1,"\u0061mount_brl":1`), 400},
		{f.sale("many", "amount_brl", "10.555", "campaign_id", `"x"`, "sold_at", "7", "referral_code", ""), 400},
		{f.sale("zero", "notes", `"\u0000"`), 400},
		{f.sale("half", "notes", `"\ud800"`), 400},
		{f.sale("bytes", "notes", "\"\xff\""), 400},
		{f.sale("deep", "x", strings.Repeat("[", 32)+strings.Repeat("]", 32)), 400},
		{f.sale("large", "x", quoted(strings.Repeat("x", 64<<10))), 413},
		{f.sale(strings.Repeat("é", 256)), 400},
		{f.sale("last"), 201},
	}
	for _, amount := range []string{
		"null", `"10.00"`, "true", "0", "-1", "-0", "0.00", "0.001", "10.555", "1e400", "1E1000000000", "1e-400", "0e1000000000",
		"1000000000", "999999999.991", strings.Repeat("9", 40), "[]", "{}",
	} {
		elements = append(elements, struct {
			sent   string
			status int
		}{f.sale("refused", "amount_brl", amount), 400})
	}
	var sent []string
	for _, e := range elements {
		sent = append(sent, e.sent)
	}
	for i, r := range f.batch(sent...) {
		e := elements[i]
		if r.Status != e.status {
			t.Errorf("%.80s: %+v, want %d", e.sent, r, e.status)
			continue
		}
		alone := f.post("/api/v1/sales", e.sent)
		if r.Status < 300 {
			alone.want(200).shows("sale_id", r.SaleID, "commission_amount_brl", r.Commission.String())
			if *r.Idempotent != (r.Status == 200) || strings.Join(r.Mismatch, ", ") != alone.Header.Get("Idempotency-Mismatch") {
				t.Errorf("%.80s: %+v, but alone %v %s", e.sent, r, alone.Header, alone.raw)
			}
			continue
		}
		var single batchResult
		if err := json.Unmarshal(alone.refused(e.status, r.Code).raw, &single); err != nil {
			t.Fatal(err)
		}
		message := strings.Replace(single.Message, "a body", "an element", 1)
		if r.Message != message || string(r.Details) != string(single.Details) || r.SaleID != "" || r.Idempotent != nil {
			t.Errorf("%.80s: %+v, but alone %s", e.sent, r, alone.raw)
		}
	}
	if n := f.rows("sales"); n != 4 {
		t.Errorf("%d sales are recorded, want 4", n)
	}
}

func TestABodyThatIsNoListOfSalesRecordsNothing(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	good := f.sale("refused")
	thousand := strings.Repeat(good+",", 1000)
	f.recordsNothing(func() {
		for name, row := range map[string]struct{ body, issue string }{
			"empty":                  {"", " syntax"},
			"a sale":                 {good, ""},
			"a bare list":            {"[" + good + "]", " type"},
			"no sales":               {batchOf(), "/sales too_short"},
			"1,001 sales":            {batchOf(thousand + good), "/sales too_long"},
			"an object":              {`{"sales":` + good + `}`, "/sales type"},
			"null":                   {`{"sales":null}`, "/sales type"},
			"twice":                  {`{"sales":[` + good + `],"sales":[` + good + `]}`, "/sales duplicate_member"},
			"in other letters":       {`{"Sales":[` + good + `]}`, ""},
			"a member too many":      {`{"sales":[` + good + `],"sale":1}`, "/sale unknown_member"},
			"cut off":                {`{"sales":[` + good + `,` + good, " syntax"},
			"an amount like 010":     {batchOf(good, f.sale("refused", "amount_brl", "010")), " syntax"},
			"an amount like NaN":     {batchOf(good, f.sale("refused", "amount_brl", "NaN")), " syntax"},
			"something after it":     {batchOf(good) + "{}", " syntax"},
			"a million brackets":     {batchOf(good, strings.Repeat("[", 1_000_000)), " syntax"},
			"two million elements":   {batchOf(strings.Repeat("0,", 2_000_000) + "0"), "/sales too_long"},
			"a byte-order mark":      {"\uFEFF" + batchOf(good), " syntax"},
			"two lists side by side": {batchOf(good) + batchOf(good), " syntax"},
		} {
			t.Run(name, func(t *testing.T) {
				answer := f.in(t).post(batchPath, row.body).refused(400, "invalid_body")
				if row.issue != "" {
					answer.invalid(row.issue)
				}
			})
		}
		f.post(batchPath, batchOf(good)+strings.Repeat(" ", 4<<20)).refused(413, "payload_too_large")
		f.send("POST", batchPath, batchOf(good)).refused(401, "unauthorized")
	})
}

func TestOfOneReferenceTheFirstThatCanBeIsRecorded(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	results := f.batch(
		f.sale("a", "amount_brl", "1"), f.sale("b", "plan_id", quoted(f.campaign)), f.sale("a", "amount_brl", "2"), f.sale("b", "amount_brl", "0"),
		f.sale("b", "amount_brl", "3"), f.sale("a", "amount_brl", "1.00"), f.sale("b", "referral_code", `"nobody"`))
	if got, want := statuses(results), []int{201, 422, 200, 400, 201, 200, 200}; !slices.Equal(got, want) {
		t.Fatalf("answered %v, want %v", got, want)
	}
	for i, want := range map[int]struct{ first, mismatch string }{
		2: {results[0].SaleID, "amount_brl"}, 5: {results[0].SaleID, ""}, 6: {results[4].SaleID, "amount_brl, referral_code"},
	} {
		if r := results[i]; r.SaleID != want.first || strings.Join(r.Mismatch, ", ") != want.mismatch || !*r.Idempotent {
			t.Errorf("element %d: %+v, want the sale %s and the differences %q", i, r, want.first, want.mismatch)
		}
	}
	f.get("/api/v1/sales/"+results[0].SaleID).want(200).shows("amount_brl", "1.00")
	f.get("/api/v1/sales/"+results[4].SaleID).want(200).shows("amount_brl", "3.00")
}

// thousand are 1,000 elements, every fourth of which repeats the one before it.
func (f *fixture) thousand() (elements []string) {
	for i := range 1000 {
		if i%4 == 3 {
			i--
		}
		elements = append(elements, f.sale(fmt.Sprint("order-", i)))
	}
	return elements
}

func TestAThousandSalesTakeAFewCommits(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	elements := f.thousand()
	first := f.batch(elements...)
	for i, r := range first {
		if repeat := i%4 == 3; repeat && (r.Status != 200 || r.SaleID != first[i-1].SaleID) || !repeat && r.Status != 201 {
			t.Fatalf("element %d: %+v after %+v", i, r, first[max(0, i-1)])
		}
	}
	if n := f.rows("(select distinct xmin::text from sales) transactions"); n > 20 {
		t.Errorf("they took %d commits", n)
	}
	for i, r := range f.batch(elements...) {
		if r.Status != 200 || r.SaleID != first[i].SaleID || r.Mismatch != nil {
			t.Fatalf("the repeat of element %d: %+v, want sale %s", i, r, first[i].SaleID)
		}
	}
	for _, table := range []string{"sales", "outbox where name = 'sale.recorded'"} {
		if n := f.rows(table); n != 750 {
			t.Errorf("%d %s, want 750", n, table)
		}
	}
	count := map[string]int{}
	for range 3 {
		for _, r := range f.batch(slices.Repeat([]string{f.sale("one")}, 1000)...) {
			count[fmt.Sprint(r.Status)]++
		}
	}
	if count["201"] != 1 || count["200"] != 2999 {
		t.Errorf("3,000 elements with one reference are answered %v", count)
	}
}

func TestABatchIsDecidedAnewWhereTheCatalogueHasChanged(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	elsewhere := f.replica()
	f.batch(f.sale("before"))
	elsewhere.patch("/api/v1/plans/"+f.plan, `{"commission_pct":10}`).want(200)
	for _, r := range f.batch(f.sale("after-1"), f.sale("before"), f.sale("after-2")) {
		if want := map[int]string{201: "10.05", 200: "5.03"}[r.Status]; r.Commission.String() != want {
			t.Errorf("%+v, want a commission of %s", r, want)
		}
	}
	elsewhere.patch("/api/v1/partners/"+f.partner, `{"status":"suspended"}`).want(200)
	if got := statuses(f.batch(f.sale("too late"), f.sale("before"), f.sale("too late"))); !slices.Equal(got, []int{404, 200, 404}) {
		t.Errorf("after the partner was suspended: %v", got)
	}
}

func TestAnElementWhoseOutcomeIsOpenIsA503OfItsOwn(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.post("/api/v1/sales", f.sale("known")).want(201)
	s, err := New(t.Context(), Config{AdminToken: operatorToken}, f.deps)
	if err != nil {
		t.Fatal(err)
	}
	close(s.recorder.stopped)
	f.url = serve(t, s.Handler())
	results := f.batch(f.sale("a"), f.sale("a"), "0", f.sale("b"), f.sale("c", "referral_code", `"nobody"`), f.sale("known", "referral_code", `"nobody"`))
	if got, want := statuses(results), []int{503, 503, 400, 503, 404, 200}; !slices.Equal(got, want) {
		t.Errorf("answered %v, want %v", got, want)
	}
	for _, r := range results {
		if (r.Status == 503) != (r.Code == "unavailable") || r.Status == 503 && r.Message == "" {
			t.Errorf("%+v", r)
		}
	}
}

func TestABatchCountsWithEveryElementForTheKeysLimit(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	f.deps.Limiter = web.NewLimiter(web.Limits{PerSecond: 1, Burst: 1000, InFlight: 256, FailuresPerSecond: 1, FailureBurst: 1})
	s, err := New(t.Context(), Config{AdminToken: operatorToken}, f.deps)
	if err != nil {
		t.Fatal(err)
	}
	f.url = serve(t, s.Handler())
	bad := batchOf(slices.Repeat([]string{"0"}, 900)...)
	f.post(batchPath, bad).want(200)
	f.recordsNothing(func() {
		answer := f.post(batchPath, bad)
		if answer.want(429).text("code") != "rate_limited" {
			t.Errorf("%s", answer.raw)
		}
		var wait int
		fmt.Sscan(answer.Header.Get("Retry-After"), &wait)
		if wait < 780 || wait > 801 || answer.Header.Get("RateLimit-Policy") != `"key";q=1;w=1` {
			t.Errorf("told %v", answer.Header)
		}
	})
}

// firstAnswer is when the database had answered for the first time.
type firstAnswer struct {
	once sync.Once
	at   time.Time
}

func (*firstAnswer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (a *firstAnswer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {
	a.once.Do(func() { a.at = time.Now() })
}

// Where each look at the database takes long, the last of a batch would else be told that
// the catalogue changes too fast before anybody has looked at them.
func TestAReportOfABatchHasItsTimeFromWhenItsTurnComes(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	first := new(firstAnswer)
	config := f.deps.Pool.Config()
	config.ConnConfig.Tracer = first
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	deps := f.deps
	deps.Pool = pool
	s, err := New(t.Context(), Config{}, deps)
	if err != nil {
		t.Fatal(err)
	}
	credential, _ := auth.Parse(f.key)
	elements := make([]*element, decideAtOnce+1)
	for i := range elements {
		elements[i] = &element{report: report{ReferralCode: "nobody", ExternalRef: fmt.Sprint("order-", i)}}
	}
	s.recordRound(t.Context(), credential, uuid.MustParse(f.tenant), elements)
	last := elements[decideAtOnce]
	if begun := last.decision.deadline.Add(-decideWithin); begun.Before(first.at) {
		t.Errorf("the last has its time from %s before it was its turn", first.at.Sub(begun))
	}
	until := last.decision.deadline
	if last.decide(t.Context(), s); !last.decision.deadline.Equal(until) {
		t.Errorf("decided anew, it has until %s, and had until %s", last.decision.deadline, until)
	}
}
