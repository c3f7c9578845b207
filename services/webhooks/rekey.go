package webhooks

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
	"partilha.dev/pkg/service"
)

// Commands are what an operator does at the command line of this service.
func Commands() []service.Command {
	return []service.Command{
		{Usage: "rekey", About: "seal every secret again under the first key of WEBHOOKS_SECRET_KEY", Run: rekeyCommand},
		{Usage: "restored TIME", About: "after a restore from a backup: send nothing again that happened before (or: restored now)", Run: restoredCommand},
	}
}

func rekeyCommand(ctx context.Context, deps service.Deps, args []string) error {
	if len(args) > 0 {
		return errors.New("rekey takes no arguments: the keys stand in WEBHOOKS_SECRET_KEY")
	}
	var config Config
	if err := service.ReadEnvironment(&config); err != nil {
		return err
	}
	sealer, err := newSealer(config.SecretKey)
	if err != nil {
		return fmt.Errorf("WEBHOOKS_SECRET_KEY: %w", err)
	}
	return rekey(ctx, deps.Pool, sealer, os.Stdout)
}

const rekeyAtOnce = 500

// rekey seals again what is not under the first key, in batches, and writes what it did
// to out. It can be broken off and begun anew at any time, and services that have both
// keys may run meanwhile. A secret that no key opens is passed over and makes it fail.
func rekey(ctx context.Context, pool *pgxpool.Pool, sealer *sealer, out io.Writer) error {
	var tally rekeyed
	var after lane
	for more := true; more; {
		var batch rekeyed
		err := postgres.Transact(ctx, pool, func(tx *postgres.Tx) (err error) {
			batch, after, more, err = rekeyBatch(ctx, tx, sealer, after)
			return err
		})
		if err != nil {
			fmt.Fprintln(out, tally.told())
			return fmt.Errorf("seal secrets again: %w", err)
		}
		tally.again += batch.again
		tally.already += batch.already
		tally.closed = append(tally.closed, batch.closed...)
	}
	fmt.Fprintln(out, tally.told())
	if len(tally.closed) > 0 {
		return fmt.Errorf("no key of WEBHOOKS_SECRET_KEY opens the secrets of %d endpoints: %s", len(tally.closed), tally.closed)
	}
	return nil
}

// rekeyed is what became of the endpoints' secrets.
type rekeyed struct {
	again, already int
	closed         []uuid.UUID // endpoints of whose secrets no key opens one
}

func (r rekeyed) told() string {
	return fmt.Sprintf("the secrets of %d endpoints are sealed again, those of %d were under the first key already", r.again, r.already)
}

const (
	rekeyQuery = `
select tenant_id, endpoint_id, ` + signingColumns + ` from endpoints
where (tenant_id, endpoint_id) > ($1, $2) and secret is not null
order by tenant_id, endpoint_id limit $3
for update`

	resealStatement = `
update endpoints set secret = $3, previous_secret = $4::bytea, previous_until = case when $4 is not null then previous_until end
where tenant_id = $1 and endpoint_id = $2`
)

// rekeyBatch sees to the endpoints that follow after, and tells the last of them and
// whether there may be more.
func rekeyBatch(ctx context.Context, tx *postgres.Tx, sealer *sealer, after lane) (done rekeyed, last lane, more bool, err error) {
	rows, err := tx.Query(ctx, rekeyQuery, after.tenant, after.endpoint, rekeyAtOnce)
	if err != nil {
		return done, after, false, fmt.Errorf("read secrets: %w", err)
	}
	last = after
	seen := 0
	var keys sealedSecrets
	_, err = pgx.ForEachRow(rows, append([]any{&last.tenant, &last.endpoint}, keys.columns()...), func() error {
		seen++
		again, err := sealer.reseal(last.endpoint, keys)
		switch {
		case err != nil:
			done.closed = append(done.closed, last.endpoint)
		case again == nil:
			done.already++
		default:
			tx.Later(postgres.Doing("write secrets"), resealStatement, last.tenant, last.endpoint, again.secret, again.previous)
			done.again++
		}
		return nil
	})
	if err != nil {
		return done, after, false, fmt.Errorf("read secrets: %w", err)
	}
	return done, last, seen == rekeyAtOnce, nil
}

// reseal returns the secrets of an endpoint under the first key, or nil where they are
// under it already.
func (s *sealer) reseal(endpointID uuid.UUID, keys sealedSecrets) (*sealedSecrets, error) {
	changed := false
	for _, sealed := range []*[]byte{&keys.secret, &keys.previous} {
		if *sealed == nil || s.ring.Current(*sealed) {
			continue
		}
		secret, err := s.open(endpointID, *sealed)
		if err != nil {
			return nil, err
		}
		if *sealed, err = s.seal(endpointID, secret); err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		return nil, nil
	}
	return &keys, nil
}
