package commissions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/testkit"
)

const withdrawalsPath = "/api/v1/withdrawals"

// send sends a body as the owner of the key.
func (f *fixture) send(key, target, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+key)
	answer := httptest.NewRecorder()
	f.Handler().ServeHTTP(answer, request)
	return answer
}

// teller is a tenant with a partner who has 32.42 available, and keys of three people.
type teller struct {
	*fixture
	tenant, partner         uuid.UUID
	asker, approver, reader string
}

func newTeller(t *testing.T) *teller {
	t.Helper()
	nats := testkit.NATS(t)
	announceKeys(t, nats.URL())
	f := prepare(t, nats.URL())
	w := &teller{fixture: f, tenant: newID(), partner: newID()}
	w.asker, w.reader = f.key(w.tenant, auth.WithdrawalsWrite), f.key(w.tenant, auth.CommissionsRead)
	w.approver = f.key(w.tenant, auth.WithdrawalsApprove, auth.CommissionsRead)
	f.wire()
	w.hearKeys()
	w.knows(w.partner, "Ana", "ana", "active", 0)
	f.mustEarn(sale(w.tenant, f.now, soldBy(w.partner)))
	return w
}

// hearKeys has the service follow the keys until it vouches for those that move money.
func (w *teller) hearKeys() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.keys.Run(ctx) }()
	credential, _ := auth.Parse(w.approver)
	testkit.Eventually(w.t, soon, "the keys are followed", func() bool {
		_, err := w.keys.Key(ctx, credential, auth.WithdrawalsApprove)
		return err == nil
	})
	cancel()
	if err := <-ended; err != nil {
		w.t.Error(err)
	}
}

// knows has the service have heard that the partner is like this now.
func (w *teller) knows(id uuid.UUID, name, code, status string, version int64) {
	w.t.Helper()
	w.exec(`insert into partners values ($1, $2, $3, $4, $5, $6)
		on conflict (tenant_id, partner_id) do update set status = excluded.status, name = excluded.name`, w.tenant, id, name, code, status, version)
}

func (w *teller) body(amount, ref string) string {
	return fmt.Sprintf(`{"partner_id":%q,"amount_brl":%s,"pix_key_type":"cpf","pix_key":"529.982.247-25","external_ref":%q}`, w.partner, amount, ref)
}

// must is for calls that are answered with that status; it returns the members.
func (w *teller) must(status int, answer *httptest.ResponseRecorder) (members map[string]any) {
	w.t.Helper()
	if err := json.Unmarshal(answer.Body.Bytes(), &members); err != nil || answer.Code != status {
		w.t.Fatalf("%d %s, want %d", answer.Code, answer.Body, status)
	}
	return members
}

func TestAWithdrawalIsReservedApprovedAndPaid(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	made := w.must(201, w.send(w.asker, withdrawalsPath, w.body("30", "july")))
	id := made["withdrawal_id"].(string)
	if made["pix_key"] != "***.982.247-**" || made["status"] != "requested" || made["idempotent"] != false {
		t.Errorf("asked: %v", made)
	}
	if got := w.books(w.tenant, w.partner); got != (balances{Available: 2_42, Reserved: 30_00}) {
		t.Errorf("reserved: %+v", got)
	}
	asked := only[event.WithdrawalRequested](w.fixture)
	if d := asked.Data; d.WithdrawalID.String() != id || d.PartnerID != w.partner || d.Amount != 30_00 || d.KeyMasked != "***.982.247-**" || d.KeyType != "cpf" || d.Status != "requested" {
		t.Errorf("told %+v", d)
	}
	w.now = w.now.Add(time.Second)
	approved := w.must(200, w.send(w.approver, withdrawalsPath+"/"+id+"/approve", ""))
	if approved["pix_key"] != "52998224725" || approved["status"] != "approved" {
		t.Errorf("approved: %v", approved)
	}
	w.exec(`delete from outbox`)
	const endToEnd = "E12345678202607141305abcDEF12345"
	paid := w.must(200, w.send(w.approver, withdrawalsPath+"/"+id+"/pay", `{"end_to_end_id":"`+endToEnd+`","paid_at":"2026-07-14T10:05:00-03:00"}`))
	if paid["end_to_end_id"] != endToEnd || paid["paid_at"] != "2026-07-14T13:05:00Z" || len(paid["history"].([]any)) != 3 {
		t.Errorf("paid: %v", paid)
	}
	told := only[event.WithdrawalStatusChanged](w.fixture).Data
	if told.Status != "paid" || told.PreviousStatus != "approved" || told.EndToEndID == nil || *told.EndToEndID != endToEnd || told.KeyMasked != "***.982.247-**" {
		t.Errorf("told %+v", told)
	}
	if got := w.books(w.tenant, w.partner); got != (balances{Available: 2_42, Paid: 30_00}) {
		t.Errorf("paid: %+v", got)
	}
	shown := w.must(200, w.get(w.reader, withdrawalsPath+"/"+id))
	var states []string
	for _, was := range shown["history"].([]any) {
		states = append(states, fmt.Sprint(was.(map[string]any)["status"], " by ", was.(map[string]any)["api_key_prefix"]))
	}
	if want := []string{"requested by " + w.asker[:12], "approved by " + w.approver[:12], "paid by " + w.approver[:12]}; !slices.Equal(states, want) || shown["pix_key"] != "***.982.247-**" {
		t.Errorf("the history is %v of %v", states, shown)
	}
	w.balanced(w.tenant)
}

