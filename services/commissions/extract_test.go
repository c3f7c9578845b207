package commissions

import (
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
)

const statementsPath = "/api/v1/statements"

// extract is as much of a statement as the tests look at.
type extract struct {
	PartnerID uuid.UUID                    `json:"partner_id"`
	Opening   map[string]json.Number       `json:"opening"`
	Lines     []map[string]json.RawMessage `json:"lines"`
	Closing   map[string]json.Number       `json:"closing"`
}

func (f *fixture) statementOf(key string, partner uuid.UUID, query string) (e extract) {
	f.t.Helper()
	answer := f.get(key, statementsPath+"/"+partner.String()+query)
	if err := json.Unmarshal(answer.Body.Bytes(), &e); err != nil || answer.Code != http.StatusOK || e.PartnerID != partner {
		f.t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	return e
}

// csvOf is the statement as CSV, without its header.
func (f *fixture) csvOf(key string, partner uuid.UUID, query string) [][]string {
	f.t.Helper()
	request := httptest.NewRequest(http.MethodGet, statementsPath+"/"+partner.String()+query, nil)
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Accept", "text/csv")
	answer := httptest.NewRecorder()
	f.Handler().ServeHTTP(answer, request)
	text := answer.Body.String()
	if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "text/csv; charset=utf-8; header=present" || answer.Header().Get("Vary") != "Accept" ||
		strings.Count(text, "\n") != strings.Count(text, "\r\n") {
		f.t.Fatalf("%d %v %s", answer.Code, answer.Header(), text)
	}
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || !slices.Equal(records[0], csvHeader) {
		f.t.Fatalf("%v %v", records, err)
	}
	return records[1:]
}

func TestAStatementTellsEveryMovementWithTheBalancesThatItLeft(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant, partner := newID(), newID()
	key := f.key(tenant, auth.CommissionsRead)
	f.wire()
	start := f.now
	sold := sale(tenant, f.now, soldBy(partner), heldFor(1))
	f.mustEarn(sold)
	f.now = start.Add(day)
	f.mustRelease()
	f.payOut(tenant, partner)
	refund := refundOf(sold, 10_00)
	f.mustReverse(refund)
	again := sale(tenant, f.now, soldBy(partner))
	f.mustEarn(again, sale(tenant, f.now), sale(newID(), f.now, soldBy(partner)))

	c, r, a := sold.Data.CommissionID, refund.Data.RefundID, again.Data.CommissionID
	want := []string{ // kind, reference, commission, from, to, amount, balance, pending, available, reserved, paid, debt
		fmt.Sprintf("commission %s %s expense pending 32.42 32.42 32.42 0.00 0.00 0.00 0.00", c, c),
		fmt.Sprintf("release %s %s pending available 32.42 32.42 0.00 32.42 0.00 0.00 0.00", c, c),
		"withdrawal W  available reserved 32.42 32.42 0.00 0.00 32.42 0.00 0.00",
		"withdrawal_paid W  reserved paid 32.42 0.00 0.00 0.00 0.00 32.42 0.00",
		fmt.Sprintf("reversal_debt %s %s debt expense 10.00 -10.00 0.00 0.00 0.00 32.42 10.00", r, c),
		fmt.Sprintf("commission %s %s expense available 32.42 22.42 0.00 32.42 0.00 32.42 10.00", a, a),
		fmt.Sprintf("repayment %s %s available debt 10.00 22.42 0.00 22.42 0.00 32.42 0.00", a, a),
	}
	var got, fromJSON []string
	for _, record := range f.csvOf(key, partner, "") {
		if strings.HasPrefix(record[1], "withdrawal") {
			record[2] = "W"
		}
		got = append(got, strings.Join(record[1:], " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the statement is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	whole := f.statementOf(key, partner, "")
	for _, line := range whole.Lines {
		var members []string
		for _, name := range csvHeader[1:] {
			text := strings.Trim(string(line[name]), `"`)
			if text == "null" {
				text = ""
			}
			members = append(members, text)
		}
		if strings.HasPrefix(members[0], "withdrawal") {
			members[1] = "W"
		}
		fromJSON = append(fromJSON, strings.Join(members, " "))
		if len(line) != len(csvHeader) {
			t.Errorf("a line has %d members", len(line))
		}
	}
	if !slices.Equal(fromJSON, want) {
		t.Errorf("as JSON it is\n%s", strings.Join(fromJSON, "\n"))
	}
	if whole.Opening["balance_brl"] != "0.00" || whole.Closing["balance_brl"] != "22.42" || whole.Closing["available_brl"] != "22.42" || whole.Closing["paid_brl"] != "32.42" {
		t.Errorf("from %v to %v", whole.Opening, whole.Closing)
	}
}

func TestASpanOpensWithWhatWasBefore(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant, partner, idle := newID(), newID(), newID()
	key := f.key(tenant, auth.CommissionsRead)
	f.wire()
	if err := f.hearCreated(created(tenant, idle)); err != nil {
		t.Fatal(err)
	}
	start := f.now
	for i := range 4 { // at start and 1, 2 and 3 hours later
		f.now = start.Add(time.Duration(i) * time.Hour)
		f.mustEarn(sale(tenant, f.now, soldBy(partner), worth(100_00, 10_0000, 10_00)))
	}
	at := func(hours int, name string) string {
		return name + "=" + url.QueryEscape(start.Add(time.Duration(hours)*time.Hour).Format(time.RFC3339Nano))
	}
	for query, want := range map[string]string{
		"":                                      "0.00 4 40.00",
		"?" + at(1, "from"):                     "10.00 3 40.00",
		"?" + at(2, "to"):                       "0.00 2 20.00",
		"?" + at(1, "from") + "&" + at(3, "to"): "10.00 2 30.00",
		"?" + at(4, "from"):                     "40.00 0 40.00",
		"?" + at(0, "to"):                       "0.00 0 0.00",
		"?" + at(3, "from") + "&" + at(1, "to"): "30.00 0 30.00",
	} {
		e := f.statementOf(key, partner, query)
		if got := fmt.Sprint(e.Opening["balance_brl"], " ", len(e.Lines), " ", e.Closing["balance_brl"]); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		if n := len(f.csvOf(key, partner, query)); n != len(e.Lines) {
			t.Errorf("%s: %d records", query, n)
		}
	}
	if e := f.statementOf(key, idle, ""); len(e.Lines) != 0 || e.Closing["balance_brl"] != "0.00" {
		t.Errorf("of nothing: %+v", e)
	}
}

const fillTransfersQuery = `
insert into transfers
select $1, $2, $3::timestamptz + n * interval '1 microsecond', 'commission', gen_random_uuid(), gen_random_uuid(), 'expense', 'available', 1, 0, n, 0, 0, 0
from generate_series(1, $4) n`

// sink counts what it is given, and how much memory is in use meanwhile.
type sink struct {
	header       http.Header
	bytes, lines int
	most         uint64
}

func (s *sink) Header() http.Header { return s.header }
func (s *sink) WriteHeader(int)     {}
func (s *sink) Write(p []byte) (int, error) {
	if s.lines += strings.Count(string(p), "\n"); s.bytes>>22 != (s.bytes+len(p))>>22 {
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		s.most = max(s.most, memory.HeapAlloc)
	}
	s.bytes += len(p)
	return len(p), nil
}

var lines = flag.Int("lines", 100_000, "how many lines the longest statement has")

func TestAStatementOfAnySizeStreamsInConstantMemory(t *testing.T) {
	count := *lines
	f := prepare(t, nowhere)
	tenant, partner := newID(), newID()
	key := f.key(tenant, auth.CommissionsRead)
	f.wire()
	f.exec(fillTransfersQuery, tenant, partner, f.now.Add(-time.Hour), count)
	f.exec(`insert into accounts (tenant_id, partner_id, available_centavos, posted_at) values ($1, $2, $3, $4)`, tenant, partner, count, f.now)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, accept := range []string{"text/csv", "application/json"} {
		request := httptest.NewRequest(http.MethodGet, statementsPath+"/"+partner.String(), nil)
		request.Header.Set("Authorization", "Bearer "+key)
		request.Header.Set("Accept", accept)
		out := &sink{header: http.Header{}}
		f.Handler().ServeHTTP(out, request)
		if accept == "text/csv" && out.lines != count+1 {
			t.Errorf("%d lines", out.lines)
		}
		if grown := int64(out.most) - int64(before.HeapAlloc); out.bytes < 100*count || grown > 8<<20 {
			t.Errorf("%s: %d bytes were sent with %d bytes more in use", accept, out.bytes, grown)
		}
	}
}

// A statement that another transfer overtakes while it is being sent ends where it began to end.
func TestAStatementEndsWhereTheBooksEndedWhenItWasAskedFor(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant, partner := newID(), newID()
	f.mustEarn(sale(tenant, f.now, soldBy(partner)))
	found, err := f.statement(t.Context(), span{tenant, partner, earliest, latest})
	if err != nil {
		t.Fatal(err)
	}
	f.mustEarn(sale(tenant, f.now, soldBy(partner)))
	count := 0
	if err := found.lines(func(line) error { count++; return nil }); err != nil || count != 1 {
		t.Errorf("%d lines, %v", count, err)
	}
}

func TestAStatementThatCannotBeReadToItsEndIsAnError(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere).wire()
	tenant, partner := newID(), newID()
	f.mustEarn(sale(tenant, f.now, soldBy(partner)))
	found, err := f.statement(t.Context(), span{tenant, partner, earliest, latest})
	if err != nil {
		t.Fatal(err)
	}
	f.deps.Pool.Close()
	for name, write := range map[string]func(io.Writer) error{"JSON": found.writeJSON, "CSV": found.writeCSV} {
		if err := write(io.Discard); err == nil {
			t.Errorf("%s: half a statement is taken for a whole one", name)
		}
	}
}
