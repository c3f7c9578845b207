package commissions

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/event"
	"partilha.dev/pkg/web"
)

const path = "/api/v1/commissions"

// shown is as much of a list as the tests look at.
type shown struct {
	Data []struct {
		CommissionID uuid.UUID `json:"commission_id"`
	}
	NextCursor *string `json:"next_cursor"`
}

func (f *fixture) list(key, query string) (ids []uuid.UUID, next *string) {
	f.t.Helper()
	answer := f.get(key, path+query)
	var list shown
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || answer.Code != http.StatusOK {
		f.t.Fatalf("list%s: %d %s", query, answer.Code, answer.Body)
	}
	for _, c := range list.Data {
		ids = append(ids, c.CommissionID)
	}
	return ids, list.NextCursor
}

// firstCursor is the cursor behind the first commission, of which there must be two.
func (f *fixture) firstCursor(key string) string {
	f.t.Helper()
	_, next := f.list(key, "?limit=1")
	if next == nil {
		f.t.Fatal("the first of two pages has no cursor")
	}
	return *next
}

func TestACommissionExplainsItself(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant := newID()
	key := f.key(tenant, auth.CommissionsRead)
	f.wire()
	recorded := f.now.Truncate(time.Second).Add(-time.Minute + 120430*time.Microsecond)
	sold := sale(tenant, recorded, func(s *event.SaleRecorded) { s.HoldDays = 14 })
	f.mustEarn(sold)
	d := sold.Data
	want := fmt.Sprintf(`{"commission_id":%q,"partner_id":%q,"campaign_id":%q,"plan_id":%q,"kind":"sale",`+
		`"source_sale_id":%q,"source_conversion_id":null,"source_goal_id":null,`+
		`"base_amount_brl":259.35,"commission_pct":12.5,"commission_amount_brl":32.42,"reversed_brl":0.00,`+
		`"status":"pending","available_at":%q,"created_at":%q}`,
		d.CommissionID, d.PartnerID, d.CampaignID, d.PlanID, d.SaleID,
		recorded.AddDate(0, 0, 14).Format("2006-01-02T15:04:05.999999Z"), recorded.Format("2006-01-02T15:04:05.999999Z"))

	for _, id := range []string{d.CommissionID.String(), strings.ToUpper(d.CommissionID.String())} {
		if answer := f.get(key, path+"/"+id); answer.Code != http.StatusOK || answer.Body.String() != want {
			t.Errorf("%d %s, want %s", answer.Code, answer.Body, want)
		}
	}
	if answer := f.get(key, path); answer.Body.String() != `{"data":[`+want+`],"next_cursor":null}` {
		t.Errorf("the list is %s", answer.Body)
	}
}

func TestPagesAreNewestFirstAndDoNotShiftWhileCommissionsArrive(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant, partner := newID(), newID()
	key := f.key(tenant, auth.CommissionsRead)
	f.wire()
	var want []uuid.UUID
	for range 7 {
		sold := sale(tenant, f.now, soldBy(partner))
		f.mustEarn(sold, sale(tenant, f.now), sale(newID(), f.now, soldBy(partner)))
		want = append([]uuid.UUID{sold.Data.CommissionID}, want...)
	}
	filter := "?limit=3&partner_id=" + partner.String()
	var got []uuid.UUID
	var sizes []int
	for cursor := ""; len(sizes) <= len(want); {
		ids, next := f.list(key, filter+cursor)
		got, sizes = append(got, ids...), append(sizes, len(ids))
		if next == nil {
			break
		}
		cursor = "&cursor=" + *next
		f.mustEarn(sale(tenant, f.now, soldBy(partner)))
	}
	if !slices.Equal(got, want) || !slices.Equal(sizes, []int{3, 3, 1}) {
		t.Errorf("pages of %v: %v, want %v", sizes, got, want)
	}
	if ids, next := f.list(key, "?limit=100"); len(ids) != 16 || next != nil || !slices.IsSortedFunc(ids, func(a, b uuid.UUID) int { return strings.Compare(b.String(), a.String()) }) {
		t.Errorf("all of the tenant: %v", ids)
	}
	if ids, next := f.list(key, "?limit=16"); len(ids) != 16 || next != nil {
		t.Errorf("a page that is just full has %d rows and cursor %v", len(ids), next)
	}
}

func TestAPageHas25RowsUnlessMoreOrFewerAreAskedFor(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant := newID()
	key := f.key(tenant, auth.CommissionsRead)
	f.wire()
	for range 26 {
		f.mustEarn(sale(tenant, f.now))
	}
	if ids, next := f.list(key, ""); len(ids) != 25 || next == nil {
		t.Errorf("%d rows", len(ids))
	}
}

