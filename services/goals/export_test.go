package goals

import (
	"context"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

// FillInStepsOf has goals filled by so many facts, or totals, at once.
func (s *Service) FillInStepsOf(n int) { s.atOnce = n }

// Count handles events as its consumer does, in a transaction of their own.
func (s *Service) Count(ctx context.Context, events []event.Sealed) error {
	return postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error { return s.count(ctx, tx, events) })
}

// Fill takes steps until no goal needs another one, and clears what deleted goals left.
func (s *Service) Fill(ctx context.Context) {
	s.fillBehind(ctx)
	s.clearLeftovers(ctx)
}
