package goals

import (
	"strings"
	"time"

	"github.com/google/uuid"
)

// mismatchHeader names the members in which a repeat asks for something else than the
// call that made the goal; nil where it does not. Values are compared, not spellings;
// partners are a set; and a starts_at that is left out means whatever it was then.
func mismatchHeader(request goalRequest, wanted, made *goal) map[string]string {
	differs := []struct {
		member string
		yes    bool
	}{
		{"campaign_id", !samePointer(wanted.campaignID, made.campaignID)},
		{"ends_at", !sameMoment(wanted.endsAt, made.endsAt)},
		{"metric", wanted.metric != made.metric},
		{"name", wanted.name != made.name},
		{"partner_ids", !sameSet(wanted.partnerIDs, made.partnerIDs)},
		{"period", wanted.period != made.period},
		{"reward_brl", !samePointer(wanted.reward, made.reward)},
		{"starts_at", request.StartsAt != nil && !wanted.startsAt.Equal(made.startsAt)},
		{"target", wanted.targetHundredths() != made.targetHundredths()},
		{"timezone", wanted.timezone != made.timezone},
	}
	var names []string
	for _, d := range differs {
		if d.yes {
			names = append(names, d.member)
		}
	}
	if names == nil {
		return nil
	}
	return map[string]string{"Idempotency-Mismatch": strings.Join(names, ", ")}
}

// targetHundredths is the target as a number, whatever it counts, in hundredths.
func (g *goal) targetHundredths() int64 {
	if g.metric == salesCount {
		return g.target * hundredth
	}
	return g.target
}

func samePointer[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func sameMoment(a, b *time.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(*b)
}

// sameSet compares lists that hold nothing twice; an empty one means everybody.
func sameSet(a, b []uuid.UUID) bool {
	if len(a) != len(b) {
		return false
	}
	held := make(map[uuid.UUID]bool, len(a))
	for _, id := range a {
		held[id] = true
	}
	for _, id := range b {
		if !held[id] {
			return false
		}
	}
	return true
}
