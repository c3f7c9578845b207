package goals

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// standing is where a page of a leaderboard ended. The next page goes on behind it and
// counts its ranks from there: so no page costs more than its own rows, and those that
// stay where they are neither repeat nor hide, whatever else changes in between.
type standing struct {
	Goal     uuid.UUID
	Start    int64 // of the period, in microseconds of Unix time
	Progress int64
	Partner  uuid.UUID
	Rank     int64
	Position int64 // how many rows there were so far
}

var standingSize = binary.Size(standing{})

// top is the standing before the first row.
func top(goal uuid.UUID, start time.Time) standing {
	return standing{Goal: goal, Start: start.UnixMicro(), Progress: math.MaxInt64}
}

func (at standing) bytes() []byte {
	raw, _ := binary.Append(nil, binary.BigEndian, at) // of fixed size: it cannot fail
	return raw
}

// rank gives the rows that follow upon the standing, in their order, their ranks and
// positions.
func (at standing) rank(rows []progressBody) {
	for i := range rows {
		at.Position++
		if progress := rows[i].Progress.Value; progress != at.Progress {
			at.Progress, at.Rank = progress, at.Position
		}
		rows[i].Rank, rows[i].position = new(at.Rank), at.Position
	}
}

// possible tells whether a page can have ended there: a cursor may be made up.
func (at standing) possible() bool {
	year := time.UnixMicro(at.Start).UTC().Year()
	return year >= 1999 && year <= 9999 && at.Rank >= 1 && at.Position >= at.Rank
}

// standing is where the row stands, which has been ranked.
func (b progressBody) standing() standing {
	return standing{b.GoalID, b.start.UnixMicro(), b.Progress.Value, b.PartnerID, *b.Rank, b.position}
}

// listProgress answers GET /api/v1/goals/{goal_id}/progress, the best first.
func (s *Service) listProgress(call *web.Call) (web.Answer, error) {
	id, err := call.PathID("goal_id")
	if err != nil {
		return web.Answer{}, err
	}
	page, err := call.PageOf(standingSize)
	if err != nil {
		return web.Answer{}, err
	}
	partner, err := call.QueryID("partner_id")
	if err != nil {
		return web.Answer{}, err
	}
	start, err := call.QueryTime("period_start")
	if err != nil {
		return web.Answer{}, err
	}
	g, err := s.find(call.Context(), call.Tenant(), id)
	if err != nil {
		return web.Answer{}, err
	}
	after, err := g.resume(page, start, partner, s.deps.Now())
	if err != nil {
		return web.Answer{}, err
	}
	if partner != nil {
		return s.onePlace(call.Context(), g, after, *partner, page)
	}
	return s.leaderboard(call.Context(), g, after, page)
}

// resume is the standing behind which the page begins: that of its cursor, or the top of
// the period that is asked for, which is the present one if none is. Its error is an
// invalid_parameter where the cursor is of another leaderboard, or made up.
func (g *goal) resume(page web.Page, start *time.Time, partner *uuid.UUID, now time.Time) (standing, error) {
	if start != nil {
		start = new(g.startOf(*start))
	}
	if page.Place == nil {
		if start == nil {
			present, err := g.presentSpan(now)
			if err != nil {
				return standing{}, err
			}
			start = &present.start
		}
		return top(g.id, *start), nil
	}
	var at standing
	if _, err := binary.Decode(page.Place, binary.BigEndian, &at); err != nil {
		return at, fmt.Errorf("read the cursor: %w", err)
	}
	if at.Goal != g.id || !at.possible() || partner != nil || start != nil && start.UnixMicro() != at.Start {
		return at, fault.InvalidParameter("cursor", "must be the next_cursor of an earlier answer of this list, with the same filters")
	}
	return at, nil
}

// leaderboardQuery walks along one index twice: through those who are level with the
// last one, and through those who are worse. Nobody is level with the top; a PostgreSQL
// that has no statistics of a goal yet would look for them among all of its totals.
const leaderboardQuery = `
select ` + progressColumns + `, null::bigint
from (
	(select * from totals
	where @progress < 9223372036854775807 and tenant_id = @tenant_id and goal_id = @goal_id and period_start = @period_start
		and progress = @progress and partner_id > @partner_id
	order by partner_id limit @limit)
	union all
	(select * from totals
	where tenant_id = @tenant_id and goal_id = @goal_id and period_start = @period_start and progress < @progress
	order by progress desc, partner_id limit @limit)) as t` + joinReached + `
order by t.progress desc, t.partner_id limit @limit`

// leaderboard answers the page behind a standing.
func (s *Service) leaderboard(ctx context.Context, g *goal, after standing, page web.Page) (web.Answer, error) {
	board, err := s.progress(ctx, g, leaderboardQuery, pgx.NamedArgs{
		"tenant_id": g.tenantID, "goal_id": g.id, "period_start": time.UnixMicro(after.Start), "progress": after.Progress,
		"partner_id": after.Partner, "limit": page.Limit + 1,
	})
	if err != nil {
		return web.Answer{}, err
	}
	after.rank(board)
	return web.CutAt(page, board, func(b progressBody) []byte { return b.standing().bytes() }), nil
}

// onePlaceQuery counts all who are better. That they are wanted in their order keeps
// PostgreSQL from reading the table instead of the index, where half of it is this goal's.
const onePlaceQuery = `
select ` + progressColumns + `, 1 + (
	select count(*) from (
		select from totals b
		where b.tenant_id = t.tenant_id and b.goal_id = t.goal_id and b.period_start = t.period_start and b.progress > t.progress
		order by b.progress desc offset 0) as better)
from totals t` + joinReached + `
where t.tenant_id = @tenant_id and t.goal_id = @goal_id and t.period_start = @period_start and t.partner_id = @partner_id`

// onePlace answers the row of one partner, if there is one.
func (s *Service) onePlace(ctx context.Context, g *goal, at standing, partner uuid.UUID, page web.Page) (web.Answer, error) {
	row, err := s.progress(ctx, g, onePlaceQuery, pgx.NamedArgs{
		"tenant_id": g.tenantID, "goal_id": g.id, "period_start": time.UnixMicro(at.Start), "partner_id": partner,
	})
	if err != nil {
		return web.Answer{}, err
	}
	return web.CutAt(page, row, nil), nil
}

// progress reads rows of the goal's totals.
func (s *Service) progress(ctx context.Context, g *goal, query string, arguments pgx.NamedArgs) ([]progressBody, error) {
	rows, err := s.deps.Pool.Query(ctx, query, arguments)
	if err != nil {
		return nil, postgres.Explain(fmt.Errorf("read progress: %w", err))
	}
	found, err := pgx.CollectRows(rows, g.scanProgress)
	if err != nil {
		return nil, postgres.Explain(fmt.Errorf("read progress: %w", err))
	}
	return found, nil
}
