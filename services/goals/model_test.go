package goals_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/money"
	"partilha.dev/services/goals"
)

// model is what goals are meant to be, said without a database: it keeps all that has
// happened and works everything out from the beginning whenever it is asked.
type model struct {
	happened []happening
	goals    map[string]*target
	reached  map[string]bool // by goal, partner and period: must be reached
	may      map[string]bool // and may be
}

// happening is a fact, in the order in which it was heard of.
type happening struct {
	tenant, partner, campaign uuid.UUID
	at                        time.Time
	worth                     map[string]int64 // by metric
}

// target is a goal.
type target struct {
	owner              tenant
	id, metric, period string
	target             int64
	zone               *time.Location
	since, origin      time.Time
	until              *time.Time
	campaign           *uuid.UUID
	partners           []uuid.UUID // nil: everybody
	made               time.Time
	rested             int // how much had happened when it was archived; -1: it is active
}

// begins returns where the goal's period begins that at is in, or the one that many
// periods later. Its zones have a midnight on every day that is looked at.
func (g *target) begins(at time.Time, later int) time.Time {
	local := at.In(g.zone)
	year, month, day := local.Date()
	switch g.period {
	case "day":
		day += later
	case "week":
		for back := local; back.Weekday() != time.Monday; back = time.Date(year, month, day, 12, 0, 0, 0, g.zone) {
			day--
		}
		day += 7 * later
	case "month":
		month, day = month+time.Month(later), 1
	case "quarter":
		month, day = []time.Month{1, 1, 1, 4, 4, 4, 7, 7, 7, 10, 10, 10}[month-1]+time.Month(3*later), 1
	case "year":
		year, month, day = year+later, 1, 1
	default:
		return g.origin
	}
	return time.Date(year, month, day, 0, 0, 0, 0, g.zone)
}

// totals are the goal's totals that are not 0, by partner and period.
func (m *model) totals(g *target) map[string]int64 {
	totals := map[string]int64{}
	heard := m.happened
	if g.rested >= 0 {
		heard = heard[:g.rested]
	}
	for _, h := range heard {
		if h.tenant != g.owner.id || h.at.Before(g.since) || g.until != nil && !h.at.Before(*g.until) ||
			g.campaign != nil && *g.campaign != h.campaign || g.partners != nil && !slices.Contains(g.partners, h.partner) {
			continue
		}
		totals[fmt.Sprintf("%s %s %d", g.id, h.partner, g.begins(h.at, 0).Unix())] += h.worth[g.metric]
	}
	maps.DeleteFunc(totals, func(_ string, total int64) bool { return total == 0 })
	return totals
}

// over tells whether the goal could not be reached any more in the place's period when
// it was made.
func (g *target) over(place string) bool {
	var start int64
	if _, err := fmt.Sscanf(strings.Fields(place)[2], "%d", &start); err != nil {
		panic(err)
	}
	if g.until != nil && !g.until.After(g.made) {
		return true
	}
	return g.period != "total" && !g.begins(time.Unix(start, 0), 1).After(g.made)
}

// judge notes who has come up to a target now.
func (m *model) judge(filled func(id string) bool) {
	for id, g := range m.goals {
		if g.rested >= 0 {
			continue
		}
		for place, total := range m.totals(g) {
			if total >= g.target && !g.over(place) {
				m.may[place] = true
				if filled(id) {
					m.reached[place] = true
				}
			}
		}
	}
}

// scenario is a random life of a few goals, in the model and in a service.
type scenario struct {
	*world
	model
	service   *goals.Service
	chance    *rand.Rand
	owners    []tenant
	partners  []uuid.UUID
	campaigns []uuid.UUID
	sold      []event.Event[event.SaleRecorded]
	refunded  map[uuid.UUID]money.BRL
	late      []delivery // has happened, and is not heard of yet
	heard     []delivery
}

// delivery is an event and what it means.
type delivery struct {
	sealed event.Sealed
	means  happening
}

func pick[T any](chance *rand.Rand, of []T) T { return of[chance.IntN(len(of))] }

