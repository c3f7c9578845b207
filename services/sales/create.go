package sales

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// creation is how a resource of the catalogue comes into being: once per
// external_ref, where the caller gives one.
type creation[T any] struct {
	tenant      uuid.UUID
	externalRef *string
	view        T      // what the first call is answered
	own         string // the member that names the resource
	taken       string // the member that must be unique, for a 409; "" if there is none
	// insert adds the row, with first in the column of that name; it reports false where
	// a unique key is taken.
	insert func(ctx context.Context, tx *postgres.Tx, first []byte) (bool, error)
	// firstQuery returns the column first of the row with the tenant and external_ref.
	firstQuery string
}

// created is the answer to a creation. Idempotent is shown only to a caller who gave
// an external_ref.
type created[T any] struct {
	View       T     `json:",embed"`
	Idempotent *bool `json:"idempotent,omitzero"`
}

// create makes the resource, or answers what the same external_ref made before.
func create[T any](ctx context.Context, s *Service, c creation[T]) (web.Answer, error) {
	first, err := json.Marshal(c.view)
	if err != nil {
		return web.Answer{}, fmt.Errorf("write %T: %w", c.view, err)
	}
	made := false
	var earlier []byte
	err = postgres.Transact(ctx, s.deps.Pool, func(tx *postgres.Tx) error {
		if made, err = c.insert(ctx, tx, first); err != nil || made || c.externalRef == nil {
			return err
		}
		err := tx.QueryRow(ctx, c.firstQuery, pgx.NamedArgs{"tenant_id": c.tenant, "external_ref": *c.externalRef}).Scan(&earlier)
		if postgres.Absent(err) {
			return nil
		}
		tx.Vouch()
		return err
	})
	switch {
	case err != nil:
		return web.Answer{}, fmt.Errorf("create %T: %w", c.view, err)
	case made:
		answer := created[T]{View: c.view}
		if c.externalRef != nil {
			answer.Idempotent = new(bool)
		}
		return web.Answer{Status: 201, Body: answer}, nil
	case earlier != nil:
		return c.repeat(earlier, first)
	default:
		return web.Answer{}, taken(c.taken)
	}
}

// taken is the refusal of a value that must be unique and is not.
func taken(member string) error {
	f := fault.Newf(fault.Conflict, "conflict", "%s is taken", member)
	f.Details = []fault.Detail{{Path: "/" + member, Code: "not_allowed", Message: "is taken; choose another"}}
	return f
}

// repeat is the 200 with the first result. It names the members in which the repeat
// differs from what the first call asked for.
func (c creation[T]) repeat(earlier, now []byte) (web.Answer, error) {
	idempotent := true
	answer := created[T]{Idempotent: &idempotent}
	var before, after map[string]jsontext.Value
	for raw, into := range map[*[]byte]any{&earlier: &before, &now: &after} {
		if err := json.Unmarshal(*raw, into); err != nil {
			return web.Answer{}, fmt.Errorf("read stored answer: %w", err)
		}
	}
	if err := json.Unmarshal(earlier, &answer.View); err != nil {
		return web.Answer{}, fmt.Errorf("read stored answer: %w", err)
	}
	var differences []string
	for name, value := range after {
		if name != c.own && name != "created_at" && !bytes.Equal(before[name], value) {
			differences = append(differences, name)
		}
	}
	slices.Sort(differences)
	return web.Answer{Status: 200, Body: answer, Header: mismatchHeader(differences)}, nil
}
