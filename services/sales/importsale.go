package sales

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
)

// waitingSale is a sale of a file that can be decided.
type waitingSale struct {
	row    *importRow
	report report
}

// wait has a sale wait until there are enough for a commit.
func (m *importer) wait(ctx context.Context, row *importRow) error {
	campaign, plan := row.reference("campaign"), row.reference("plan")
	w := waitingSale{row: row}
	err := m.decode(row, &w.report)
	if err == nil {
		w.report.CampaignID, err = m.references.resolve(ctx, campaign)
	}
	if err == nil {
		w.report.PlanID, err = m.references.resolve(ctx, plan)
	}
	if err != nil {
		return m.settle(row, false, err)
	}
	if m.waiting = append(m.waiting, w); len(m.waiting) < commitSize {
		return nil
	}
	return m.recordWaiting(ctx)
}

// recordWaiting records what waits, in one commit if no external_ref is there twice and
// the catalogue does not change meanwhile; sales that were decided on an older one are
// decided anew.
func (m *importer) recordWaiting(ctx context.Context) error {
	waiting := m.waiting
	m.waiting = m.waiting[:0]
	for deadline := time.Now().Add(decideWithin); len(waiting) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fault.New(fault.Unavailable, "unavailable", "the catalogue is changing too fast; repeat the same command")
		}
		decided, batch, twins, err := m.decide(ctx, waiting)
		if err != nil {
			return err
		}
		if len(batch) == 0 {
			return nil
		}
		m.s.recorder.write(batch)
		again, err := m.settleSales(decided, batch)
		if err != nil {
			return err
		}
		waiting = append(again, twins...)
	}
	return nil
}

// decide settles the sales that are refused or known without a commit, and returns the
// others with their entries. Of several with one external_ref the first in the file is
// to be recorded, and so the twins wait for its commit.
func (m *importer) decide(ctx context.Context, waiting []waitingSale) (decided []waitingSale, batch []*entry, twins []waitingSale, err error) {
	now := m.s.deps.Now()
	refs := make(map[string]bool, len(waiting))
	for _, w := range waiting {
		if refs[w.report.ExternalRef] {
			twins = append(twins, w)
			continue
		}
		e, known, err := m.s.decideUnkeyed(ctx, m.tenant, w.report, now)
		if e == nil {
			if err == nil {
				err = differs(strings.Join(known.differences(w.report), ", "))
			}
			if err := m.settle(w.row, false, err); err != nil {
				return nil, nil, nil, err
			}
			continue
		}
		refs[w.report.ExternalRef] = true
		e.done = make(chan outcome, 1)
		decided, batch = append(decided, w), append(batch, e)
	}
	return decided, batch, twins, nil
}

// decideUnkeyed decides a report for which no key answers: from memory, or else on
// what the database says now. Without an entry, known is the sale that the same
// external_ref recorded before, or err the refusal.
func (s *Service) decideUnkeyed(ctx context.Context, tenant uuid.UUID, r report, now time.Time) (e *entry, known sale, err error) {
	for {
		terms, version, ok := s.catalogue.offer(tenant, r.offerKey())
		if ok && terms.refuses(r, now) == nil {
			e, err := newEntry(ctx, tenant, version, r, terms, now)
			return e, sale{}, err
		}
		known, found, err := s.considerAnew(ctx, tenant, r, now)
		if err != nil || found {
			return nil, known, err
		}
	}
}

// settleSales counts what became of a batch that was written, and returns the sales
// that must be decided anew.
func (m *importer) settleSales(decided []waitingSale, batch []*entry) (again []waitingSale, err error) {
	for i, w := range decided {
		o := <-batch[i].done
		switch {
		case o.err != nil:
			return nil, fmt.Errorf("line %d: %w", w.row.Line, o.err)
		case o.recorded:
			err = m.settle(w.row, true, nil)
		case o.known != nil:
			err = m.settle(w.row, false, differs(strings.Join(o.known.differences(w.report), ", ")))
		default:
			again = append(again, w)
			m.s.catalogue.outdated(m.tenant, batch[i].version)
		}
		if err != nil {
			return nil, err
		}
	}
	return again, nil
}