// moment is a time of the last year and the next days, at the edge of a day now and then.
func (s *scenario) moment() time.Time {
	at := s.now().UTC().Truncate(time.Second).Add(-time.Duration(s.chance.IntN(400*24*60)-3*24*60) * time.Minute)
	if s.chance.IntN(2) == 0 {
		at = s.now().UTC().Truncate(time.Second).Add(-time.Duration(s.chance.IntN(5*24*60)-24*60) * time.Minute)
	}
	if s.chance.IntN(4) == 0 {
		at = at.Truncate(24 * time.Hour).Add(time.Duration(s.chance.IntN(24)) * time.Hour).Add(time.Duration(s.chance.IntN(3)-1) * time.Second)
	}
	return at
}

// happen makes something happen.
func (s *scenario) happen() delivery {
	owner, partner, campaign := pick(s.chance, s.owners), pick(s.chance, s.partners), pick(s.chance, s.campaigns)
	switch kind := s.chance.IntN(10); {
	case kind < 3 && len(s.sold) > 0:
		of := pick(s.chance, s.sold)
		before := s.refunded[of.Data.SaleID]
		left := of.Data.Amount - before
		if left == 0 {
			break
		}
		if s.chance.IntN(2) == 0 {
			left = money.BRL(1 + s.chance.Int64N(left.Centavos()))
		}
		s.refunded[of.Data.SaleID] += left
		e := refund(of, left, before)
		worth := map[string]int64{"sales_amount": -left.Centavos(), "commission_amount": -e.Data.CommissionReversed.Centavos()}
		if before+left == of.Data.Amount {
			worth["sales_count"] = -1
		}
		return delivery{sealed(s.t, e, e.Data.RefundID), happening{of.TenantID, of.Data.PartnerID, of.Data.CampaignID, of.Data.SoldAt, worth}}
	case kind < 5:
		earned := money.BRL(s.chance.IntN(3) * 100)
		e := conversion(owner, partner, s.moment(), earned)
		e.Data.CampaignID = campaign
		return delivery{sealed(s.t, e, e.Data.ConversionID), happening{owner.id, partner, campaign, e.Data.OccurredAt,
			map[string]int64{"conversions_count": 1, "commission_amount": earned.Centavos()}}}
	}
	e := worth(money.BRL(1+s.chance.IntN(2000)), sale(owner, partner, s.moment()))
	e.Data.CampaignID, e.Data.CommissionAmount = campaign, e.Data.Amount/10
	s.sold = append(s.sold, e)
	return delivery{sealed(s.t, e, e.Data.SaleID), happening{owner.id, partner, campaign, e.Data.SoldAt,
		map[string]int64{"sales_count": 1, "sales_amount": e.Data.Amount.Centavos(), "commission_amount": e.Data.CommissionAmount.Centavos()}}}
}

// deliver has the service hear of something new, something late and something known.
func (s *scenario) deliver() {
	for range 1 + s.chance.IntN(12) {
		s.late = append(s.late, s.happen())
	}
	s.chance.Shuffle(len(s.late), func(i, j int) { s.late[i], s.late[j] = s.late[j], s.late[i] })
	n := s.chance.IntN(len(s.late) + 1)
	batch := slices.Clone(s.late[:n])
	s.late = s.late[n:]
	for _, d := range batch {
		s.happened = append(s.happened, d.means)
	}
	s.heard = append(s.heard, batch...)
	for range s.chance.IntN(4) {
		if len(s.heard) > 0 {
			batch = append(batch, pick(s.chance, s.heard))
		}
	}
	s.count(batch)
}

func (s *scenario) count(batch []delivery) {
	s.t.Helper()
	var events []event.Sealed
	for _, d := range batch {
		events = append(events, d.sealed)
	}
	if len(events) == 0 {
		return
	}
	if err := s.service.Count(s.t.Context(), events); err != nil {
		s.t.Fatal(err)
	}
}