func TestFiltersNarrowTheListTogether(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant := newID()
	key := f.key(tenant, auth.CommissionsRead)
	f.wire()
	one, other, foreign := sale(tenant, f.now), sale(tenant, f.now), sale(newID(), f.now)
	f.mustEarn(one, other, foreign)
	first, second := one.Data, other.Data
	for query, want := range map[string][]uuid.UUID{
		fmt.Sprintf("?partner_id=%s", first.PartnerID):                                  {first.CommissionID},
		fmt.Sprintf("?source_sale_id=%s", second.SaleID):                                {second.CommissionID},
		fmt.Sprintf("?source_sale_id=%s", strings.ToUpper(second.SaleID.String())):      {second.CommissionID},
		fmt.Sprintf("?source_sale_id=%s&partner_id=%s", first.SaleID, first.PartnerID):  {first.CommissionID},
		fmt.Sprintf("?source_sale_id=%s&partner_id=%s", first.SaleID, second.PartnerID): nil,
		fmt.Sprintf("?partner_id=%s", newID()):                                          nil,
		fmt.Sprintf("?source_sale_id=%s", newID()):                                      nil,
		fmt.Sprintf("?source_sale_id=%s", foreign.Data.SaleID):                          nil,
		fmt.Sprintf("?partner_id=%s", foreign.Data.PartnerID):                           nil,
	} {
		if ids, next := f.list(key, query); !slices.Equal(ids, want) || next != nil {
			t.Errorf("%s: %v, want %v", query, ids, want)
		}
	}
	if answer := f.get(key, path+"?partner_id="+newID().String()); answer.Body.String() != `{"data":[],"next_cursor":null}` {
		t.Errorf("an empty page is %s", answer.Body)
	}
}

var requestID = regexp.MustCompile(`"request_id":"[^"]*"`)

func TestAnotherTenantsCommissionReadsLikeOneThatNeverWas(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	owner, stranger := newID(), newID()
	owners, strangers := f.key(owner, auth.CommissionsRead), f.key(stranger, auth.CommissionsRead)
	f.wire()
	sold := sale(owner, f.now)
	f.mustEarn(sold)
	if answer := f.get(owners, path+"/"+sold.Data.CommissionID.String()); answer.Code != http.StatusOK {
		t.Fatalf("its owner sees %d %s", answer.Code, answer.Body)
	}
	foreign := f.get(strangers, path+"/"+sold.Data.CommissionID.String())
	unknown := f.get(strangers, path+"/"+newID().String())
	blank := func(a *httptest.ResponseRecorder) string { return requestID.ReplaceAllString(a.Body.String(), "") }
	if foreign.Code != http.StatusNotFound || unknown.Code != http.StatusNotFound || blank(foreign) != blank(unknown) {
		t.Errorf("foreign %d %s, unknown %d %s", foreign.Code, foreign.Body, unknown.Code, unknown.Body)
	}
	names := func(a *httptest.ResponseRecorder) []string { return slices.Sorted(maps.Keys(a.Header())) }
	if !slices.Equal(names(foreign), names(unknown)) {
		t.Errorf("headers %v and %v", foreign.Header(), unknown.Header())
	}
	if ids, _ := f.list(strangers, ""); len(ids) != 0 {
		t.Errorf("the stranger's list has %v", ids)
	}
}

// refused checks that an answer is an error of the one shape.
func refused(t *testing.T, answer *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	var body struct {
		Code, Message string
		RequestID     string `json:"request_id"`
	}
	err := json.Unmarshal(answer.Body.Bytes(), &body)
	if err != nil || answer.Code != status || body.Code != code || body.Message == "" ||
		body.RequestID == "" || body.RequestID != answer.Header().Get("X-Request-Id") ||
		answer.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s, want %d %s", answer.Code, answer.Header(), answer.Body, status, code)
	}
}

