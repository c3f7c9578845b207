package commissions

import (
	"encoding/csv"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"partilha.dev/pkg/money"
)

const mediaCSV = "text/csv"

// summary are a partner's accounts at one end of a statement.
type summary struct {
	Balance money.BRL `json:"balance_brl"`
	balances
}

func summarize(b balances) summary { return summary{b.owed(), b} }

// writeJSON writes {partner_id, opening, lines, closing}, one line after the other.
func (s statement) writeJSON(to io.Writer) error {
	encoder := jsontext.NewEncoder(to)
	closing := s.opening
	steps := []func() error{
		token(encoder, jsontext.BeginObject),
		member(encoder, "partner_id", s.partner),
		member(encoder, "opening", summarize(s.opening)),
		token(encoder, jsontext.String("lines")), token(encoder, jsontext.BeginArray),
		func() error {
			return s.lines(func(l line) error {
				closing = l.balances
				return json.MarshalEncode(encoder, l)
			})
		},
		token(encoder, jsontext.EndArray),
		func() error { return member(encoder, "closing", summarize(closing))() },
		token(encoder, jsontext.EndObject),
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("write statement: %w", err)
		}
	}
	return nil
}

func token(encoder *jsontext.Encoder, t jsontext.Token) func() error {
	return func() error { return encoder.WriteToken(t) }
}

func member(encoder *jsontext.Encoder, name string, value any) func() error {
	return func() error {
		if err := encoder.WriteToken(jsontext.String(name)); err != nil {
			return err
		}
		return json.MarshalEncode(encoder, value)
	}
}

var csvHeader = []string{
	"posted_at", "kind", "reference", "commission_id", "from", "to", "amount_brl",
	"balance_brl", "pending_brl", "available_brl", "reserved_brl", "paid_brl", "debt_brl",
}

// writeCSV writes a header and one record for each line, as RFC 4180 wants them.
func (s statement) writeCSV(to io.Writer) error {
	records := csv.NewWriter(to)
	records.UseCRLF = true
	if err := records.Write(csvHeader); err != nil {
		return fmt.Errorf("write statement: %w", err)
	}
	record := make([]string, 0, len(csvHeader))
	err := s.lines(func(l line) error {
		at, err := l.PostedAt.MarshalText()
		if err != nil {
			return err
		}
		record = append(record[:0], string(at), l.Kind, l.Reference.String(), textOf(l.CommissionID), l.From, l.To)
		for _, amount := range []money.BRL{l.Amount, l.Balance, l.Pending, l.Available, l.Reserved, l.Paid, l.Debt} {
			record = append(record, amount.String())
		}
		return records.Write(record)
	})
	if err != nil {
		return fmt.Errorf("write statement: %w", err)
	}
	records.Flush()
	return records.Error()
}

// textOf is the id, or nothing.
func textOf(id *uuid.UUID) string {
	if id == nil {
		return ""
	}
	return id.String()
}
