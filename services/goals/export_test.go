package goals

import (
	"context"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// Forget removes what is no longer remembered of changes.
var Forget = forget

// AddToTotalsStatement is how counting changes totals.
const AddToTotalsStatement = addToTotalsStatement

// Cursor is one of a goal's leaderboard, as a page has it or as none could.
func Cursor(goal uuid.UUID, start time.Time, rank, position int64) string {
	at := standing{Goal: goal, Start: start.UnixMicro(), Rank: rank, Position: position}
	page := web.CutAt(web.FirstPage(progressPattern, 1), []standing{at, at}, standing.bytes)
	return *page.Body.(web.List[standing]).NextCursor
}

// StreamID is an id in a stream of some goal of the tenant.
func (s *Service) StreamID(tenant uuid.UUID, horizon int64) string {
	id, err := s.streamIDs.of(&goal{tenantID: tenant}, horizon)
	if err != nil {
		panic(err)
	}
	return id
}

// FillInStepsOf has goals filled by so many facts, or totals, at once.
func (s *Service) FillInStepsOf(n int) { s.atOnce = n }

// Count handles events as its consumer does, in a transaction of their own.
func (s *Service) Count(ctx context.Context, events []event.Sealed) error {
	return postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error { return s.count(ctx, tx, events) })
}

// Step takes one step for some goal that needs one, and tells whether there was one.
func (s *Service) Step(ctx context.Context) (bool, error) {
	g, err := s.stepBehind(ctx, goalKey{})
	return g != nil, err
}

// Turn takes one step for each goal that needs one.
func (s *Service) Turn(ctx context.Context) {
	var past goalKey
	for {
		g, err := s.stepBehind(ctx, past)
		if g == nil || err != nil {
			return
		}
		past = goalKey{g.tenantID, g.id}
	}
}

// Fill takes steps until no goal needs another one, and clears what deleted goals left.
func (s *Service) Fill(ctx context.Context) {
	s.fillBehind(ctx)
	s.clearLeftovers(ctx)
}