func TestEveryStepIsAllowedRepeatedOrRefused(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	ways := map[string][]string{
		statusRequested: nil, statusApproved: {statusApproved}, statusRejected: {statusRejected}, statusCancelled: {statusCancelled},
		statusPaid: {statusApproved, statusPaid}, statusFailed: {statusApproved, statusFailed},
	}
	allowed := map[string][]string{statusRequested: {statusApproved, statusRejected, statusCancelled}, statusApproved: {statusPaid, statusFailed}}
	for from, way := range ways {
		for _, to := range withdrawalStatuses[1:] {
			id := w.mustAsk(w.tenant, w.partner, 10)
			w.mustStep(w.tenant, id, way...)
			before := w.state()
			made := w.step(w.tenant, id, to)
			switch {
			case slices.Contains(allowed[from], to):
				if made.err != nil || made.repeated || made.withdrawal.Status != to {
					t.Errorf("from %s to %s: %v", from, to, made.err)
				}
				continue
			case from == to:
				if made.err != nil || !made.repeated {
					t.Errorf("%s again: %v", to, made.err)
				}
			default:
				if fault.KindOf(made.err) != fault.Conflict || fault.Of(made.err).Code != "invalid_transition" {
					t.Errorf("from %s to %s: %v", from, to, made.err)
				}
			}
			same(t, before, w.state())
		}
	}
	w.balanced(w.tenant)
}

func TestARepeatAnswersTheFirstResultAndNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	first := w.must(201, w.send(w.asker, withdrawalsPath, w.body("30", "july")))
	w.mustStep(w.tenant, uuid.MustParse(first["withdrawal_id"].(string)), statusRejected)
	w.exec(`update partners set status = 'banned'`)
	before := w.state()
	for body, want := range map[string]string{
		w.body("30.00", "july"): "",
		w.body("3e2", "july"):   "amount_brl",
		strings.Replace(w.body("30", "july"), "529.982.247-25", "52998224725", 1):                                           "",
		strings.Replace(w.body("30", "july"), `"partner_id":"`+w.partner.String(), `"referral_code":"ana`, 1):               "",
		strings.Replace(w.body("30", "july"), `"partner_id":"`+w.partner.String(), `"referral_code":"nobody`, 1):            "referral_code",
		strings.Replace(w.body("31", "july"), w.partner.String(), newID().String(), 1):                                      "amount_brl, partner_id",
		strings.Replace(w.body("30", "july"), `"cpf","pix_key":"529.982.247-25"`, `"email","pix_key":"ana@example.com"`, 1): "pix_key, pix_key_type",
	} {
		answer := w.send(w.asker, withdrawalsPath, body)
		again := w.must(200, answer)
		if again["idempotent"] != true || again["withdrawal_id"] != first["withdrawal_id"] || again["status"] != "requested" || again["amount_brl"] != first["amount_brl"] {
			t.Errorf("%s answers %v", body, again)
		}
		if got := answer.Header().Get("Idempotency-Mismatch"); got != want {
			t.Errorf("%s differs in %q, want %q", body, got, want)
		}
	}
	same(t, before, w.state())
}

func TestWhatIsRepeatedOfAStepOtherwiseIsNamed(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	id := w.mustAsk(w.tenant, w.partner, 100)
	w.mustStep(w.tenant, id, statusApproved)
	target := withdrawalsPath + "/" + id.String() + "/fail"
	w.must(200, w.send(w.approver, target, `{"reason":"no such key"}`))
	for body, want := range map[string]string{
		`{"reason":"no such key"}`:                       "",
		`{"reason":"another"}`:                           "reason",
		`{"reason":"no such key","failure_code":"AC03"}`: "failure_code",
		`{"reason":"another","failure_code":"AC03"}`:     "failure_code, reason",
	} {
		answer := w.send(w.approver, target, body)
		if again := w.must(200, answer); again["reason"] != "no such key" || answer.Header().Get("Idempotency-Mismatch") != want {
			t.Errorf("%s answers %v and differs in %q", body, again, answer.Header().Get("Idempotency-Mismatch"))
		}
	}
}

