package sales

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
	"partilha.dev/services/sales/internal/rowfile"
)

// importKind is one type of row.
type importKind struct {
	name string
	pass int // in which it is made: what it refers to is made in an earlier one
	// operation is the one whose body the row has, by its path; "" for a link, which has none.
	operation string
	members   []string // that the row may have beside type
	required  []string // of those, what the operation's body does not ask for
	campaign  bool     // it names a campaign
	plan      bool     // it names a plan
}

// passes is how often the file is read: partners and campaigns refer to nothing, plans
// and links to those, sales to all of them. So rows may stand in any order.
const passes = 3

var importKinds = []*importKind{
	{
		name: "partner", pass: 1, operation: "/api/v1/partners",
		members: []string{"name", "referral_code", "email", "status", "external_ref"},
	},
	{
		name: "campaign", pass: 1, operation: "/api/v1/campaigns",
		members:  []string{"name", "status", "starts_at", "ends_at", "external_ref"},
		required: []string{"external_ref"},
	},
	{
		name: "plan", pass: 2, operation: "/api/v1/campaigns/{campaign_id}/plans", campaign: true,
		members:  []string{"name", "commission_pct", "conversion_amount_brl", "hold_days", "external_ref"},
		required: []string{"external_ref"},
	},
	{
		name: "link", pass: 2, campaign: true,
		members: []string{"referral_code"}, required: []string{"referral_code"},
	},
	{
		name: "sale", pass: 3, operation: "/api/v1/sales", campaign: true, plan: true,
		members: []string{"referral_code", "amount_brl", "external_ref", "sold_at", "customer_ref", "notes"},
	},
}

// importNumbers are the members that a cell of CSV gives as a number.
var importNumbers = []string{"amount_brl", "commission_pct", "conversion_amount_brl", "hold_days"}

// importColumns are the columns of CSV: the members of all kinds.
func importColumns() rowfile.Columns {
	columns := rowfile.Columns{"type": false, "campaign_ref": false, "campaign_id": false, "plan_ref": false, "plan_id": false}
	for _, kind := range importKinds {
		for _, name := range kind.members {
			columns[name] = slices.Contains(importNumbers, name)
		}
	}
	return columns
}

// has tells whether a row of the kind may have the member.
func (k *importKind) has(name string) bool {
	switch name {
	case "type":
		return true
	case "campaign_ref", "campaign_id":
		return k.campaign
	case "plan_ref", "plan_id":
		return k.plan
	default:
		return slices.Contains(k.members, name)
	}
}

// importRow is a row of a file whose kind is known.
type importRow struct {
	rowfile.Row
	kind   *importKind
	issues []fault.Detail // found so far
}

// importKindOf finds which kind of row this is; a nil one with the refusal.
func importKindOf(row rowfile.Row) (*importKind, error) {
	var given jsontext.Value
	for _, member := range row.Members {
		if member.Name == "type" {
			given = member.Value
			break
		}
	}
	text, ok := textOf(given)
	names := make([]string, len(importKinds))
	for i, kind := range importKinds {
		if ok && kind.name == text {
			return kind, nil
		}
		names[i] = kind.name
	}
	code := "not_allowed"
	if given == nil {
		code = "required"
	}
	return nil, fault.InvalidBody(fault.Detail{Path: "/type", Code: code, Message: "must be one of " + strings.Join(names, ", ")})
}

func (r *importRow) issue(name, code, message string) {
	path := jsontext.Pointer("").AppendToken(name)
	r.issues = append(r.issues, fault.Detail{Path: string(path), Code: code, Message: message})
}

// checkMembers finds members that the kind does not have, that it lacks, and that
// appear twice. The rest is for the schema of the body.
func (r *importRow) checkMembers() {
	seen := make(map[string]bool, len(r.Members))
	for _, member := range r.Members {
		switch {
		case seen[member.Name]:
			r.issue(member.Name, "duplicate_member", "appears more than once")
		case !r.kind.has(member.Name):
			r.issue(member.Name, "unknown_member", "is not a member of a "+r.kind.name)
		}
		seen[member.Name] = true
	}
	for _, name := range r.kind.required {
		if r.member(name) != nil {
			continue
		}
		message := "is missing"
		if name == "external_ref" {
			message = "is needed in a file: without it, a repeat would make the " + r.kind.name + " a second time"
		}
		r.issue(name, "required", message)
	}
}

// member is the value of a member; nil if it is absent or null.
func (r *importRow) member(name string) jsontext.Value {
	for _, member := range r.Members {
		if member.Name == name && member.Value.Kind() != 'n' {
			return member.Value
		}
	}
	return nil
}

// text is the value of a member that must be a string PostgreSQL can compare.
func (r *importRow) text(name string) string {
	value := r.member(name)
	if value == nil {
		return ""
	}
	text, ok := textOf(value)
	switch {
	case !ok:
		r.issue(name, "type", "must be a string")
	case text == "":
		r.issue(name, "too_short", "must not be empty")
	case strings.ContainsRune(text, 0):
		r.issue(name, "format", "must not contain the character U+0000")
	}
	return text
}

func textOf(value jsontext.Value) (string, bool) {
	if value.Kind() != '"' {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err == nil
}

// body is the request body that the row stands for: its own members of the kind, each
// once, and placeholders for the ids that are not looked up yet.
func (r *importRow) body() []byte {
	body := []byte{'{'}
	add := func(name string, value jsontext.Value) {
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(append(append(body, '"'), name...), '"', ':')
		body = append(body, value...)
	}
	for _, name := range r.kind.members {
		if value := r.member(name); value != nil {
			add(name, value)
		}
	}
	if r.kind.plan {
		placeholder := jsontext.Value(`"` + uuid.Nil.String() + `"`)
		add("campaign_id", placeholder)
		add("plan_id", placeholder)
	}
	return append(body, '}')
}
