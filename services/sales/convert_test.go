package sales

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"partilha.dev/pkg/testkit"
)

func TestTheFirstReportOfAConversionRecordsItWithEveryMember(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	made := f.post("/api/v1/conversions", f.conversion("signup-1", "type", `"signup"`, "value_brl", "89.9", "occurred_at", `"2026-03-01T12:00:00.25-03:00"`,
		"customer_ref", `"ana@example.com"`, "notes", `"from the fair"`, "unknown", `{"a":[null]}`)).want(201)
	if want := fmt.Sprintf(`{"conversion_id":%q,"commission_id":%q,"commission_amount_brl":4.75,"idempotent":false}`,
		made.text("conversion_id"), made.text("commission_id")); string(made.raw) != want {
		t.Errorf("answered %s, want %s", made.raw, want)
	}
	shown := f.get("/api/v1/conversions/" + made.text("conversion_id")).want(200)
	want := fmt.Sprintf(`{"conversion_id":%q,"external_ref":"signup-1","type":"signup","partner_id":%q,"referral_code":%q,"campaign_id":%q,"plan_id":%q,`+
		`"value_brl":89.90,"occurred_at":"2026-03-01T15:00:00.25Z","customer_ref":"ana@example.com","notes":"from the fair",`+
		`"commission_id":%q,"commission_amount_brl":4.75,"created_at":%q}`,
		made.text("conversion_id"), f.partner, f.code, f.campaign, f.plan, made.text("commission_id"), shown.text("created_at"))
	if string(shown.raw) != want {
		t.Errorf("shown as\n%s\nwant\n%s", shown.raw, want)
	}
	if list := f.get("/api/v1/conversions").want(200); string(list.raw) != `{"data":[`+want+`],"next_cursor":null}` {
		t.Errorf("listed as %s", list.raw)
	}
}

func TestAConversionOfWhichLittleIsSaidIsALeadThatEarnsNothing(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	for name, null := range map[string]string{"left out": "", "null": "null"} {
		made := f.post("/api/v1/conversions", f.conversion(name, "plan_id", null, "type", null, "value_brl", null, "occurred_at", null, "customer_ref", null, "notes", null)).
			want(201).shows("commission_id", "<nil>", "commission_amount_brl", "<nil>", "idempotent", "false")
		shown := f.get("/api/v1/conversions/"+made.text("conversion_id")).want(200).shows("type", "lead", "plan_id", "<nil>", "value_brl", "<nil>",
			"customer_ref", "<nil>", "notes", "<nil>", "commission_id", "<nil>", "commission_amount_brl", "<nil>")
		if shown.text("occurred_at") != shown.text("created_at") {
			t.Errorf("without an occurred_at it happens when it is recorded, but not %s", shown.raw)
		}
		f.post("/api/v1/conversions", f.conversion(name, "plan_id", "")).want(200).
			shows("conversion_id", made.text("conversion_id"), "commission_id", "<nil>", "commission_amount_brl", "<nil>", "idempotent", "true")
	}
}

func TestAConversionEarnsWhatItsPlanPaysAtThatMoment(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	convert := func(ref string) *response { return f.post("/api/v1/conversions", f.conversion(ref)) }
	first := convert("first").want(201).shows("commission_amount_brl", "4.75")
	f.patch("/api/v1/plans/"+f.plan, `{"conversion_amount_brl":999999999.99}`).want(200)
	convert("dear").want(201).shows("commission_amount_brl", "999999999.99")
	f.patch("/api/v1/plans/"+f.plan, `{"conversion_amount_brl":null}`).want(200)
	convert("free").want(201).shows("commission_amount_brl", "<nil>", "commission_id", "<nil>")
	f.get("/api/v1/conversions/"+first.text("conversion_id")).want(200).shows("commission_amount_brl", "4.75", "commission_id", first.text("commission_id"))
	convert("first").want(200).shows("commission_amount_brl", "4.75", "commission_id", first.text("commission_id"))
	f.post("/api/v1/sales", f.sale("first")).want(201).shows("commission_amount_brl", "5.03") // the same plan, and the same reference
}

