package sales

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/web"
	"partilha.dev/services/sales/internal/rowfile"
)

// importer takes over the rows of one file for one tenant. Whatever a row makes, it
// makes by the same statements as the API, and each commits before the next is read:
// so it may end at any moment, and a second run finds what the first has made.
type importer struct {
	s          *Service
	tenant     uuid.UUID
	file       *rowfile.File
	bodies     map[*importKind]*openapi.Body
	references references
	waiting    []waitingSale // for a commit

	tally    importTally
	refused  *refusedRows
	progress *importProgress
	out      io.Writer // of the table
}

func (s *Service) newImporter(order importOrder, file *rowfile.File) (*importer, error) {
	doc, err := Document()
	if err != nil {
		return nil, fmt.Errorf("load the OpenAPI document: %w", err)
	}
	refused, err := keepRefused(order.refused)
	if err != nil {
		return nil, err
	}
	m := &importer{
		s: s, tenant: order.tenant, file: file, bodies: map[*importKind]*openapi.Body{},
		references: references{pool: s.deps.Pool, tenant: order.tenant, known: map[reference]uuid.UUID{}},
		tally:      newImportTally(), refused: refused, out: order.stdout,
		progress: &importProgress{out: order.stderr, terminal: order.terminal, size: file.Size()},
	}
	for _, kind := range importKinds {
		if kind.operation != "" {
			m.bodies[kind] = doc.Body("POST", kind.operation)
		}
	}
	return m, nil
}

// run reads the file once for each pass that has rows.
func (m *importer) run(ctx context.Context) error {
	rows := make([]int, passes+1) // by the pass in which they are made
	for pass := 1; pass <= passes; pass++ {
		if pass > 1 && rows[pass] == 0 {
			continue
		}
		reader, err := m.file.Read()
		if err != nil {
			return err
		}
		for {
			row, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			kind, refusal := m.kindOf(row)
			switch {
			case pass > 1 && (refusal != nil || kind.pass != pass):
				continue
			case refusal != nil:
				err = m.settle(&importRow{Row: row}, false, refusal)
			case kind.pass == pass:
				err = m.take(ctx, &importRow{Row: row, kind: kind})
			}
			if err != nil {
				return err
			}
			if pass == 1 && refusal == nil {
				rows[kind.pass]++
			}
			m.progress.show(pass, reader.Offset(), m.tally)
		}
		if err := m.recordWaiting(ctx); err != nil {
			return err
		}
	}
	return nil
}

// kindOf is the kind of a row, or why there is none.
func (m *importer) kindOf(row rowfile.Row) (*importKind, error) {
	switch {
	case row.Refusal != nil:
		return nil, row.Refusal
	case row.Members != nil:
		return importKindOf(row)
	}
	// What is wrong with text that is no JSON object, any body can say.
	if err := m.bodies[importKinds[0]].Decode(row.Text, new(partnerBody)); err != nil {
		return nil, err
	}
	return nil, fault.InvalidBody(fault.Detail{Code: "type", Message: "must be a JSON object"})
}

// take makes what the row stands for, or has it wait for the next commit of sales. The
// import ends where the tenant has been suspended meanwhile.
func (m *importer) take(ctx context.Context, row *importRow) error {
	row.checkMembers()
	if row.kind.name == "sale" {
		return m.wait(ctx, row)
	}
	if err := m.s.checkActive(ctx, m.tenant); err != nil {
		return m.settle(row, false, err)
	}
	switch row.kind.name {
	case "partner":
		var body partnerBody
		if err := m.decode(row, &body); err != nil {
			return m.settle(row, false, err)
		}
		prepared, err := m.s.newPartner(m.tenant, body)
		return importCreated(ctx, m, row, prepared, err)
	case "campaign":
		var body campaignBody
		if err := m.decode(row, &body); err != nil {
			return m.settle(row, false, err)
		}
		prepared, err := m.s.newCampaign(m.tenant, body)
		return importCreated(ctx, m, row, prepared, err)
	case "plan":
		campaign := row.reference("campaign")
		var body planBody
		if err := m.decode(row, &body); err != nil {
			return m.settle(row, false, err)
		}
		campaignID, err := m.references.resolve(ctx, campaign)
		if err != nil {
			return m.settle(row, false, err)
		}
		prepared, err := m.s.newPlan(m.tenant, campaignID, body)
		return importCreated(ctx, m, row, prepared, err)
	default:
		fresh, err := m.link(ctx, row)
		return m.settle(row, fresh, err)
	}
}

// decode holds the row against the body of its operation and fills into. Its error has
// every issue of the row.
func (m *importer) decode(row *importRow, into any) error {
	issues := row.issues
	if body := m.bodies[row.kind]; body != nil {
		err := body.Decode(row.body(), into)
		f := fault.Of(err)
		if err != nil && (f == nil || f.Kind != fault.Invalid) {
			return err
		}
		if f != nil {
			issues = append(issues, f.Details...)
		}
	}
	if len(issues) == 0 {
		return nil
	}
	slices.SortStableFunc(issues, func(a, b fault.Detail) int { return cmp.Compare(a.Path, b.Path) })
	return fault.InvalidBody(issues...)
}

// importCreated makes a resource of the catalogue from what was prepared.
func importCreated[T any](ctx context.Context, m *importer, row *importRow, prepared creation[T], err error) error {
	var answer web.Answer
	if err == nil {
		answer, err = create(ctx, m.s, prepared)
	}
	if fault.KindOf(err) == fault.Conflict && prepared.externalRef == nil {
		f := *fault.Of(err)
		f.Message += "; without an external_ref nobody can tell whether by this very row"
		err = &f
	}
	if err == nil {
		err = differs(answer.Header[mismatchName])
	}
	return m.settle(row, answer.Status == 201, err)
}

// differs refuses a row whose external_ref has made something else before: the file
// and the record disagree, and a person has to see it. "" is no difference.
func differs(members string) error {
	if members == "" {
		return nil
	}
	return fault.Newf(fault.Conflict, "conflict", "this external_ref is known with another %s; what is recorded stays as it is", members)
}

// link links the partner that has the row's referral_code to the row's campaign.
func (m *importer) link(ctx context.Context, row *importRow) (fresh bool, err error) {
	campaign, partner := row.reference("campaign"), reference{"referral_code", row.text("referral_code")}
	if err := m.decode(row, nil); err != nil {
		return false, err
	}
	campaignID, err := m.references.resolve(ctx, campaign)
	if err != nil {
		return false, err
	}
	partnerID, err := m.references.resolve(ctx, partner)
	if err != nil {
		return false, err
	}
	return m.s.link(ctx, m.tenant, campaignID, partnerID)
}

// settle counts a row, and keeps it where it was refused. What is no fault of the row
// ends the import: the row is not judged and comes again with the next run.
func (m *importer) settle(row *importRow, fresh bool, err error) error {
	refusal := fault.Of(err)
	switch {
	case err == nil:
		m.tally.count(row.kind, fresh)
		return nil
	case refusal == nil || refusal.Kind == fault.Unavailable || refusal.Kind == fault.Unknown:
		return fmt.Errorf("line %d: %w", row.Line, err)
	}
	m.tally.refuse(row.kind)
	return m.refused.add(row, refusal)
}

// finish writes the table of what became of the rows, also after an import that ended early.
func (m *importer) finish() error {
	m.progress.clear()
	err := m.tally.write(m.out)
	kept, failure := m.refused.close()
	if kept && failure == nil {
		_, failure = fmt.Fprintf(m.progress.out, "refused rows, with their lines and reasons: %s\n", m.refused.path)
	}
	return errors.Join(err, failure)
}