// make sets a random goal.
func (s *scenario) make() {
	g := &target{owner: pick(s.chance, s.owners), rested: -1}
	g.metric = pick(s.chance, []string{"sales_count", "sales_amount", "commission_amount", "conversions_count"})
	g.period = pick(s.chance, []string{"total", "day", "week", "month", "quarter", "year"})
	zone := pick(s.chance, []string{"America/Sao_Paulo", "America/New_York", "Europe/Lisbon", "Asia/Kathmandu", "Pacific/Apia", "UTC"})
	location, err := time.LoadLocation(zone)
	if err != nil {
		s.t.Fatal(err)
	}
	g.zone = location
	g.target = 1 + s.chance.Int64N(4)
	shown := fmt.Sprint(g.target)
	if strings.HasSuffix(g.metric, "amount") {
		g.target = 1 + s.chance.Int64N(3000)
		shown = money.BRL(g.target).String()
	}
	members := fmt.Sprintf(`"metric":%q,"target":%s,"period":%q,"timezone":%q,"reward_brl":5`, g.metric, shown, g.period, zone)
	if s.chance.IntN(3) == 0 {
		g.campaign = new(pick(s.chance, s.campaigns))
		members += fmt.Sprintf(`,"campaign_id":%q`, g.campaign)
	}
	if s.chance.IntN(3) == 0 {
		g.partners = s.partners[:2]
		members += fmt.Sprintf(`,"partner_ids":[%q,%q]`, g.partners[0], g.partners[1])
	}
	if s.chance.IntN(4) > 0 {
		members += fmt.Sprintf(`,"starts_at":%q`, s.moment().Format(time.RFC3339))
	}
	if s.chance.IntN(3) == 0 {
		members += fmt.Sprintf(`,"ends_at":%q`, s.moment().Add(time.Hour).Format(time.RFC3339))
	}
	made := s.call(g.owner, "POST", "/api/v1/goals", goalBody(members))
	if made.status == http.StatusBadRequest && strings.Contains(made.raw, "ends_at") {
		return
	}
	if made.status != http.StatusCreated {
		s.t.Fatalf("create: %d %s", made.status, made.raw)
	}
	g.id = made.body["goal_id"].(string)
	g.made = at(made.body["created_at"].(string))
	g.window(made.body)
	g.origin = g.since
	if starts, given := strings.Contains(members, "starts_at"), g.begins(g.made, 0); !starts && g.period != "total" && !g.since.Equal(given) {
		s.t.Errorf("a goal for each %s in %s that is made at %s starts at %s, want %s", g.period, zone, g.made, g.since, given)
	}
	s.goals[g.id] = g
}

// window takes over what the service says that the goal's window is.
func (g *target) window(body map[string]any) {
	g.since, g.until = at(body["starts_at"].(string)), nil
	if end, ends := body["ends_at"].(string); ends {
		g.until = new(at(end))
	}
}

// change changes a goal at random, or deletes it.
func (s *scenario) change() {
	if len(s.goals) == 0 {
		return
	}
	g := s.goals[pick(s.chance, slices.Sorted(maps.Keys(s.goals)))]
	path := "/api/v1/goals/" + g.id
	if s.chance.IntN(12) == 0 {
		someReached := len(s.rows("select '' from reached where goal_id::text = $1", g.id)) > 0
		switch a := s.call(g.owner, "DELETE", path, ""); {
		case someReached && a.status == http.StatusConflict:
		case !someReached && a.status == http.StatusNoContent:
			delete(s.goals, g.id)
			maps.DeleteFunc(s.may, func(place string, _ bool) bool { return strings.HasPrefix(place, g.id) })
		default:
			s.t.Errorf("deleting a goal that somebody has reached: %t answers %d %s", someReached, a.status, a.raw)
		}
		return
	}
	members := []string{`"name":"Changed"`}
	status := pick(s.chance, []string{"", "", "active", "archived"})
	if status != "" {
		members = append(members, fmt.Sprintf(`"status":%q`, status))
	}
	if s.chance.IntN(2) == 0 {
		members = append(members, fmt.Sprintf(`"starts_at":%q`, s.moment().Format(time.RFC3339)))
	}
	switch s.chance.IntN(4) {
	case 0:
		members = append(members, fmt.Sprintf(`"ends_at":%q`, s.moment().Format(time.RFC3339)))
	case 1:
		members = append(members, `"ends_at":null`)
	}
	a := s.call(g.owner, "PATCH", path, "{"+strings.Join(members, ",")+"}")
	if a.status == http.StatusBadRequest && strings.Contains(a.raw, "/ends_at") {
		return
	}
	if a.status != http.StatusOK {
		s.t.Fatalf("change: %d %s", a.status, a.raw)
	}
	g.window(a.body)
	switch {
	case status == "active":
		g.rested = -1
	case status == "archived" && g.rested < 0:
		g.rested = len(s.happened)
	}
}

// filled tells whether nothing of the goal's past is left to be counted.
func (s *scenario) filled(id string) bool {
	return len(s.rows("select '' from goals where goal_id::text = $1 and past_total is null", id)) == 1
}

