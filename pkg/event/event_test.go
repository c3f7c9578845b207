package event_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"partilha.dev/pkg/event"
)

func TestTheIDFollowsFromTheNameAndTheCause(t *testing.T) {
	// Ids of facts that have been told must never change.
	if got := event.IDOf("sale.recorded", "x").String(); got != "evt_56b3181b3ee00cd079785ca5e714966f" {
		t.Errorf("sale.recorded of x has the id %s", got)
	}
	seen := map[event.ID]string{}
	for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}, {"ab", ""}, {"", "ab"}, {"a", "c"}, {"c", "b"}} {
		id := event.IDOf(pair[0], pair[1])
		if other, taken := seen[id]; taken {
			t.Errorf("%q and %q share an id", pair, other)
		}
		seen[id] = pair[0] + "," + pair[1]
	}
}

func TestTellingAFactAgainMakesTheSameID(t *testing.T) {
	first := seal(t, event.PartnerCreated{Name: "João"})
	again, err := event.Seal(tenant, cause, later, event.PartnerCreated{Name: "Another"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if first.ID != again.ID {
		t.Errorf("%s and %s", first.ID, again.ID)
	}
	if other := seal(t, event.PartnerChanged{}); other.ID == first.ID {
		t.Error("another event of the same cause has the same id")
	}
}

func FuzzID(f *testing.F) {
	for _, seed := range []string{
		"evt_00112233445566778899aabbccddeeff", "evt_00112233445566778899AABBCCDDEEFF", "", "evt_", "00112233445566778899aabbccddeeff",
		"evt_00112233445566778899aabbccddeef", "evt_00112233445566778899aabbccddeeff0", "evt_00112233445566778899aabbccddeeff00", "evt_00112233445566778899aabbccddee",
		"evt_00112233445566778899aabbccddeefg",
		"EVT_00112233445566778899aabbccddeeff", " evt_00112233445566778899aabbccddeeff", "evt_+0112233445566778899aabbccddeeff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before := event.IDOf("any", "thing")
		id := before
		err := id.UnmarshalText([]byte(text))
		digits, isID := strings.CutPrefix(text, "evt_")
		isID = isID && len(digits) == 32 && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
		switch {
		case (err == nil) != isID:
			t.Errorf("%q: %v", text, err)
		case err != nil && id != before:
			t.Errorf("%q was refused and changed the id", text)
		case err == nil && id.String() != strings.ToLower(text):
			t.Errorf("%q is written as %s", text, id)
		}
	})
}

// FuzzOpen feeds anything to the envelope. Whatever it accepts is complete, and is
// read by its type or refused.
func FuzzOpen(f *testing.F) {
	for _, kind := range samples(f) {
		f.Add(kind.events[0].Body)
	}
	f.Add([]byte(`{"event":"\u0000","event_id":"evt_00112233445566778899aabbccddeeff","created_at":"2026-01-01T00:00:00Z",` +
		`"tenant_id":"01920000-0000-7000-8000-00000000000a","data":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := event.Open(body)
		if err != nil {
			return
		}
		if e.Name == "" || e.ID == (event.ID{}) || e.CreatedAt.IsZero() || !bytes.Equal(e.Body, body) {
			t.Errorf("%q was opened as %+v", body, e)
		}
		if read, err := event.Read[event.GoalReached](e); err == nil && (read.ID != e.ID || read.Name != event.NameGoalReached) {
			t.Errorf("%q was read as %+v", body, read)
		}
	})
}

func TestAnEnvelopeThatLacksAMemberIsRefused(t *testing.T) {
	whole := string(seal(t, event.PartnerCreated{Name: "João"}).Body)
	if _, err := event.Open([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	for name, cut := range map[string][2]string{
		"no event":             {`"event":"partner.created",`, ``},
		"an empty event":       {`"event":"partner.created"`, `"event":""`},
		"no id":                {`"event_id":`, `"other":`},
		"a malformed id":       {`"evt_`, `"evt-`},
		"no time":              {`"created_at":"2026-08-14T23:59:58.12Z",`, ``},
		"a time without zone":  {`58.12Z"`, `58.12"`},
		"no tenant":            {`"tenant_id":`, `"other":`},
		"no data":              {`"data":`, `"other":`},
		"null for data":        {whole[strings.Index(whole, `"data":`):], `"data":null}`},
		"a list for data":      {whole[strings.Index(whole, `"data":`):], `"data":[]}`},
		"a member given twice": {`{"event":`, `{"event":"partner.created","event":`},
		"another letter case":  {`"event":`, `"Event":`},
		"trailing bytes":       {`}}`, `}}{}`},
		"not UTF-8":            {`João`, "Jo\xe3o"},
		"half an envelope":     {whole[len(whole)/2:], ``},
	} {
		t.Run(name, func(t *testing.T) {
			body := strings.Replace(whole, cut[0], cut[1], 1)
			if body == whole {
				t.Fatal("nothing was cut")
			}
			if _, err := event.Open([]byte(body)); err == nil {
				t.Errorf("accepted %s", body)
			}
		})
	}
}

func TestMembersOfALaterVersionAreIgnored(t *testing.T) {
	e := seal(t, event.PartnerCreated{PartnerID: partner, Name: "João", CreatedAt: moment})
	e.Body = bytes.Replace(e.Body, []byte(`"name":`), []byte(`"tier":{"level":[1,null]},"name":`), 1)
	e.Body = bytes.Replace(e.Body, []byte(`"data":`), []byte(`"version":2,"data":`), 1)
	opened, err := event.Open(e.Body)
	if err != nil {
		t.Fatal(err)
	}
	read, err := event.Read[event.PartnerCreated](opened)
	if err != nil {
		t.Fatal(err)
	}
	if read.Data.PartnerID != partner || read.Data.Name != "João" || !read.Data.CreatedAt.Equal(moment) {
		t.Errorf("read %+v", read.Data)
	}
}

func TestAnEventIsNotReadAsAnotherKind(t *testing.T) {
	e := seal(t, event.PartnerCreated{PartnerID: partner})
	if read, err := event.Read[event.PartnerChanged](e); err == nil {
		t.Errorf("read %+v", read)
	}
}

func TestTheTraceTravelsBesideTheBytes(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	e, err := event.Seal(tenant, cause, moment, event.PartnerCreated{}, parent)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(e.Body, []byte("0af7651916cd43dd8448eb211c80319c")) {
		t.Errorf("the bytes carry it: %s", e.Body)
	}
	if read, err := event.Read[event.PartnerCreated](e); err != nil || read.Traceparent != parent {
		t.Errorf("read with %q, %v", read.Traceparent, err)
	}
}

func TestAnInstantIsUTCAndWholeMicroseconds(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 30, 0, 123_456_999, time.FixedZone("BRT", -3*60*60))
	got := event.Instant(at)
	if want := "2026-01-01T03:30:00.123456Z"; got.Format(time.RFC3339Nano) != want {
		t.Errorf("%s; want %s", got.Format(time.RFC3339Nano), want)
	}
	if now := time.Now(); event.Instant(now) != event.Instant(now.Round(0)) {
		t.Error("the reading of the monotonic clock is kept")
	}
	e, err := event.Seal(tenant, cause, at, event.PartnerCreated{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if e.CreatedAt != got || !bytes.Contains(e.Body, []byte(`"created_at":"2026-01-01T03:30:00.123456Z"`)) {
		t.Errorf("sealed at %s: %s", e.CreatedAt, e.Body)
	}
}

func TestAnEventThatCannotBeWrittenIsAnError(t *testing.T) {
	never := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	if e, err := event.Seal(tenant, cause, never, event.PartnerCreated{}, ""); err == nil {
		t.Errorf("sealed %s", e.Body)
	}
	if e, err := event.Seal(tenant, cause, moment, event.PartnerCreated{Name: "Jo\xe3o"}, ""); err == nil {
		t.Errorf("sealed %q", e.Body)
	}
}

func TestAQuantityIsACountOrAnAmount(t *testing.T) {
	for text, want := range map[string]event.Quantity{
		"0": {}, "12": {Value: 12}, "-3": {Value: -3}, "9223372036854775807": {Value: 9223372036854775807},
		"0.00": {IsAmount: true}, "12.50": {Value: 1250, IsAmount: true}, "-0.05": {Value: -5, IsAmount: true},
	} {
		var got event.Quantity
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
		if written, err := json.Marshal(want); err != nil || string(written) != text {
			t.Errorf("%+v is written as %s, %v", want, written, err)
		}
	}
	for _, text := range []string{`"12"`, `null`, `true`, `1.555`, `9223372036854775808`, `1e3`, `99999999999999999999.00`} {
		got := event.Quantity{Value: 7, IsAmount: true}
		if err := json.Unmarshal([]byte(text), &got); err == nil || got != (event.Quantity{Value: 7, IsAmount: true}) {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
}

func TestOnlyWhatStaysBetweenTheServicesIsInternal(t *testing.T) {
	for name := range members {
		if got := event.Internal(name); got != (name == event.NamePartnerChanged) {
			t.Errorf("%s: %v", name, got)
		}
	}
	want := "partner.created conversion.recorded commission.available withdrawal.requested withdrawal.status_changed"
	if got := strings.Join(event.Default, " "); got != want {
		t.Errorf("by default an endpoint hears %s", got)
	}
}
