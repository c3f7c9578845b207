package goals

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"partilha.dev/pkg/seal"
)

// streamIDs makes the ids of events in streams. Such an id is a horizon, which counts the
// transactions of all tenants; so it is sealed, for one goal, under a key that every
// replica knows. It tells its reader nothing, not even whether it is another than the
// last one.
type streamIDs struct{ keys *seal.Ring }

const streamKeyQuery = `select key from stream_key`

func newStreamIDs(ctx context.Context, pool *pgxpool.Pool) (streamIDs, error) {
	var key string
	if err := pool.QueryRow(ctx, streamKeyQuery).Scan(&key); err != nil {
		return streamIDs{}, fmt.Errorf("read the key of streams: %w", err)
	}
	keys, err := seal.NewRing(key)
	if err != nil {
		return streamIDs{}, fmt.Errorf("read the key of streams: %w", err)
	}
	return streamIDs{keys}, nil
}

// of is an id for the horizon in a stream of the goal.
func (ids streamIDs) of(g *goal, horizon int64) (string, error) {
	sealed, err := ids.keys.Seal(binary.BigEndian.AppendUint64(nil, uint64(horizon)), g.streamName())
	if err != nil {
		return "", fmt.Errorf("seal the id of an event: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

// horizon is what an id in a stream of the goal stands for, or nil where it is none.
func (ids streamIDs) horizon(g *goal, id string) *int64 {
	sealed, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return nil
	}
	raw, err := ids.keys.Open(sealed, g.streamName())
	if err != nil {
		return nil
	}
	return new(int64(binary.BigEndian.Uint64(raw)))
}

// streamName is what ids of the goal's streams are bound to.
func (g *goal) streamName() []byte { return append(g.tenantID[:], g.id[:]...) }