func TestARecordedConversionIsToldExactlyAsTheContractSays(t *testing.T) {
	t.Parallel()
	f := start(t, testkit.NATS(t).URL())
	body := f.conversion(`lead "1" é`, "type", `"signup"`, "value_brl", "89.90", "occurred_at", `"2026-03-01T12:00:00.25-03:00"`,
		"customer_ref", `"ana@example.com"`, "notes", `"private"`)
	made := f.send("POST", "/api/v1/conversions", body, "Authorization", "Bearer "+f.key, "traceparent", parent).want(201)
	conversion := f.get("/api/v1/conversions/" + made.text("conversion_id")).want(200)
	message := f.told("the conversion", isOf("conversion.recorded"))
	id := derived("conversion.recorded", made.text("conversion_id"))
	want := golden(t, "conversion.recorded", "event_id", id, "created_at", conversion.text("created_at"), "tenant_id", f.tenant,
		"conversion_id", made.text("conversion_id"), "partner_id", f.partner, "campaign_id", f.campaign, "plan_id", f.plan,
		"commission_id", made.text("commission_id"))
	if string(message.Data) != want {
		t.Errorf("told\n%s\nwant\n%s", message.Data, want)
	}
	if got := message.Header.Get(nats.MsgIdHdr); got != id {
		t.Errorf("Nats-Msg-Id is %s, want %s", got, id)
	}
	if got := message.Header.Get("traceparent"); got != parent {
		t.Errorf("traceparent is %s, want %s", got, parent)
	}
	f.post("/api/v1/conversions", body).want(200)
	next := f.post("/api/v1/conversions", f.conversion("lead-2", "plan_id", "")).want(201).text("conversion_id")
	f.told("the next conversion", func(m *jetstream.RawStreamMsg) bool {
		return m.Header.Get(nats.MsgIdHdr) == derived("conversion.recorded", next)
	})
	if n := len(f.stream()); n != 3 { // the partner, the two conversions, and no repeat
		t.Errorf("%d events are told, want 3", n)
	}
}

func TestThereIsNoConversionWithoutItsEvent(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	const refuse = `alter table outbox add constraint mute check (name <> 'conversion.recorded')`
	if _, err := f.deps.Pool.Exec(t.Context(), refuse); err != nil {
		t.Fatal(err)
	}
	f.recordsNothing(func() { f.post("/api/v1/conversions", f.conversion("lead-1")).refused(500, "internal_error") })
	if _, err := f.deps.Pool.Exec(t.Context(), `alter table outbox drop constraint mute`); err != nil {
		t.Fatal(err)
	}
	f.post("/api/v1/conversions", f.conversion("lead-1")).want(201)
	if n := f.rows("outbox_pending p join outbox o using (event_id) where o.name = 'conversion.recorded'"); n != 1 {
		t.Errorf("%d events of it wait to be published, want 1", n)
	}
}

func TestARepeatOfAConversionThatSaysSomethingElseIsToldWhat(t *testing.T) {
	t.Parallel()
	f := start(t, nowhere)
	first := []string{"type", `"trial"`, "value_brl", "89.90", "occurred_at", `"2026-03-01T12:00:00-03:00"`, "customer_ref", `"c"`, "notes", `"a"`}
	report := func(changes ...string) string {
		return f.conversion("lead-1", append(first[:len(first):len(first)], changes...)...)
	}
	made := f.post("/api/v1/conversions", report()).want(201)
	lead := f.post("/api/v1/conversions", f.conversion("plain")).want(201)
	for name, row := range map[string]struct {
		first      *response
		body, want string
	}{
		"the same":                     {made, report(), ""},
		"the same in other spellings":  {made, report("value_brl", "8990e-2", "occurred_at", `"2026-03-01T15:00:00.000Z"`, "notes", `"\u0061"`), ""},
		"no moment":                    {made, report("occurred_at", ""), ""},
		"another moment":               {made, report("occurred_at", `"2026-03-01T12:00:00Z"`), "occurred_at"},
		"another type":                 {made, report("type", `"custom"`), "type"},
		"no type":                      {made, report("type", ""), "type"},
		"another value":                {made, report("value_brl", "89.91"), "value_brl"},
		"no value":                     {made, report("value_brl", "null"), "value_brl"},
		"another customer":             {made, report("customer_ref", `"d"`), "customer_ref"},
		"no customer":                  {made, report("customer_ref", ""), "customer_ref"},
		"no notes":                     {made, report("notes", ""), "notes"},
		"another plan":                 {made, report("plan_id", quoted(uuid.NewString())), "plan_id"},
		"no plan":                      {made, report("plan_id", ""), "plan_id"},
		"a partner nobody knows":       {made, report("referral_code", `"nobody"`), "referral_code"},
		"a campaign that is not there": {made, report("campaign_id", quoted(uuid.NewString())), "campaign_id"},
		"everything": {made, report("referral_code", `"x"`, "campaign_id", quoted(f.plan), "plan_id", quoted(f.campaign), "type", `"lead"`, "value_brl", "1",
			"occurred_at", `"2026-01-01T00:00:00Z"`, "customer_ref", `""`, "notes", `""`),
			"campaign_id, customer_ref, notes, occurred_at, plan_id, referral_code, type, value_brl"},
		"a lead that is called one": {lead, f.conversion("plain", "type", `"lead"`, "value_brl", "null"), ""},
		"a moment at last":          {lead, f.conversion("plain", "occurred_at", `"2026-01-01T00:00:00Z"`), "occurred_at"},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			f.recordsNothing(func() {
				answer := f.post("/api/v1/conversions", row.body).want(200).shows("conversion_id", row.first.text("conversion_id"),
					"commission_id", row.first.text("commission_id"), "commission_amount_brl", "4.75", "idempotent", "true")
				if got := answer.Header.Get("Idempotency-Mismatch"); got != row.want {
					t.Errorf("Idempotency-Mismatch is %q, want %q", got, row.want)
				}
			})
		})
	}
}
