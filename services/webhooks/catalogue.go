package webhooks

import (
	"slices"
	"time"

	"partilha.dev/pkg/event"
)

// usual is the choice that stands for event.Default.
const usual = "*"

// The events that may be delivered, by the stream that carries them: all that there
// are but the internal ones.
var (
	salesEvents = []string{
		event.NameSaleRecorded, event.NameSaleRefunded, event.NameConversionRecorded, event.NamePartnerCreated,
	}
	commissionsEvents = []string{
		event.NameCommissionAvailable, event.NameCommissionBonus, event.NameCommissionReleased, event.NameCommissionReversed,
		event.NameWithdrawalRequested, event.NameWithdrawalStatusChanged,
	}
	goalsEvents = []string{event.NameGoalReached}

	deliverable = slices.Concat(salesEvents, commissionsEvents, goalsEvents)
)

// choice is what an endpoint wants to hear.
type choice struct {
	events []string // names, and usual
	since  time.Time
}

// wants tells whether the endpoint hears e: an event that it chose, and that is not
// older than the endpoint.
func (c choice) wants(e event.Sealed) bool {
	if e.CreatedAt.Before(c.since) {
		return false
	}
	return slices.Contains(c.events, e.Name) || slices.Contains(c.events, usual) && slices.Contains(event.Default, e.Name)
}
