package commissions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/seal"
	"partilha.dev/pkg/service"
)

// Commands are what an operator does at the command line of this service.
func Commands() []service.Command {
	return []service.Command{
		{Usage: "rekey", About: "seal every PIX key again under the first key of COMMISSIONS_SECRET_KEY", Run: rekeyCommand},
	}
}

func rekeyCommand(ctx context.Context, deps service.Deps, args []string) error {
	if len(args) > 0 {
		return errors.New("rekey takes no arguments: the keys stand in COMMISSIONS_SECRET_KEY")
	}
	var config Config
	if err := service.ReadEnvironment(&config); err != nil {
		return err
	}
	ring, err := seal.NewRing(config.SecretKey)
	if err != nil {
		return fmt.Errorf("COMMISSIONS_SECRET_KEY: %w", err)
	}
	return rekey(ctx, deps.Pool, ring, os.Stdout)
}

const rekeyAtOnce = 500

// rekey seals again what is not under the first key, in batches, and writes what it did
// to out. It can be broken off and begun anew at any time, and services that have both
// keys may run meanwhile. A PIX key that no key opens is passed over and makes it fail.
func rekey(ctx context.Context, pool *pgxpool.Pool, ring *seal.Ring, out io.Writer) error {
	var done rekeyed
	for more := true; more; {
		var err error
		if more, err = done.further(ctx, pool, ring); err != nil {
			fmt.Fprintln(out, done)
			return fmt.Errorf("seal PIX keys again: %w", postgres.Explain(err))
		}
	}
	fmt.Fprintln(out, done)
	if len(done.closed) > 0 {
		return fmt.Errorf("no key of COMMISSIONS_SECRET_KEY opens the PIX keys of %d withdrawals: %s", len(done.closed), done.closed)
	}
	return nil
}

// rekeyed is what became of PIX keys.
type rekeyed struct {
	again, already int
	closed         []uuid.UUID   // withdrawals whose PIX key no key opens
	last           withdrawalKey // that was looked at
}

// withdrawalKey names a withdrawal of any tenant.
type withdrawalKey struct{ tenant, id uuid.UUID }

func (r rekeyed) String() string {
	return fmt.Sprintf("%d PIX keys are sealed again, %d were under the first key already", r.again, r.already)
}

const (
	rekeyQuery = `
select tenant_id, withdrawal_id, pix_key from withdrawals
where (tenant_id, withdrawal_id) > ($1, $2)
order by tenant_id, withdrawal_id limit $3`

	resealStatement = `update withdrawals set pix_key = $3 where tenant_id = $1 and withdrawal_id = $2`
)

// further sees to the withdrawals that follow, and tells whether there may be more. Each
// is written by itself, so that no other transaction waits for two of them; a PIX key
// never changes otherwise.
func (r *rekeyed) further(ctx context.Context, pool *pgxpool.Pool, ring *seal.Ring) (more bool, err error) {
	rows, err := pool.Query(ctx, rekeyQuery, r.last.tenant, r.last.id, rekeyAtOnce)
	if err != nil {
		return false, fmt.Errorf("read PIX keys: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k sealedKey, err error) {
		err = row.Scan(&k.tenant, &k.id, &k.sealed)
		return k, err
	})
	if err != nil {
		return false, fmt.Errorf("read PIX keys: %w", err)
	}
	for _, k := range found {
		r.last = k.withdrawalKey
		if ring.Current(k.sealed) {
			r.already++
			continue
		}
		key, err := ring.Open(k.sealed, owner(k.tenant, k.id))
		if err != nil {
			r.closed = append(r.closed, k.id)
			continue
		}
		again, err := ring.Seal(key, owner(k.tenant, k.id))
		if err != nil {
			return false, fmt.Errorf("seal PIX key: %w", err)
		}
		if _, err := pool.Exec(ctx, resealStatement, k.tenant, k.id, again); err != nil {
			return false, fmt.Errorf("write PIX key: %w", err)
		}
		r.again++
	}
	return len(found) == rekeyAtOnce, nil
}

// sealedKey is the PIX key of a withdrawal as it is stored.
type sealedKey struct {
	withdrawalKey
	sealed []byte
}
