package commissions

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// line is one transfer as a statement shows it.
type line struct {
	PostedAt     openapi.Time `json:"posted_at"`
	Kind         string       `json:"kind"`
	Reference    uuid.UUID    `json:"reference"`
	CommissionID *uuid.UUID   `json:"commission_id"`
	From         string       `json:"from"`
	To           string       `json:"to"`
	Amount       money.BRL    `json:"amount_brl"`
	Balance      money.BRL    `json:"balance_brl"`
	balances
}

// owed is all that the partner is still to get; below zero it is the partner who owes.
func (b balances) owed() money.BRL { return b.Pending + b.Available + b.Reserved - b.Debt }

// span is the part of a statement that is asked for.
type span struct {
	tenant, partner uuid.UUID
	from, until     time.Time // the end is not included
}

// statement is a partner's transfers within a span, and what the partner had before.
type statement struct {
	span
	opening balances
	lines   func(yield func(line) error) error
}

// showStatement answers GET /api/v1/statements/{partner_id}, the oldest line first, as
// JSON or, to who asks for it, as CSV. It is made while it is sent.
func (s *Service) showStatement(call *web.Call) (web.Answer, error) {
	asked, err := readSpan(call)
	if err != nil {
		return web.Answer{}, err
	}
	found, err := s.statement(call.Context(), asked)
	if err != nil {
		return web.Answer{}, err
	}
	answer := web.Answer{Status: http.StatusOK, Header: map[string]string{"Vary": "Accept"}}
	if call.Accepts(mediaCSV) {
		answer.Stream = &web.Stream{Type: mediaCSV + "; charset=utf-8; header=present", Write: found.writeCSV}
	} else {
		answer.Stream = &web.Stream{Type: "application/json", Write: found.writeJSON}
	}
	return answer, nil
}

func readSpan(call *web.Call) (span, error) {
	asked := span{tenant: call.Tenant(), from: earliest, until: latest}
	var err error
	if asked.partner, err = call.PathID("partner_id"); err != nil {
		return asked, err
	}
	for name, bound := range map[string]*time.Time{"from": &asked.from, "to": &asked.until} {
		at, err := call.QueryTime(name)
		if err != nil {
			return asked, err
		}
		if at != nil {
			*bound = *at
		}
	}
	return asked, nil
}

// What a span has no bound at is wider than any time on the wire.
var earliest, latest = time.Unix(0, 0).UTC(), time.Date(lastYear+1, 1, 1, 0, 0, 0, 0, time.UTC)

const lastBeforeQuery = `
select partner_id, ` + balanceColumns + ` from transfers
where tenant_id = $1 and partner_id = $2 and posted_at < $3
order by posted_at desc limit 1`

const lastPostedQuery = `select posted_at from accounts where tenant_id = $1 and partner_id = $2`

// statement begins the statement of a partner of the tenant. It ends where the partner's
// books end now: what is posted while it is sent is not part of it.
func (s *Service) statement(ctx context.Context, asked span) (statement, error) {
	if _, err := one(ctx, s, scanBalance, showBalanceQuery, asked.tenant, asked.partner); err != nil {
		return statement{}, err
	}
	var last *time.Time
	err := s.deps.Pool.QueryRow(ctx, lastPostedQuery, asked.tenant, asked.partner).Scan(&last)
	if err != nil && !postgres.Absent(err) {
		return statement{}, fmt.Errorf("read the end of the books: %w", postgres.Explain(err))
	}
	if end := later(earliest, instant(last)); end.Before(asked.until) {
		asked.until = end
	}
	rows, err := s.deps.Pool.Query(ctx, lastBeforeQuery, asked.tenant, asked.partner, asked.from)
	if err != nil {
		return statement{}, fmt.Errorf("read opening balances: %w", postgres.Explain(err))
	}
	before, err := pgx.CollectExactlyOneRow(rows, scanBalance)
	if err != nil && !postgres.Absent(err) {
		return statement{}, fmt.Errorf("read opening balances: %w", postgres.Explain(err))
	}
	return statement{asked, before.balances, func(yield func(line) error) error { return s.eachLine(ctx, asked, yield) }}, nil
}

// instant is the time, or the zero time for none.
func instant(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// statementChunk is how many lines are read at once: a connection is not kept while a
// slow caller takes them.
const statementChunk = 1000

const linesQuery = `
select posted_at, kind, reference, commission_id, from_account, to_account, amount_centavos, ` + balanceColumns + ` from transfers
where tenant_id = $1 and partner_id = $2 and posted_at >= $3 and posted_at < $4
order by posted_at limit $5`

// eachLine yields the lines of the span, until one cannot be taken. They never change,
// and each stands after all that were posted before: reading them in pieces gives what
// reading them at once would.
func (s *Service) eachLine(ctx context.Context, asked span, yield func(line) error) error {
	for {
		rows, err := s.deps.Pool.Query(ctx, linesQuery, asked.tenant, asked.partner, asked.from, asked.until, statementChunk)
		if err != nil {
			return fmt.Errorf("read statement: %w", postgres.Explain(err))
		}
		lines, err := pgx.CollectRows(rows, scanLine)
		if err != nil {
			return fmt.Errorf("read statement: %w", postgres.Explain(err))
		}
		for _, l := range lines {
			if err := yield(l); err != nil {
				return err
			}
			asked.from = l.PostedAt.Add(time.Microsecond)
		}
		if len(lines) < statementChunk {
			return nil
		}
	}
}

func scanLine(row pgx.CollectableRow) (l line, err error) {
	err = row.Scan(&l.PostedAt.Time, &l.Kind, &l.Reference, &l.CommissionID, &l.From, &l.To, &l.Amount,
		&l.Pending, &l.Available, &l.Reserved, &l.Paid, &l.Debt)
	l.Balance = l.owed()
	return l, err
}
