package webhooks

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
)

// wireTrial is what came of a sample as a caller reads it.
type wireTrial struct {
	wire
	Event      string
	Delivered  bool
	DurationMS *int    `json:"duration_ms"`
	StatusCode *int    `json:"status_code"`
	Error      *string `json:"error"`
	Excerpt    *string `json:"response_excerpt"`
}

func TestASampleIsSentNowAndRecordedNowhere(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thanks") })
	s := k.service(lenient)
	created := k.register(s, who, in.URL+"/hooks", "sale.recorded", "*")
	path := endpointsPath + "/" + created.EndpointID + "/test"
	k.ask(s, who, "PATCH", endpointsPath+"/"+created.EndpointID,
		`{"status":"disabled","standard_webhooks":true,"filter":{"partner_ids":["`+partnerA+`"]}}`).must(200, nil)
	before := k.dump()

	bodies := []string{``, `{}`}
	for _, name := range deliverable {
		bodies = append(bodies, `{"event":"`+name+`"}`)
	}
	for i, body := range bodies {
		want := event.NameSaleRecorded
		if named := i - 2; named >= 0 {
			want = deliverable[named]
		}
		var got wireTrial
		k.ask(s, who, "POST", path, body).must(200, &got)
		p := in.posts()[i]
		told, err := event.Open(p.body)
		if err != nil || told.Name != want || told.TenantID != who.tenant {
			t.Errorf("%s sends %s, %v", body, p.body, err)
		}
		if got.Event != want || got.EventID != told.ID.String() || !got.Delivered || got.StatusCode == nil || *got.StatusCode != 200 ||
			got.Error != nil || got.Excerpt == nil || *got.Excerpt != "thanks" || got.DurationMS == nil {
			t.Errorf("%s answers %+v", body, got)
		}
		if got.Request.URL != in.URL+"/hooks" || got.Request.Body != string(p.body) || p.header.Get("X-Service-Signature") != sign(created.Secret, p.body) {
			t.Errorf("%s shows %+v and sends %+v", body, got.Request, p)
		}
		for name, value := range p.header {
			if shown := got.Request.Headers[name]; shown != value[0] && name != "Accept-Encoding" {
				t.Errorf("%s: %s is sent, %s is shown", name, value, shown)
			}
		}
	}
	if after := k.dump(); after != before {
		t.Errorf("a test has changed\n%s\nto\n%s", before, after)
	}
	if n := in.count(); n != len(bodies) {
		t.Errorf("%d were posted", n)
	}
	for _, body := range []string{`{"event":"*"}`, `{"event":"partner.changed"}`, `{"event":1}`, `{"url":"https://example.com/"}`} {
		k.ask(s, who, "POST", path, body).refused(400, "invalid_body")
	}
}

func TestATestTellsWhatTheReceiverSaid(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	impatientConfig := lenient
	impatientConfig.Timeout, impatientConfig.Lease = impatient, time.Minute
	s := k.service(impatientConfig)
	strict := k.service(Config{SecretKey: testKey})
	inbox := func(then http.HandlerFunc) string { return newInbox(t, then).URL }
	long := strings.Repeat("é", maxResponse)
	closed := newInbox(t, nil)
	closed.Close()
	for _, row := range []struct {
		what    string
		service *Service
		url     string
		status  int
		error   failure
		excerpt string
	}{
		{"a refusal", s, inbox(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad signature", http.StatusUnauthorized) }), 401, failedStatus, "bad signature\n"},
		{"a redirect", s, inbox(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		}), 307, failedRedirect, ""},
		{"a long answer", s, inbox(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, long) }), 200, "", long[:maxResponse]},
		{"silence", s, inbox(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}), 0, failedTimeout, ""},
		{"nobody there", s, closed.URL, 0, failedConnect, ""},
		{"an address that is not allowed", strict, inbox(nil), 0, failedBlocked, ""},
	} {
		id := k.register(s, who, row.url, "*").EndpointID
		var got wireTrial
		k.ask(row.service, who, "POST", endpointsPath+"/"+id+"/test", `{}`).must(200, &got)
		if got.Delivered != (row.error == "") || (got.StatusCode == nil) != (row.status == 0) || got.StatusCode != nil && *got.StatusCode != row.status ||
			(got.Error == nil) != (row.error == "") || got.Error != nil && *got.Error != string(row.error) {
			t.Errorf("%s: %+v", row.what, got)
		}
		if row.excerpt != "" && (got.Excerpt == nil || *got.Excerpt != row.excerpt) || row.status == 0 && got.Excerpt != nil {
			t.Errorf("%s: excerpt %v", row.what, got.Excerpt)
		}
	}
}

