package commissions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/trace"
	"partilha.dev/pkg/web"
	"partilha.dev/services/commissions/internal/pix"
)

// withdrawalRequest is what a partner, or somebody for them, asks for.
type withdrawalRequest struct {
	PartnerID    *uuid.UUID `json:"partner_id"`
	ReferralCode *string    `json:"referral_code"`
	Amount       money.BRL  `json:"amount_brl"`
	KeyType      pix.Type   `json:"pix_key_type"`
	Key          string     `json:"pix_key"`
	ExternalRef  string     `json:"external_ref"`

	key pix.Key
}

// check reads the key and sees to it that the partner is named once. Its error names all
// that is wrong.
func (r *withdrawalRequest) check() (err error) {
	var details []fault.Detail
	switch {
	case r.PartnerID == nil && r.ReferralCode == nil:
		for _, member := range []string{"/partner_id", "/referral_code"} {
			details = append(details, fault.Detail{Path: member, Code: "required", Message: "one of these is required: partner_id, referral_code"})
		}
	case r.PartnerID != nil && r.ReferralCode != nil:
		details = append(details, fault.Detail{Path: "/referral_code", Code: "not_allowed", Message: "give either partner_id or referral_code, not both"})
	}
	if r.key, err = pix.Parse(r.KeyType, r.Key); err != nil {
		details = append(details, fault.Of(err).Details...)
	}
	if len(details) == 0 {
		return nil
	}
	slices.SortStableFunc(details, func(a, b fault.Detail) int { return strings.Compare(a.Path, b.Path) })
	return fault.InvalidBody(details...)
}

// withdrawalReceipt is the answer to a withdrawalRequest, the same for the first and for
// every repeat: what became of the withdrawal since is not part of it.
type withdrawalReceipt struct {
	ID          uuid.UUID    `json:"withdrawal_id"`
	ExternalRef string       `json:"external_ref"`
	PartnerID   uuid.UUID    `json:"partner_id"`
	Amount      money.BRL    `json:"amount_brl"`
	KeyType     pix.Type     `json:"pix_key_type"`
	Key         string       `json:"pix_key"`
	Status      string       `json:"status"`
	RequestedAt openapi.Time `json:"requested_at"`
	Idempotent  bool         `json:"idempotent"`
}

// requestWithdrawal answers POST /api/v1/withdrawals.
func (s *Service) requestWithdrawal(call *web.Call) (web.Answer, error) {
	var r withdrawalRequest
	if err := call.Decode(&r); err != nil {
		return web.Answer{}, err
	}
	if err := r.check(); err != nil {
		return web.Answer{}, err
	}
	w, differences, fresh, err := s.request(call.Context(), call.Tenant(), call.Key.ID, r)
	if err != nil {
		return web.Answer{}, err
	}
	answer := web.Answer{Status: 201}
	if !fresh {
		answer.Status, answer.Header = 200, mismatchHeader(differences)
	}
	if err := s.show(call, w); err != nil {
		return web.Answer{}, err
	}
	answer.Body = withdrawalReceipt{w.ID, w.ExternalRef, w.PartnerID, w.Amount, w.KeyType, w.Key, statusRequested, w.RequestedAt, !fresh}
	return answer, nil
}

// request reserves the amount, or finds the withdrawal that the same external_ref asked
// for before, whosever it is; fresh tells which, and differences what the earlier request
// had said otherwise. Whether there is such a partner, and whether that much is available,
// is looked at only after no earlier one was found.
func (s *Service) request(ctx context.Context, tenant uuid.UUID, keyID string, r withdrawalRequest) (w *withdrawal, differences []string, fresh bool, err error) {
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		who, err := findPayee(ctx, tx, tenant, r)
		if err != nil {
			return err
		}
		books, err := s.lockBooks(ctx, tx, map[partnerKey]bool{who.partnerKey: true})
		if err != nil {
			return err
		}
		// Only now: a call with the same reference may have held the lock.
		earlier, repeated, err := find(ctx, tx, scanWithdrawal, findWithdrawalQuery, tenant, r.ExternalRef)
		if err != nil {
			return err
		}
		if repeated {
			w = earlier
			differences, err = s.differences(w, r, who)
			return err
		}
		b := books.books[who.partnerKey]
		if err := decideRequest(b, who, r.Amount); err != nil {
			return err
		}
		if w, err = s.newWithdrawal(tenant, who.id, r, books.now); err != nil {
			return err
		}
		if fresh, err = w.insert(ctx, tx, tenant, keyID); err != nil {
			return err
		}
		if !fresh { // a call for another partner has taken the reference meanwhile
			if w, repeated, err = find(ctx, tx, scanWithdrawal, findWithdrawalQuery, tenant, r.ExternalRef); err != nil {
				return err
			}
			if !repeated {
				return errors.New("the reference is taken and names no withdrawal")
			}
			differences, err = s.differences(w, r, who)
			return err
		}
		books.post(b, movedWithdrawal, w.ID, uuid.Nil, available, reserved, w.Amount)
		books.keep(tx)
		told, err := event.Seal(tenant, w.ID.String(), books.now, w.told(), trace.Parent(ctx))
		if err != nil {
			return err
		}
		s.relay.Add(tx, told)
		return nil
	})
	if err != nil {
		return nil, nil, false, fmt.Errorf("request withdrawal: %w", err)
	}
	return w, differences, fresh, nil
}

