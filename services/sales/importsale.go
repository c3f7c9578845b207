package sales

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

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
		if err := m.s.checkActive(ctx, m.tenant); err != nil { // asked for again where the catalogue has changed, and so a suspension holds at once
			return m.settle(waiting[0].row, false, err)
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
	refs := make(map[string]bool, len(waiting))
	for _, w := range waiting {
		if refs[w.report.ExternalRef] {
			twins = append(twins, w)
			continue
		}
		d := m.s.saleDecision(nil, m.tenant, w.report)
		d.begin()
		terms, version, known, err := agree(ctx, m.s, d)
		if err != nil || known != nil {
			if err == nil {
				err = differs(strings.Join(known.differences(w.report), ", "))
			}
			if err := m.settle(w.row, false, err); err != nil {
				return nil, nil, nil, err
			}
			continue
		}
		e, err := newEntry(ctx, m.tenant, version, w.report, terms, d.now)
		if err != nil {
			return nil, nil, nil, err
		}
		refs[w.report.ExternalRef] = true
		e.done = make(chan outcome, 1)
		decided, batch = append(decided, w), append(batch, e)
	}
	return decided, batch, twins, nil
}

// settleSales counts what became of a batch that was written, and returns the sales
// that must be decided anew. Where some have failed the others are counted all the same,
// since they may be recorded; the error is that of the first.
func (m *importer) settleSales(decided []waitingSale, batch []*entry) (again []waitingSale, failure error) {
	for i, w := range decided {
		o := <-batch[i].done
		var err error
		switch {
		case o.err != nil:
			err = fmt.Errorf("line %d: %w", w.row.Line, o.err)
		case o.recorded:
			err = m.settle(w.row, true, nil)
		case o.known != nil:
			err = m.settle(w.row, false, differs(strings.Join(o.known.differences(w.report), ", ")))
		default:
			again = append(again, w)
			m.s.catalogue.outdated(m.tenant, batch[i].version)
		}
		failure = cmp.Or(failure, err)
	}
	return again, failure
}