// compare fails the test where the service disagrees with the model.
func (s *scenario) compare(step int) {
	s.t.Helper()
	s.judge(s.filled)
	kept := map[string]int64{}
	for _, row := range s.rows(`select format('%s %s %s %s', goal_id, partner_id, floor(extract(epoch from period_start))::bigint, progress) from totals where progress <> 0`) {
		cut := strings.LastIndex(row, " ")
		var total int64
		if _, err := fmt.Sscan(row[cut+1:], &total); err != nil {
			s.t.Fatal(err)
		}
		kept[row[:cut]] = total
	}
	for id, g := range s.goals {
		if !s.filled(id) {
			continue
		}
		want := s.totals(g)
		for place, total := range want {
			if kept[place] != total {
				s.t.Errorf("step %d: the total of %s is %d, want %d: %+v", step, place, kept[place], total, g)
			}
		}
		for place, total := range kept {
			if strings.HasPrefix(place, id) && want[place] == 0 {
				s.t.Errorf("step %d: the total of %s is %d, want none: %+v", step, place, total, g)
			}
		}
	}
	reached := map[string]bool{}
	for _, place := range s.rows(`select format('%s %s %s', goal_id, partner_id, floor(extract(epoch from period_start))::bigint) from reached`) {
		reached[place] = true
		if !s.may[place] {
			s.t.Errorf("step %d: %s is reached, and was never to be", step, place)
		}
	}
	for place := range s.model.reached {
		if !reached[place] {
			s.t.Errorf("step %d: %s is not reached", step, place)
		}
	}
	if told := len(s.world.reached()); told != len(reached) {
		s.t.Errorf("step %d: %d places are reached, and %d are told of", step, len(reached), told)
	}
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// play plays a random scenario. A prompt service fills goals at once, so that the model
// says exactly who reaches them; another one goes on while they are half filled.
func play(t *testing.T, seed uint64, prompt bool) {
	w := newWorld(t)
	s := &scenario{
		world: w, model: model{goals: map[string]*target{}, reached: map[string]bool{}, may: map[string]bool{}},
		chance: rand.New(rand.NewPCG(seed, 0)), owners: []tenant{w.tenant(), w.tenant()}, partners: ids(4), campaigns: ids(2),
		refunded: map[uuid.UUID]money.BRL{},
	}
	w.steps = 3
	s.service = w.serve()
	var ahead time.Duration
	for step := range 90 {
		switch chance := s.chance.IntN(20); {
		case chance < 9:
			s.deliver()
		case chance < 12 && len(s.goals) < 12:
			s.make()
		case chance < 16:
			s.change()
		case chance < 17 && ahead < 4*24*time.Hour:
			ahead += time.Duration(s.chance.IntN(24*60)) * time.Minute
			w.ahead.Store(int64(ahead))
		case prompt:
		case chance < 19:
			if _, err := s.service.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		default:
			s.service.Fill(t.Context())
		}
		if prompt {
			s.service.Fill(t.Context())
		}
		s.compare(step)
	}
	for id, g := range s.goals {
		if a := w.call(g.owner, "PATCH", "/api/v1/goals/"+id, `{"status":"active"}`); a.status != http.StatusOK {
			t.Fatalf("activate: %d %s", a.status, a.raw)
		}
		g.rested = -1
	}
	s.service.Fill(t.Context())
	s.compare(-1)
	w.assertTotals()
	if prompt && !maps.Equal(s.model.reached, s.may) {
		t.Errorf("the model is not sure who has reached goals: %v, %v", s.model.reached, s.may)
	}

	before := w.dump()
	s.chance.Shuffle(len(s.heard), func(i, j int) { s.heard[i], s.heard[j] = s.heard[j], s.heard[i] })
	for chunk := range slices.Chunk(s.heard, 17) {
		s.count(chunk)
	}
	s.service.Fill(t.Context())
	if after := w.dump(); after != before {
		t.Errorf("hearing of everything again has changed the tables from\n%s\nto\n%s", before, after)
	}
	t.Logf("%d facts, %d goals, %d reached", len(s.happened), len(s.goals), len(s.model.reached))
}

func TestGoalsAreWhatTheModelSays(t *testing.T) {
	for _, prompt := range []bool{true, false} {
		for range 4 {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("prompt %t, seed %d", prompt, seed), func(t *testing.T) { play(t, seed, prompt) })
		}
	}
}
