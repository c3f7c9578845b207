package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// summary is what the events of one UTC day come to, as the API shows it.
type summary struct {
	Date string      `json:"date"`
	Data []kindTotal `json:"data"` // one for each kind of event, in the order of the catalogue
}

// kindTotal is how many events of a kind there are, and what they add up to.
type kindTotal struct {
	Event string `json:"event"`
	Count int64  `json:"count"`
	Sums  sums   `json:"sums"`
}

// sums are a JSON object of names and amounts, in this order.
type sums []sumView

type sumView struct {
	member string
	total  money.BRL
}

// MarshalJSONTo writes the object.
func (s sums) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, one := range s {
		if err := enc.WriteToken(jsontext.String(one.member)); err != nil {
			return err
		}
		if err := enc.WriteValue(jsontext.Value(one.total.String())); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// summarise answers GET /api/v1/events/summary.
func (s *Service) summarise(call *web.Call) (web.Answer, error) {
	day, err := s.summaryDay(call)
	if err != nil {
		return web.Answer{}, err
	}
	found, err := s.summary(call.Context(), call.Tenant(), day)
	if err != nil {
		return web.Answer{}, err
	}
	return web.Answer{Status: http.StatusOK, Body: found}, nil
}

// summaryDay is the day that is asked for, today where none is. Of a day that is no
// longer kept there is nothing to be told, which is not the same as that nothing happened.
func (s *Service) summaryDay(call *web.Call) (time.Time, error) {
	today := dayOf(s.deps.Now())
	text, err := call.QueryText("date", len(time.DateOnly))
	if err != nil || text == nil {
		return today, err
	}
	day, err := time.Parse(time.DateOnly, *text)
	if err != nil {
		return day, fault.InvalidParameter("date", "must be a date such as 2026-07-14")
	}
	if oldest := s.oldestKept(); day.Before(oldest) || day.After(today) {
		return day, fault.InvalidParameter("date", fmt.Sprintf("must be from %s to %s", oldest.Format(time.DateOnly), today.Format(time.DateOnly)))
	}
	return day, nil
}

const summaryQuery = `
select name, member, total from day_totals
where tenant_id = $1 and day = $2`

// summary reads the totals of one day, zeros included.
func (s *Service) summary(ctx context.Context, tenant uuid.UUID, day time.Time) (summary, error) {
	rows, err := s.deps.Pool.Query(ctx, summaryQuery, tenant, day)
	if err != nil {
		return summary{}, fmt.Errorf("read totals: %w", postgres.Explain(err))
	}
	totals := map[totalKey]int64{}
	var key totalKey
	var total int64
	_, err = pgx.ForEachRow(rows, []any{&key.name, &key.member, &total}, func() error {
		totals[key] = total
		return nil
	})
	if err != nil {
		return summary{}, fmt.Errorf("read totals: %w", postgres.Explain(err))
	}
	found := summary{Date: day.Format(time.DateOnly)}
	for _, name := range deliverable {
		kind := kindTotal{Event: name, Count: totals[totalKey{name: name, member: counted}], Sums: sums{}}
		for _, s := range sumsOf[name] {
			kind.Sums = append(kind.Sums, sumView{s.member, money.BRL(totals[totalKey{name: name, member: s.member}])})
		}
		found.Data = append(found.Data, kind)
	}
	return found, nil
}
