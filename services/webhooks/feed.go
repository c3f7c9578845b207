package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/web"
)

// longestWait is how long an answer may be held back until there is something to tell.
const longestWait = 30 * time.Second

// feedPage is a piece of a tenant's feed, as the API shows it.
type feedPage struct {
	Data []jsontext.Value `json:"data"` // the envelopes, byte for byte
	// NextCursor is the event up to which the feed was read: the last one of Data, or,
	// where that is all there is, the tenant's newest, whatever its kind. So a reader of
	// rare events goes on from what is new. Null while there has been no event at all.
	NextCursor *event.ID `json:"next_cursor"`
	// Position is the place of that event. It is the number of all events up to it, so
	// whoever reads every kind can tell that nothing is missing.
	Position int64 `json:"position"`
}

// feedRequest is what a reader asks for.
type feedRequest struct {
	limit int
	after *event.ID     // nil: from the oldest after which everything is kept
	types []string      // nil: every kind
	wait  time.Duration // for something to tell
}

// listEvents answers GET /api/v1/events, the oldest first.
func (s *Service) listEvents(call *web.Call) (web.Answer, error) {
	wanted, err := readFeedRequest(call)
	if err != nil {
		return web.Answer{}, err
	}
	found, err := s.feed(call, wanted)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: found}, nil
}

func readFeedRequest(call *web.Call) (r feedRequest, err error) {
	page, err := call.Page()
	if err != nil {
		return r, err
	}
	r.limit = page.Limit
	after, err := call.QueryText("after", len("evt_")+2*len(event.ID{}))
	if err != nil {
		return r, err
	}
	if after != nil {
		r.after = new(event.ID)
		if err := r.after.UnmarshalText([]byte(*after)); err != nil {
			return r, fault.InvalidParameter("after", "must be evt_ and 32 hexadecimal digits: the next_cursor of the answer before, or any event_id")
		}
	}
	if r.types, err = queryEvents(call, "types"); err != nil {
		return r, err
	}
	r.wait, err = queryWait(call)
	return r, err
}

// longestTypes is as long as the names of all events together, and a comma after each.
var longestTypes = len(strings.Join(deliverable, ",")) + 1

