package goals

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/postgres"
)

const findFirstQuery = `select first from goals where tenant_id = $1 and external_ref = $2`

// findFirst returns what the first call with the same external_ref was answered,
// whatever has become of the goal since; known is false if there was none.
func findFirst(ctx context.Context, tx *postgres.Tx, wanted *goal) (first goalBody, known bool, err error) {
	if wanted.externalRef == nil {
		return goalBody{}, false, nil
	}
	var stored []byte
	err = tx.QueryRow(ctx, findFirstQuery, wanted.tenantID, *wanted.externalRef).Scan(&stored)
	if postgres.Absent(err) {
		return goalBody{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(stored, &first)
	}
	if err != nil {
		return goalBody{}, false, fmt.Errorf("find goal by external_ref: %w", err)
	}
	tx.Vouch()
	return first, true, nil
}

const keepFirstStatement = `update goals set first = $3 where tenant_id = $1 and goal_id = $2`

// keepFirst stores what a call with an external_ref is answered.
func keepFirst(ctx context.Context, tx *postgres.Tx, g *goal, body goalBody) error {
	if g.externalRef == nil {
		return nil
	}
	first, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write goal: %w", err)
	}
	if _, err := tx.Exec(ctx, keepFirstStatement, g.tenantID, g.id, first); err != nil {
		return fmt.Errorf("keep first answer: %w", err)
	}
	return nil
}

// mismatchHeader names the members in which a repeat asks for something else than the
// call that made the goal; nil where it does not. Values are compared, not spellings;
// partners are a set; and a starts_at that is left out means whatever it was then.
func mismatchHeader(request goalRequest, wanted, first goalBody) map[string]string {
	differs := []struct {
		member string
		yes    bool
	}{
		{"campaign_id", !samePointer(wanted.CampaignID, first.CampaignID)},
		{"ends_at", !sameMoment(wanted.EndsAt, first.EndsAt)},
		{"metric", wanted.Metric != first.Metric},
		{"name", wanted.Name != first.Name},
		{"partner_ids", !sameSet(wanted.PartnerIDs, first.PartnerIDs)},
		{"period", wanted.Period != first.Period},
		{"reward_brl", !samePointer(wanted.Reward, first.Reward)},
		{"starts_at", request.StartsAt != nil && !wanted.StartsAt.Equal(first.StartsAt)},
		{"target", hundredthsOf(wanted.Target) != hundredthsOf(first.Target)},
		{"timezone", wanted.Timezone != first.Timezone},
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

// hundredthsOf is the target as a number, whatever it counts, in hundredths.
func hundredthsOf(target event.Quantity) int64 {
	if target.IsAmount {
		return target.Value
	}
	return target.Value * hundredth
}

func samePointer[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func sameMoment(a, b *time.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(*b)
}

// sameSet compares lists that hold nothing twice; nil means everybody.
func sameSet(a, b *[]uuid.UUID) bool {
	if a == nil || b == nil {
		return a == b
	}
	held := make(map[uuid.UUID]bool, len(*a))
	for _, id := range *a {
		held[id] = true
	}
	for _, id := range *b {
		if !held[id] {
			return false
		}
	}
	return len(*a) == len(*b)
}