func TestWhatIsNotARequestOfTheAPIIsRefused(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	tenant := newID()
	key, scopeless := f.key(tenant, auth.CommissionsRead), f.key(tenant, auth.SalesRead, auth.GoalsRead)
	revoked, expired, suspended := f.key(tenant, auth.CommissionsRead), f.key(tenant, auth.CommissionsRead), f.key(newID(), auth.CommissionsRead)
	change := func(key, to string, args ...any) {
		f.exec(`update known_keys set `+to+` where key_id = $1`, append([]any{key[4:12]}, args...)...)
	}
	change(revoked, "revoked_at = $2", f.now)
	change(expired, "expires_at = $2", f.now)
	change(suspended, "suspended = true")
	f.wire()
	unknown, _, _, err := auth.NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	f.mustEarn(sale(tenant, f.now), sale(tenant, f.now))
	cursor := f.firstCursor(key)

	one := path + "/" + newID().String()
	for _, row := range []struct {
		name, key, target string
		status            int
		code              string
	}{
		{"no key", "", path, 401, "unauthorized"},
		{"an unknown key", unknown, path, 401, "unauthorized"},
		{"a key with a broken checksum", key[:len(key)-1] + "!", path, 401, "unauthorized"},
		{"a revoked key", revoked, one, 401, "unauthorized"},
		{"an expired key", expired, one, 401, "unauthorized"},
		{"a suspended tenant", suspended, path, 403, "tenant_suspended"},
		{"a key without the scope, for the list", scopeless, path, 403, "insufficient_scope"},
		{"a key without the scope, for one", scopeless, one, 403, "insufficient_scope"},
		{"limit 0", key, path + "?limit=0", 400, "invalid_parameter"},
		{"limit 101", key, path + "?limit=101", 400, "invalid_parameter"},
		{"a limit in words", key, path + "?limit=ten", 400, "invalid_parameter"},
		{"two limits", key, path + "?limit=1&limit=2", 400, "invalid_parameter"},
		{"an empty cursor", key, path + "?cursor=", 400, "invalid_parameter"},
		{"a made-up cursor", key, path + "?cursor=b2xkZXItdGhhbjowMTlmNjBiNg", 400, "invalid_parameter"},
		{"an altered cursor", key, path + "?cursor=B" + cursor[1:], 400, "invalid_parameter"},
		{"a partner that is no UUID", key, path + "?partner_id=ana", 400, "invalid_parameter"},
		{"a sale in braces", key, path + "?source_sale_id=%7B" + newID().String() + "%7D", 400, "invalid_parameter"},
		{"a filter that there is not", key, path + "?partner=1", 400, "invalid_parameter"},
		{"an id that is no UUID", key, path + "/1", 400, "invalid_parameter"},
		{"an id without hyphens", key, path + "/" + strings.ReplaceAll(newID().String(), "-", ""), 400, "invalid_parameter"},
		{"a parameter where none is taken", key, one + "?limit=1", 400, "invalid_parameter"},
		{"an id that never was", key, one, 404, "not_found"},
		{"an address that there is not", key, one + "/history", 404, "not_found"},
	} {
		t.Run(row.name, func(t *testing.T) {
			answer := f.get(row.key, row.target)
			refused(t, answer, row.status, row.code)
			if wants := answer.Header().Get("WWW-Authenticate"); (wants == "Bearer") != (row.status == 401) {
				t.Errorf("WWW-Authenticate is %q", wants)
			}
		})
	}
}

func TestCommissionsCannotBeChangedByAnybody(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	key := f.key(newID(), auth.AllScopes...)
	f.wire()
	for _, target := range []string{path, path + "/" + newID().String()} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			request := httptest.NewRequest(method, target, strings.NewReader("{}"))
			request.Header.Set("Authorization", "Bearer "+key)
			answer := httptest.NewRecorder()
			f.Handler().ServeHTTP(answer, request)
			refused(t, answer, http.StatusMethodNotAllowed, "method_not_allowed")
			if allow := answer.Header().Get("Allow"); allow != "GET" {
				t.Errorf("%s %s allows %q", method, target, allow)
			}
		}
	}
}

func TestAKeyThatAsksTooOftenIsToldWhenToComeAgain(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	key := f.key(newID(), auth.CommissionsRead)
	f.deps.Limiter = web.NewLimiter(web.Limits{PerSecond: 1, Burst: 1, InFlight: 1, FailuresPerSecond: 1, FailureBurst: 1})
	f.wire()
	f.list(key, "")
	answer := f.get(key, path)
	refused(t, answer, http.StatusTooManyRequests, "rate_limited")
	for _, name := range []string{"Retry-After", "RateLimit", "RateLimit-Policy"} {
		if answer.Header().Get(name) == "" {
			t.Errorf("there is no %s", name)
		}
	}
}

func TestADefectIsShownAsASafeText(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	key := f.key(newID(), auth.CommissionsRead)
	f.wire()
	f.exec(`alter table commissions rename to elsewhere`)
	for _, target := range []string{path, path + "/" + newID().String()} {
		answer := f.get(key, target)
		refused(t, answer, http.StatusInternalServerError, "internal_error")
		if strings.Contains(answer.Body.String(), "relation") {
			t.Errorf("the answer tells of the database: %s", answer.Body)
		}
	}
}

func TestWithoutItsDatabaseTheServiceIsUnavailable(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	key := f.key(newID(), auth.CommissionsRead)
	f.wire()
	f.deps.Pool.Close()
	for _, target := range []string{path, path + "?partner_id=" + newID().String(), path + "/" + newID().String()} {
		answer := f.get(key, target)
		refused(t, answer, http.StatusServiceUnavailable, "unavailable")
		if answer.Header().Get("Retry-After") == "" {
			t.Error("there is no Retry-After")
		}
	}
	if answer := f.get("", "/readyz"); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("readyz is %d", answer.Code)
	}
}
