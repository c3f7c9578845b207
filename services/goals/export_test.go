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

// SinceStatement is the second half of beginning to listen.
const SinceStatement = sinceStatement

// AddToTotalsStatement is how counting changes totals.
const AddToTotalsStatement = addToTotalsStatement

// Cursor is one of a goal's leaderboard, as a page has it or as none could.
func Cursor(goal uuid.UUID, start time.Time, rank, position int64) string {
	at := standing{Goal: goal, Start: start.UnixMicro(), Rank: rank, Position: position}
	page := web.CutAt(web.FirstPage(progressPattern, 1), []standing{at, at}, standing.bytes)
	return *page.Body.(web.List[standing]).NextCursor
}

// StreamID is an id for the horizon in a stream of the goal.
func (s *Service) StreamID(tenant, id uuid.UUID, horizon int64) string {
	sealed, err := s.streamIDs.of(&goal{tenantID: tenant, id: id}, horizon)
	if err != nil {
		panic(err)
	}
	return sealed
}

// Horizon is what an id stands for in a stream of the goal, or nil.
func (s *Service) Horizon(tenant, id uuid.UUID, sealed string) *int64 {
	return s.streamIDs.horizon(&goal{tenantID: tenant, id: id}, sealed)
}

// FillInStepsOf has goals filled by so many facts, or totals, at once.
func (s *Service) FillInStepsOf(n int) { s.atOnce = n }

// SizeWithin has a past be measured within so long a time.
func (s *Service) SizeWithin(d time.Duration) { s.sizeWithin = d }

// Count handles events as its consumer does, in a transaction of their own.
func (s *Service) Count(ctx context.Context, events []event.Sealed) error {
	return postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error { return s.count(ctx, tx, events) })
}

// Step takes one step for some goal that needs one, and tells whether there was one.
func (s *Service) Step(ctx context.Context) (bool, error) {
	g, err := s.stepBehind(ctx, uuid.Nil, []uuid.UUID{})
	return g != nil, err
}

// Turn takes one step for each tenant that has a goal which needs one.
func (s *Service) Turn(ctx context.Context) { s.turn(ctx) }

// Fill takes steps until no goal needs another one, and clears what deleted goals left.
func (s *Service) Fill(ctx context.Context) {
	s.fillBehind(ctx)
	s.clearLeftovers(ctx)
}