// queryEvents is the query's parameter of that name: names of events, divided by commas;
// nil where it is absent.
func queryEvents(call *web.Call, parameter string) ([]string, error) {
	text, err := call.QueryText(parameter, longestTypes)
	if err != nil || text == nil {
		return nil, err
	}
	names := strings.Split(*text, ",")
	for _, name := range names {
		if !slices.Contains(deliverable, name) {
			return nil, fault.InvalidParameter(parameter, "must be names divided by commas, of "+strings.Join(deliverable, ", "))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// queryWait is the query's wait, in whole seconds.
func queryWait(call *web.Call) (time.Duration, error) {
	text, err := call.QueryText("wait", len("30"))
	if err != nil || text == nil {
		return 0, err
	}
	seconds, err := strconv.ParseUint(*text, 10, 8)
	if wait := time.Duration(seconds) * time.Second; err == nil && wait <= longestWait {
		return wait, nil
	}
	return 0, fault.InvalidParameter("wait", "must be a whole number of seconds from 0 to 30")
}

// feed reads the piece of the tenant's feed that is asked for. Where there is nothing to
// tell it waits for that; where nothing comes it answers an empty piece. While it waits it
// holds no connection to the database.
func (s *Service) feed(call *web.Call, wanted feedRequest) (feedPage, error) {
	timer := time.NewTimer(wanted.wait)
	defer timer.Stop()
	from, err := s.place(call.Context(), call.Tenant(), wanted.after)
	if err != nil {
		return feedPage{}, err
	}
	for {
		page, err := s.read(call.Context(), call.Tenant(), from, wanted)
		if err != nil || len(page.Data) > 0 || wanted.wait == 0 {
			return page, err
		}
		select {
		case <-s.watch.beyond(call.Over(), call.Tenant(), page.Position):
			if from, err = s.onward(call.Context(), call.Tenant(), page.Position); err != nil {
				return feedPage{}, err
			}
		case <-timer.C:
			return page, nil
		case <-call.Over():
			return page, nil
		}
	}
}

// place is where in a tenant's feed a reader stands.
type place struct {
	position int64 // of the last event that was read; 0 before the first
	top      int64 // of the newest event
	newest   *event.ID
}

const (
	placeQuery = `
select t.position, t.newest_event_id,
	case when $2 = t.newest_event_id then t.position
		when $2 = t.quiet_event_id and exists (select from events e where e.tenant_id = $1 and e.position = t.quiet_position + 1)
		then t.quiet_position
		else (select e.position from events e where e.tenant_id = $1 and e.event_id = $2) end
from tenants t where t.tenant_id = $1`

	// The totals tell how many events are kept. Only where that is less than from the oldest
	// one to the newest, an event was heard of so late that it is gone before others: then
	// the feed begins after the last one that is gone.
	beginningQuery = `
select t.position, t.newest_event_id,
	case when ` + keptCount + ` = t.position - oldest.position + 1 then oldest.position - 1
	else (
		select coalesce(max(k.position), 1) - 1 from (
			select all_kept.position, lag(all_kept.position, 1, 0) over (order by all_kept.position) as before from (
				select e.position from events e where e.tenant_id = $1 union all select t.position + 1) all_kept) k
		where k.position > k.before + 1) end
from tenants t
left join lateral (select e.position from events e where e.tenant_id = $1 order by e.position limit 1) oldest on true
where t.tenant_id = $1`

	onwardQuery = `select position, newest_event_id, $2::bigint from tenants where tenant_id = $1`

	keptCount = `(select coalesce(sum(d.total), 0)::bigint from day_totals d where d.tenant_id = $1 and d.member = '')`

	lostQuery = `select t.position > ` + keptCount + ` from tenants t where t.tenant_id = $1`
)

// place finds where the event stands that was read last. The tenant's newest is found
// however long ago it was, and so is the one that was until something happened at last;
// any other is as long as it is kept. Without an event it is the
// place from which on everything is kept.
func (s *Service) place(ctx context.Context, tenant uuid.UUID, after *event.ID) (place, error) {
	query, args := beginningQuery, []any{tenant}
	if after != nil {
		query, args = placeQuery, append(args, [16]byte(*after))
	}
	found, err := runPlanned(ctx, s.deps.Pool, scanPlace, query, args...)
	switch {
	case err != nil:
		return place{}, fmt.Errorf("find the place in the feed: %w", err)
	case len(found) == 1 && found[0].position >= 0:
		return found[0], nil
	case len(found) == 0 && after == nil: // nothing has ever happened
		return place{}, nil
	default:
		return place{}, s.lost(ctx, tenant)
	}
}

// onward is the place of a reader that has read up to the position, as it is now.
func (s *Service) onward(ctx context.Context, tenant uuid.UUID, position int64) (place, error) {
	found, err := runPlanned(ctx, s.deps.Pool, scanPlace, onwardQuery, tenant, position)
	if err != nil || len(found) == 0 {
		return place{}, fmt.Errorf("go on in the feed: %w", cmp.Or(err, error(pgx.ErrNoRows)))
	}
	return found[0], nil
}

// nowherePosition is that of an event which is not there.
const nowherePosition = -1

func scanPlace(row pgx.CollectableRow) (p place, err error) {
	var newest *[16]byte
	var position *int64
	err = row.Scan(&p.top, &newest, &position)
	p.newest, p.position = (*event.ID)(newest), nowherePosition
	if position != nil {
		p.position = *position
	}
	return p, err
}

// lost says what an event is to a reader that is not there. Nobody knows whether it ever
// was: once the tenant has lost events to retention it is taken for one of these.
func (s *Service) lost(ctx context.Context, tenant uuid.UUID) error {
	found, err := runPlanned(ctx, s.deps.Pool, pgx.RowTo[bool], lostQuery, tenant)
	if err != nil {
		return fmt.Errorf("compare the feed with what is kept of it: %w", err)
	}
	if len(found) == 1 && found[0] {
		return errExpired()
	}
	return fault.InvalidParameter("after", "must be the event_id of an event of this tenant")
}

func errExpired() error {
	return fault.New(fault.Invalid, "cursor_expired", "what came after this event is no longer kept in full; read from the beginning, without after")
}

// Each reads along an index of each day that is kept, however many events come between
// those that are wanted. What is newer than $3 is left to the next answer, so that the
// place up to which the feed was read is known. The rows that are compared name the index
// of names: that of positions, which PostgreSQL would take for as good, cannot serve them.
const (
	feedQuery = `
select position, event_id, body from events
where tenant_id = $1 and position > $2 and position <= $3
order by position limit $4`

	feedOfTypesQuery = `
select next.* from unnest($5::text[]) as wanted (name) cross join lateral (
	select position, event_id, body from events
	where tenant_id = $1 and (name, position) > (wanted.name, $2) and (name, position) <= (wanted.name, $3)
	order by name, position limit $4) next
order by position limit $4`
)

// feedRow is one event of the feed.
type feedRow struct {
	position int64
	id       event.ID
	body     jsontext.Value
}

func scanFeedRow(row pgx.CollectableRow) (r feedRow, err error) {
	var id [16]byte
	err = row.Scan(&r.position, &id, (*[]byte)(&r.body))
	r.id = id
	return r, err
}

// read answers what stands after the place. A reader of every kind is told where something
// is gone that it has not read: the piece ends there, and the next one is refused.
func (s *Service) read(ctx context.Context, tenant uuid.UUID, from place, wanted feedRequest) (feedPage, error) {
	page := feedPage{Data: []jsontext.Value{}, NextCursor: from.newest, Position: from.top}
	if from.position == from.top {
		return page, nil
	}
	query, args := feedQuery, []any{tenant, from.position, from.top, wanted.limit}
	if wanted.types != nil {
		query, args = feedOfTypesQuery, append(args, wanted.types)
	}
	rows, err := runPlanned(ctx, s.deps.Pool, scanFeedRow, query, args...)
	if err != nil {
		return feedPage{}, fmt.Errorf("read the feed: %w", err)
	}
	whole := wanted.types != nil
	if !whole {
		rows = unbroken(rows, from.position)
		whole = int64(len(rows)) == from.top-from.position
	}
	if !whole && len(rows) == 0 {
		return feedPage{}, errExpired()
	}
	for _, row := range rows {
		page.Data = append(page.Data, row.body)
	}
	if !whole || len(rows) == wanted.limit {
		last := rows[len(rows)-1]
		page.NextCursor, page.Position = &last.id, last.position
	}
	return page, nil
}

// unbroken are the rows that follow the position and each other without a gap.
func unbroken(rows []feedRow, position int64) []feedRow {
	for i, row := range rows {
		if row.position != position+int64(i)+1 {
			return rows[:i]
		}
	}
	return rows
}
