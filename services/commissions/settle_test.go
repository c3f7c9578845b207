package commissions

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// getCSV asks for CSV.
func (w *teller) getCSV(key, target string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, target, nil)
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Accept", "text/csv")
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, request)
	return answer
}

// payouts is the payout list as a spreadsheet reads it.
func (w *teller) payouts(key, query string) [][]string {
	w.t.Helper()
	answer := w.getCSV(key, withdrawalsPath+query)
	if media := answer.Header().Get("Content-Type"); answer.Code != http.StatusOK || !strings.HasPrefix(media, "text/csv;") || answer.Header().Get("Vary") != "Accept" {
		w.t.Fatalf("%d %v %s", answer.Code, answer.Header(), answer.Body)
	}
	records, err := csv.NewReader(answer.Body).ReadAll()
	if err != nil {
		w.t.Fatal(err)
	}
	return records
}

func TestEveryElementOfABatchStandsAlone(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	ids := make([]uuid.UUID, 7)
	for i := range ids {
		if ids[i] = w.mustAsk(w.tenant, w.partner, 1_00); i != 5 {
			w.mustStep(w.tenant, ids[i], statusApproved)
		}
	}
	w.mustStep(w.tenant, ids[4], statusPaid)
	const endToEnd = `"end_to_end_id":"E12345678202607141305abcDEF12345"`
	rows := []struct{ element, want string }{
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"pay",%s}`, ids[0], endToEnd), `200 paid `},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"fail","reason":"no such key"}`, ids[1]), `200 failed `},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"fail"}`, ids[2]), `400 invalid_body /reason required`},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"pay","reason":"x","failure_code":"y"}`, ids[2]), `400 invalid_body /failure_code not_allowed`},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"fail","reason":"x",%s}`, ids[2], endToEnd), `400 invalid_body /end_to_end_id not_allowed`},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"approve"}`, ids[2]), `400 invalid_body /action not_allowed`},
		{`7`, `400 invalid_body  type`},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"pay"}`, newID()), `404 not_found`},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"pay"}`, ids[5]), `409 invalid_transition`},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"pay",%s}`, ids[4], endToEnd), `200 paid end_to_end_id`},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"pay",%s}`, ids[6], endToEnd), `409 conflict /end_to_end_id not_allowed`},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"pay",%s}`, ids[0], endToEnd), `200 paid `},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"pay","end_to_end_id":"E12345678202607141305abcDEF12346"}`, ids[6]), `200 paid `},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"pay"}`, ids[3]), `200 paid `},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"pay"}`, ids[3]), `200 paid `},
		{fmt.Sprintf(`{"withdrawal_id":%q,"action":"fail","reason":"x"}`, ids[3]), `409 invalid_transition`},
	}
	var elements []string
	for _, row := range rows {
		elements = append(elements, row.element)
	}
	answer := w.send(w.approver, withdrawalsPath+"/batch", `{"withdrawals":[`+strings.Join(elements, ",")+`]}`)
	var found struct {
		Results []struct {
			Status     int
			Code       string
			Details    []struct{ Path, Code string }
			Withdrawal struct {
				Status, PixKey string
				History        []any
			}
			Mismatch []string `json:"idempotency_mismatch"`
		}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &found); err != nil || answer.Code != 200 || len(found.Results) != len(rows) {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	for i, got := range found.Results {
		said := fmt.Sprint(got.Status, " ", got.Code)
		switch {
		case got.Status == 200:
			said = fmt.Sprintf("200 %s %s", got.Withdrawal.Status, strings.Join(got.Mismatch, ","))
			if len(got.Withdrawal.History) != 3 {
				t.Errorf("%s has the history %v", rows[i].element, got.Withdrawal.History)
			}
		case len(got.Details) > 0:
			said += fmt.Sprintf(" %s %s", got.Details[0].Path, got.Details[0].Code)
		}
		if said != rows[i].want {
			t.Errorf("%s answers %s, want %s", rows[i].element, said, rows[i].want)
		}
	}
	w.balanced(w.tenant)
	refused(t, w.send(w.asker, withdrawalsPath+"/batch", `{"withdrawals":[{}]}`), 403, "insufficient_scope")
}

func TestAThousandSettlementsTakeFewStatements(t *testing.T) {
	t.Parallel()
	const elements = 1_000
	f := prepare(t, nowhere)
	sent := f.counted()
	f.wire()
	tenant := newID()
	ids := make([]uuid.UUID, elements)
	transitions := make([]*transition, elements)
	partner := newID()
	f.mustEarn(sale(tenant, f.now, soldBy(partner), worth(1_000_000_00, 50_0000, 500_000_00)))
	for i := range ids {
		ids[i] = f.mustAsk(tenant, partner, 1)
		transitions[i] = &transition{id: ids[i], to: statusApproved}
	}
	if err := f.change(t.Context(), tenant, operatorKey, transitions); err != nil {
		t.Fatal(err)
	}
	for i := range transitions {
		transitions[i] = &transition{id: ids[i], to: statusPaid}
	}
	sent.forget()
	for at := 0; at < elements; at += settleAtOnce {
		if err := f.change(t.Context(), tenant, operatorKey, transitions[at:at+settleAtOnce]); err != nil {
			t.Fatal(err)
		}
	}
	if n := sent.sent.Load(); n > elements/20 {
		t.Errorf("%d statements", n)
	}
	if got := f.books(tenant, partner); got.Paid != elements || got.Reserved != 0 {
		t.Errorf("%+v", got)
	}
	f.balanced(tenant)
}
