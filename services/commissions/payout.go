package commissions

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// payout is a withdrawal as the list shows it that a person takes to the bank.
type payout struct {
	id          uuid.UUID
	requestedAt time.Time
	name        string // of the partner
	keyType     string
	sealed      []byte // the key
	amount      money.BRL
}

// listPayouts answers GET /api/v1/withdrawals as CSV: all that is approved and may be
// paid, what was asked for first in front. It is made while it is sent.
func (s *Service) listPayouts(call *web.Call) (web.Answer, error) {
	filter, err := readWithdrawalFilter(call)
	if err != nil {
		return web.Answer{}, err
	}
	if filter.status == nil || *filter.status != statusApproved {
		return web.Answer{}, fault.InvalidParameter("status", "must be approved where CSV is asked for: it is the list of what is to be paid")
	}
	if err := s.admitPayer(call); err != nil {
		return web.Answer{}, err
	}
	write := func(to io.Writer) error { return s.writePayouts(call.Context(), call.Tenant(), filter, to) }
	return web.Answer{
		Status: http.StatusOK, Header: map[string]string{"Vary": "Accept"},
		Stream: &web.Stream{Type: mediaCSV + "; charset=utf-8; header=present", Write: write},
	}, nil
}

var payoutHeader = []string{"name", "pix_key_type", "pix_key", "amount_brl", "withdrawal_id"}

func (s *Service) writePayouts(ctx context.Context, tenant uuid.UUID, filter withdrawalFilter, to io.Writer) error {
	records := csv.NewWriter(to)
	records.UseCRLF = true
	if err := records.Write(payoutHeader); err != nil {
		return fmt.Errorf("write payouts: %w", err)
	}
	err := s.eachPayout(ctx, tenant, filter, func(p payout) error {
		key, err := s.openKey(tenant, p.id, p.sealed)
		if err != nil {
			return err
		}
		return records.Write([]string{plainCell(p.name), p.keyType, key, p.amount.String(), p.id.String()})
	})
	if err != nil {
		return fmt.Errorf("write payouts: %w", err)
	}
	records.Flush()
	return records.Error()
}

// plainCell is text that no spreadsheet takes for a formula: where it begins like one, an
// apostrophe stands in front of it.
func plainCell(text string) string {
	begin := strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	if strings.IndexAny(begin, "=+-@＝＋－＠") == 0 || strings.IndexAny(text, "\t\r\n") == 0 {
		return "'" + text
	}
	return text
}

// Whose partner was banned since cannot be paid.
const payoutsQuery = `
select w.withdrawal_id, w.requested_at, coalesce(p.name, ''), w.pix_key_type, w.pix_key, w.amount_centavos
from withdrawals w left join partners p on p.tenant_id = w.tenant_id and p.partner_id = w.partner_id
where w.tenant_id = @tenant_id and w.status = '` + statusApproved + `' and p.status is distinct from '` + partnerBanned + `'
  and (@partner_id::uuid is null or w.partner_id = @partner_id) and (@external_ref::text is null or w.external_ref = @external_ref)
  and w.requested_at >= coalesce(@created_from::timestamptz, '-infinity') and w.requested_at < coalesce(@created_to::timestamptz, 'infinity')
  and (w.requested_at, w.withdrawal_id) > (@after_requested_at::timestamptz, @after::uuid)
order by w.requested_at, w.withdrawal_id limit @limit`

// payoutChunk is how many payouts are read at once.
const payoutChunk = 1000

// eachPayout yields the payouts, until one cannot be taken. What is approved or settled
// meanwhile may or may not be among them; none is there twice.
func (s *Service) eachPayout(ctx context.Context, tenant uuid.UUID, filter withdrawalFilter, yield func(payout) error) error {
	arguments := filter.arguments()
	arguments["tenant_id"], arguments["limit"] = tenant, payoutChunk
	arguments["after_requested_at"], arguments["after"] = earliest, uuid.Nil
	for {
		rows, err := s.deps.Pool.Query(ctx, payoutsQuery, pgx.QueryExecModeCacheDescribe, arguments)
		if err != nil {
			return fmt.Errorf("read payouts: %w", postgres.Explain(err))
		}
		payouts, err := pgx.CollectRows(rows, scanPayout)
		if err != nil {
			return fmt.Errorf("read payouts: %w", postgres.Explain(err))
		}
		for _, p := range payouts {
			if err := yield(p); err != nil {
				return err
			}
			arguments["after_requested_at"], arguments["after"] = p.requestedAt, p.id
		}
		if len(payouts) < payoutChunk {
			return nil
		}
	}
}

func scanPayout(row pgx.CollectableRow) (p payout, err error) {
	err = row.Scan(&p.id, &p.requestedAt, &p.name, &p.keyType, &p.sealed, &p.amount)
	return p, err
}