func TestAPreviewShowsWhoWouldGetAnEventAndTheVeryRequest(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	all := k.register(s, who, in.URL+"/all", "*")
	k.rotateTo(s, who, all.EndpointID, `{}`)
	sales := k.register(s, who, in.URL+"/sales", event.NameSaleRecorded)
	off := k.register(s, who, in.URL+"/off", "*")
	k.ask(s, who, "PATCH", endpointsPath+"/"+off.EndpointID, `{"status":"disabled"}`).must(200, nil)
	var narrow wire
	k.ask(s, who, "POST", endpointsPath, `{"url":"`+in.URL+`/narrow","events":["*"],"standard_webhooks":true,"filter":{"partner_ids":["`+partnerA+`"],"min_amount_brl":50}}`).must(201, &narrow)
	gone := k.register(s, who, in.URL+"/gone", "*")
	k.ask(s, who, "DELETE", endpointsPath+"/"+gone.EndpointID, "").must(204, nil)
	before := k.dump()

	for _, row := range []struct {
		body string
		data string // "": that of the sample
		want []string
	}{
		{`{"event":"partner.created"}`, "", []string{"filter", "disabled", "event", ""}},
		{`{"event":"partner.created","data":null}`, "", []string{"filter", "disabled", "event", ""}},
		{`{"event":"partner.created","data":{"partner_id":"` + partnerA + `"}}`, `{"partner_id":"` + partnerA + `"}`, []string{"", "disabled", "event", ""}},
		{`{"event":"commission.available","data":{ "amount_brl" : 50.0, "note":"ação" }}`, `{"amount_brl":50.0,"note":"ação"}`, []string{"", "disabled", "event", ""}},
		{`{"event":"commission.available","data":{"amount_brl":49.99}}`, `{"amount_brl":49.99}`, []string{"filter", "disabled", "event", ""}},
		{`{"event":"commission.available","data":{}}`, `{}`, []string{"", "disabled", "event", ""}},
		{`{"event":"sale.recorded"}`, "", []string{"event", "event", "", "event"}},
	} {
		var got wirePage
		k.ask(s, who, "POST", endpointsPath+"/preview", row.body).must(200, &got)
		var reasons []string
		for i, e := range got.Endpoints {
			if id := []string{narrow.EndpointID, off.EndpointID, sales.EndpointID, all.EndpointID}[i]; e.EndpointID != id {
				t.Errorf("%s: place %d has %s, want %s", row.body, i, e.EndpointID, id)
			}
			reason := ""
			if e.Reason != nil {
				reason = *e.Reason
			}
			reasons = append(reasons, reason)
			if (e.Request == nil) != (reason != "") {
				t.Errorf("%s: reason %q with request %+v", row.body, reason, e.Request)
			}
			if e.Request == nil {
				continue
			}
			told, err := event.Envelope([]byte(e.Request.Body))
			if err != nil || !strings.Contains(row.body, `"`+told.Name+`"`) || row.data != "" && string(told.Data) != row.data {
				t.Errorf("%s would send %s, %v", row.body, e.Request.Body, err)
			}
		}
		if !slices.Equal(reasons, row.want) {
			t.Errorf("%s: reasons %q, want %q", row.body, reasons, row.want)
		}
	}
	if after := k.dump(); after != before || in.count() != 0 {
		t.Errorf("a preview has sent %d and changed\n%s\nto\n%s", in.count(), before, after)
	}
	for _, body := range []string{`{}`, `{"event":"*"}`, `{"event":"partner.created","data":[]}`, `{"event":"partner.created","data":"x"}`, `{"event":"partner.created","to":"x"}`} {
		k.ask(s, who, "POST", endpointsPath+"/preview", body).refused(400, "invalid_body")
	}
}

// TestWhatIsPreviewedIsWhatIsSent has the previewed body sent and compares the requests.
func TestWhatIsPreviewedIsWhatIsSent(t *testing.T) {
	t.Parallel()
	k := newStack(t)
	who := k.member(uuid.New())
	in := newInbox(t, nil)
	s := k.service(lenient)
	id := k.register(s, who, in.URL+"/hooks?a=1", "*").EndpointID
	k.rotateTo(s, who, id, `{}`)
	var previewed wirePage
	k.ask(s, who, "POST", endpointsPath+"/preview", `{"event":"partner.created"}`).must(200, &previewed)
	shown := previewed.Endpoints[0].Request
	listeners, err := s.listeners(t.Context(), who.tenant, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.sealer.sign(listeners[0].endpoint, listeners[0].sealed, event.ID{}, time.Now(), []byte(shown.Body))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.dispatcher.sender.send(t.Context(), compose(listeners[0].url, event.NamePartnerCreated, []byte(shown.Body), signed)); !got.Delivered {
		t.Fatalf("it is not sent: %+v", got)
	}
	p := in.posts()[0]
	sent := map[string]string{"Host": p.host}
	for name, value := range p.header {
		sent[name] = value[0]
	}
	delete(sent, "Accept-Encoding")
	want, _ := json.Marshal(sent)
	got, _ := json.Marshal(shown.Headers)
	if string(got) != string(want) || shown.Method != p.method || !strings.HasSuffix(shown.URL, p.path) || shown.Body != string(p.body) {
		t.Errorf("previewed %+v, sent %+v", shown, p)
	}
}
