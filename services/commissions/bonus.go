package commissions

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
)

// earnFromGoals books the reward of each goal that was reached and has one. It is a
// fixed amount, and never held back.
func (s *Service) earnFromGoals(ctx context.Context, tx *postgres.Tx, goals []event.Event[event.GoalReached]) error {
	var earnings []earning
	for _, goal := range goals {
		switch reward := goal.Data.Reward; {
		case goal.Data.GoalID == uuid.Nil || goal.Data.PartnerID == uuid.Nil:
			return invalid("an id is missing")
		case reward == nil:
			continue
		case *reward <= 0:
			return invalid("reward_brl %s is not above 0", *reward)
		}
		c := bonus(goal)
		told, err := event.Seal(goal.TenantID, c.ID.String(), s.deps.Now(), event.CommissionBonus{
			CommissionID: c.ID, PartnerID: c.PartnerID, Amount: c.Amount, SourceGoalID: *c.SourceGoalID, CreatedAt: c.CreatedAt.Time,
		}, goal.Traceparent)
		if err != nil {
			return err
		}
		earnings = append(earnings, earning{c, goal.TenantID, told})
	}
	return s.earn(ctx, tx, earnings)
}

func bonus(goal event.Event[event.GoalReached]) commission {
	d := goal.Data
	earnedAt := event.Instant(goal.CreatedAt)
	return commission{
		ID: bonusID(goal.ID, earnedAt), PartnerID: d.PartnerID, Kind: kindBonus, SourceGoalID: &d.GoalID, Amount: *d.Reward,
		Status: statusAvailable, AvailableAt: openapi.Time{Time: earnedAt}, CreatedAt: openapi.Time{Time: earnedAt},
	}
}

// bonusID is the id of the commission that an event earned: a UUIDv7 of that moment,
// whose random part follows from the event, so that the event can earn no second one.
func bonusID(cause event.ID, at time.Time) (id uuid.UUID) {
	sum := sha256.Sum256([]byte("bonus\x00" + string(cause[:])))
	copy(id[:], sum[:])
	var millis [8]byte
	binary.BigEndian.PutUint64(millis[:], uint64(at.UnixMilli()))
	copy(id[:6], millis[2:])
	id[6] = 0x70 | id[6]&0x0f // version 7
	id[8] = 0x80 | id[8]&0x3f // of the usual variant
	return id
}