func TestTheOrderOfDecisionsAboutARequest(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	poor := newID()
	w.knows(poor, "Bia", "bia", "active", 0)
	before := w.state()
	for name, row := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"a wrong body of nobody":        {strings.Replace(w.body("1", "x"), "529.982.247-25", "529.982.247-24", 1), 400, "invalid_body"},
		"both names":                    {strings.Replace(w.body("1", "x"), `{`, `{"referral_code":"ana",`, 1), 400, "invalid_body"},
		"neither":                       {strings.Replace(w.body("1", "x"), `"partner_id":"`+w.partner.String()+`",`, "", 1), 400, "invalid_body"},
		"nobody, and too much":          {strings.Replace(w.body("999", "x"), w.partner.String(), newID().String(), 1), 404, "partner_not_found"},
		"no such code":                  {strings.Replace(w.body("1", "x"), `"partner_id":"`+w.partner.String(), `"referral_code":"ANA`, 1), 404, "partner_not_found"},
		"somebody who never earned":     {strings.Replace(w.body("1", "x"), w.partner.String(), poor.String(), 1), 404, "partner_not_found"},
		"a centavo more than there is":  {w.body("32.43", "x"), 422, "insufficient_balance"},
		"an end-to-end id is not asked": {strings.Replace(w.body("1", "x"), `{`, `{"end_to_end_id":"x",`, 1), 400, "invalid_body"},
	} {
		if answer := w.send(w.asker, withdrawalsPath, row.body); true {
			if members := w.must(row.status, answer); members["code"] != row.code {
				t.Errorf("%s: %v", name, members)
			}
		}
	}
	same(t, before, w.state())
	w.exec(`update partners set status = 'banned' where partner_id = $1`, w.partner)
	if members := w.must(422, w.send(w.asker, withdrawalsPath, w.body("999", "x"))); members["code"] != "rule_violated" {
		t.Errorf("banned, and too much: %v", members)
	}
	w.exec(`update partners set status = 'suspended' where partner_id = $1`, w.partner)
	w.must(201, w.send(w.asker, withdrawalsPath, w.body("32.42", "x")))
}

func TestABannedPartnerIsNotApprovedOrPaidAndGetsTheMoneyBack(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	open, approved := w.mustAsk(w.tenant, w.partner, 1_00), w.mustAsk(w.tenant, w.partner, 2_00)
	w.mustStep(w.tenant, approved, statusApproved)
	w.exec(`update partners set status = 'banned'`)
	before := w.state()
	for id, to := range map[uuid.UUID]string{open: statusApproved, approved: statusPaid} {
		if made := w.step(w.tenant, id, to); !errors.Is(made.err, errBanned) {
			t.Errorf("%s: %v", to, made.err)
		}
	}
	same(t, before, w.state())
	w.mustStep(w.tenant, open, statusCancelled)
	w.mustStep(w.tenant, approved, statusFailed)
	if got := w.books(w.tenant, w.partner); got != (balances{Available: 32_42}) {
		t.Errorf("%+v", got)
	}
}

func TestMoneyThatComesBackPaysDebtFirst(t *testing.T) {
	t.Parallel()
	for _, way := range [][]string{{statusRejected}, {statusCancelled}, {statusApproved, statusFailed}} {
		w := newTeller(t)
		sold := sale(w.tenant, w.now, soldBy(w.partner))
		w.mustEarn(sold)
		id := w.mustAsk(w.tenant, w.partner, 60_00)
		w.mustReverse(refundOf(sold, 32_42))
		if got := w.books(w.tenant, w.partner); got != (balances{Reserved: 60_00, Debt: 27_58}) {
			t.Fatalf("%v: %+v", way, got)
		}
		w.mustStep(w.tenant, id, way...)
		if got := w.books(w.tenant, w.partner); got != (balances{Available: 32_42}) {
			t.Errorf("%v: %+v", way, got)
		}
		w.balanced(w.tenant)
	}
}