// payee is a partner who wants to be paid, and what is known of them.
type payee struct {
	partnerKey
	status *string // nil: nothing has been heard of them
}

const (
	payeeQuery = `
select wanted.partner_id, p.status from (select $2::uuid as partner_id) wanted
left join partners p on p.tenant_id = $1 and p.partner_id = wanted.partner_id`

	payeeOfCodeQuery = `select partner_id, status from partners where tenant_id = $1 and referral_code = $2`
)

// findPayee finds who the request is for; the partner without an id where nobody has the
// referral code.
func findPayee(ctx context.Context, tx *postgres.Tx, tenant uuid.UUID, r withdrawalRequest) (who payee, err error) {
	query, name := payeeQuery, any(r.PartnerID)
	if r.PartnerID == nil {
		query, name = payeeOfCodeQuery, any(*r.ReferralCode)
	}
	who, _, err = find(ctx, tx, func(row pgx.CollectableRow) (found payee, err error) {
		err = row.Scan(&found.id, &found.status)
		return found, err
	}, query, tenant, name)
	who.tenant = tenant
	if err != nil {
		return who, fmt.Errorf("find partner: %w", err)
	}
	return who, nil
}

const partnerBanned = "banned"

func (p payee) banned() bool { return p.status != nil && *p.status == partnerBanned }

// decideRequest tells why so much may not be withdrawn, or nil. The book is nil where the
// partner has never earned anything.
func decideRequest(b *book, who payee, amount money.BRL) error {
	switch {
	case b == nil:
		return fault.New(fault.NotFound, "partner_not_found", "no partner with a balance has this partner_id or referral_code")
	case who.banned():
		return errBanned
	case amount > b.Available:
		return fault.Newf(fault.Rule, "insufficient_balance", "%s is available", b.Available)
	}
	return nil
}

var errBanned = fault.New(fault.Rule, "rule_violated", "the partner is banned and cannot be paid")

// newWithdrawal makes a withdrawal whose key is sealed.
func (s *Service) newWithdrawal(tenant, partner uuid.UUID, r withdrawalRequest, now time.Time) (*withdrawal, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("draw an id: %w", err)
	}
	sealed, err := s.sealKey(tenant, id, r.key.Reveal())
	if err != nil {
		return nil, err
	}
	return &withdrawal{
		ID: id, ExternalRef: r.ExternalRef, PartnerID: partner, Amount: r.Amount, KeyType: r.key.Type(), Key: r.key.Masked(), Status: statusRequested,
		RequestedAt: openapi.Time{Time: now}, ChangedAt: openapi.Time{Time: now}, sealed: sealed,
	}, nil
}

const requestStatement = `
with made as (
	insert into withdrawals (tenant_id, withdrawal_id, external_ref, partner_id, amount_centavos, pix_key_type, pix_key, pix_key_masked,
		status, requested_at, changed_at)
	values (@tenant_id, @withdrawal_id, @external_ref, @partner_id, @amount, @key_type, @key, @masked, @status, @now, @now)
	on conflict (tenant_id, external_ref) do nothing
	returning tenant_id, withdrawal_id, changed_at, status)
insert into withdrawal_states (tenant_id, withdrawal_id, changed_at, status, key_id)
select tenant_id, withdrawal_id, changed_at, status, @key_id from made`

// insert adds the withdrawal and its first state; it reports false, and adds neither,
// where the reference is taken.
func (w *withdrawal) insert(ctx context.Context, tx *postgres.Tx, tenant uuid.UUID, keyID string) (bool, error) {
	tag, err := tx.Exec(ctx, requestStatement, pgx.NamedArgs{
		"tenant_id": tenant, "withdrawal_id": w.ID, "external_ref": w.ExternalRef, "partner_id": w.PartnerID,
		"amount": w.Amount.Centavos(), "key_type": string(w.KeyType), "key": w.sealed, "masked": w.Key, "status": w.Status, "now": w.RequestedAt.Time,
		"key_id": keyID,
	})
	if err != nil {
		return false, fmt.Errorf("insert withdrawal: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

const findWithdrawalQuery = `select ` + withdrawalColumns + ` from withdrawals w where w.tenant_id = $1 and w.external_ref = $2`

// find returns the row that the query finds in the transaction, if there is one.
func find[T any](ctx context.Context, tx *postgres.Tx, scan pgx.RowToFunc[T], query string, args ...any) (row T, found bool, err error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return row, false, err
	}
	row, err = pgx.CollectExactlyOneRow(rows, scan)
	if postgres.Absent(err) {
		return row, false, nil
	}
	return row, err == nil, err
}

// differences names the members of a repeat that do not say what the first request said.
// Keys are compared in their one spelling, and partners however they are named.
func (s *Service) differences(w *withdrawal, r withdrawalRequest, who payee) ([]string, error) {
	key, err := s.openKey(who.tenant, w.ID, w.sealed)
	if err != nil {
		return nil, err
	}
	same := who.id == w.PartnerID
	return differing(
		compared{"amount_brl", w.Amount == r.Amount},
		compared{"partner_id", same || r.PartnerID == nil},
		compared{"pix_key", key == r.key.Reveal()},
		compared{"pix_key_type", w.KeyType == r.key.Type()},
		compared{"referral_code", same || r.ReferralCode == nil},
	), nil
}