func TestOnlyWhoMayPaySeesTheKeyAndOnlyTheOwnerTheWithdrawal(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	id := w.mustAsk(w.tenant, w.partner, 100)
	if stored := strings.Join(w.dump(`select encode(pix_key, 'escape') from withdrawals`), ""); strings.Contains(stored, "52998224725") {
		t.Errorf("the key is stored as %s", stored)
	}
	for key, want := range map[string]string{w.reader: "***.982.247-**", w.approver: "52998224725"} {
		listed := w.must(200, w.get(key, withdrawalsPath))["data"].([]any)[0].(map[string]any)
		if shown := w.must(200, w.get(key, withdrawalsPath+"/"+id.String())); shown["pix_key"] != want || listed["pix_key"] != want {
			t.Errorf("shown as %v, listed as %v, want %s", shown["pix_key"], listed["pix_key"], want)
		}
	}
	for _, verb := range []string{"approve", "reject", "pay", "fail"} {
		refused(t, w.send(w.asker, withdrawalsPath+"/"+id.String()+"/"+verb, `{"reason":"x"}`), 403, "insufficient_scope")
	}
	refused(t, w.send(w.approver, withdrawalsPath+"/"+id.String()+"/cancel", `{}`), 403, "insufficient_scope")
	refused(t, w.send(w.approver, withdrawalsPath, w.body("1", "x")), 403, "insufficient_scope")

	if made := w.step(newID(), id, statusApproved); fault.KindOf(made.err) != fault.NotFound {
		t.Errorf("another tenant approves: %v", made.err)
	}
}

func TestWhatASchemaCannotSayOfAPaymentIsChecked(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	id := w.mustAsk(w.tenant, w.partner, 100)
	w.mustStep(w.tenant, id, statusApproved)
	before := w.state()
	target := withdrawalsPath + "/" + id.String() + "/pay"
	for _, endToEnd := range []string{"E12345678202613141305abcDEF12345", "E12345678202602301305abcDEF12345", "E12345678202607142405abcDEF12345", "D12345678202607141305abcDEF12345", "E12345678202607141305abcDEF1234", "E12345678202607141305abcDEF1234é"} {
		members := w.must(400, w.send(w.approver, target, `{"end_to_end_id":"`+endToEnd+`"}`))
		if detail := members["details"].([]any)[0].(map[string]any); detail["path"] != "/end_to_end_id" || detail["code"] != "format" {
			t.Errorf("%s: %v", endToEnd, members)
		}
	}
	ahead := w.now.Add(25 * time.Hour).Format(time.RFC3339)
	if members := w.must(422, w.send(w.approver, target, `{"paid_at":"`+ahead+`"}`)); members["code"] != "rule_violated" {
		t.Errorf("paid in the future: %v", members)
	}
	same(t, before, w.state())
}

func TestAnEndToEndIDPaysOneWithdrawalOfATenant(t *testing.T) {
	t.Parallel()
	w, other := newTeller(t), newID()
	const body = `{"end_to_end_id":"E12345678202607141305abcDEF12345"}`
	pay := func(amount money.BRL) string {
		id := w.mustAsk(w.tenant, w.partner, amount)
		w.mustStep(w.tenant, id, statusApproved)
		return withdrawalsPath + "/" + id.String() + "/pay"
	}
	first, second := pay(10_00), pay(5_00)
	w.must(200, w.send(w.approver, first, body))
	state := w.state()
	answer := w.send(w.approver, second, body)
	if members := w.must(409, answer); members["code"] != "conflict" || members["details"].([]any)[0].(map[string]any)["path"] != "/end_to_end_id" {
		t.Errorf("a second withdrawal: %v", members)
	}
	if strings.Contains(answer.Body.String(), strings.Split(first, "/")[4]) {
		t.Errorf("the refusal names the other withdrawal: %s", answer.Body)
	}
	same(t, state, w.state())
	again := w.send(w.approver, first, body)
	if w.must(200, again); again.Header().Get("Idempotency-Mismatch") != "" {
		t.Errorf("a repeat differs in %s", again.Header().Get("Idempotency-Mismatch"))
	}
	w.must(200, w.send(w.approver, second, strings.Replace(body, "12345\"", "12346\"", 1)))

	w.mustEarn(sale(other, w.now, soldBy(w.partner)))
	id := w.mustAsk(other, w.partner, 10_00)
	w.mustStep(other, id, statusApproved)
	elsewhere := &transition{id: id, to: statusPaid}
	elsewhere.EndToEndID = new("E12345678202607141305abcDEF12345")
	if err := w.change(t.Context(), other, operatorKey, []*transition{elsewhere}); err != nil || elsewhere.err != nil {
		t.Errorf("of another tenant: %v %v", err, elsewhere.err)
	}
}
