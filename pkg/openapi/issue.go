package openapi

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"partilha.dev/pkg/fault"
)

// issues translates what the validator found into details in our own words. There is at
// least one unless err is nil.
func issues(err error) []fault.Detail {
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		if details := leaves(invalid); len(details) > 0 {
			return details
		}
	}
	return one("", "not_allowed", "is not allowed")
}

// sorted orders details by path and drops repetitions, so that equal bodies get equal answers.
func sorted(details []fault.Detail) []fault.Detail {
	slices.SortFunc(details, func(a, b fault.Detail) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(details)
}

// leaves returns the details of one finding: its own, or those of its causes.
func leaves(e *jsonschema.ValidationError) []fault.Detail {
	at := pointer("", e.InstanceLocation...)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return union(at, len(e.InstanceLocation), e.Causes)
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return one(at, "not_allowed", "fits more than one of the forms that are accepted; give only what one of them has")
		}
		return union(at, len(e.InstanceLocation), e.Causes)
	case *kind.Required:
		return missing(at, k.Missing)
	case *kind.DependentRequired:
		return missing(at, k.Missing)
	case *kind.AdditionalProperties:
		if len(k.Properties) > fault.MaxDetails {
			return one(at, "unknown_member", fmt.Sprintf("has more than %d members that are not known", fault.MaxDetails))
		}
		var details []fault.Detail
		for _, name := range k.Properties {
			details = append(details, fault.Detail{Path: pointer(at, name), Code: "unknown_member", Message: "is not a known member"})
		}
		return details
	case *kind.UniqueItems:
		return one(pointer(at, strconv.Itoa(k.Duplicates[1])), "not_allowed",
			fmt.Sprintf("repeats item %d", k.Duplicates[0]))
	}
	if len(e.Causes) > 0 {
		var details []fault.Detail
		for _, cause := range e.Causes {
			details = append(details, leaves(cause)...)
		}
		return details
	}
	code, message := describe(e.ErrorKind)
	return one(at, code, message)
}

func one(at, code, message string) []fault.Detail {
	return []fault.Detail{{Path: at, Code: code, Message: message}}
}

func missing(at string, names []string) []fault.Detail {
	var details []fault.Detail
	for _, name := range names {
		details = append(details, fault.Detail{Path: pointer(at, name), Code: "required", Message: "is required"})
	}
	return details
}

// union reports a value that fits none of several forms. Forms of another type than the
// value's say nothing useful, unless there is no other; of the rest, the form that comes
// nearest is reported. Where each lacks members only, one of them will do. The depth is
// that of the value, in names and indexes.
func union(at string, depth int, forms []*jsonschema.ValidationError) []fault.Detail {
	var best []fault.Detail
	var types, lacking []string
	onlyLacking := true
	for _, form := range forms {
		if wanted := wantedTypes(form, depth); wanted != nil {
			types = append(types, wanted...)
			continue
		}
		details := leaves(form)
		for _, detail := range details {
			onlyLacking = onlyLacking && detail.Code == "required"
			lacking = append(lacking, detail.Path)
		}
		if best == nil || len(details) < len(best) {
			best = details
		}
	}
	switch {
	case best == nil && types == nil:
		return one(at, "not_allowed", "is not allowed")
	case best == nil:
		return one(at, "type", typeMessage(types))
	case !onlyLacking || len(lacking) == 1:
		return best
	}
	return oneOfMembers(lacking)
}

// oneOfMembers says that any one of these members would do.
func oneOfMembers(paths []string) []fault.Detail {
	slices.Sort(paths)
	paths = slices.Compact(paths)
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = path[strings.LastIndexByte(path, '/')+1:]
	}
	var details []fault.Detail
	for _, path := range paths {
		details = append(details, fault.Detail{
			Path: path, Code: "required", Message: "one of these is required: " + strings.Join(names, ", "),
		})
	}
	return details
}

// wantedTypes returns the types that a form wants of the value as a whole, if those are
// why the value does not fit it.
func wantedTypes(form *jsonschema.ValidationError, depth int) []string {
	for len(form.InstanceLocation) == depth {
		switch k := form.ErrorKind.(type) {
		case *kind.Type:
			return k.Want
		case *kind.Const:
			if k.Want == nil {
				return []string{"null"}
			}
			return nil
		case *kind.Reference, *kind.AllOf, *kind.Group:
			if len(form.Causes) != 1 {
				return nil
			}
			form = form.Causes[0]
		default:
			return nil
		}
	}
	return nil
}

// describe gives code and message of a finding that concerns one value.
func describe(k jsonschema.ErrorKind) (code, message string) {
	switch k := k.(type) {
	case *kind.Type:
		return "type", typeMessage(k.Want)
	case *kind.Format:
		return "format", cmp.Or(knownFormats[k.Want], "has the wrong format")
	case *kind.Pattern:
		return "format", "must have the form " + k.Want
	case *kind.MinLength:
		if k.Want == 1 {
			return "too_short", "must not be empty"
		}
		return "too_short", "at least " + count(k.Want, "character")
	case *kind.MaxLength:
		return "too_long", "at most " + count(k.Want, "character")
	case *kind.MinItems:
		return "too_short", "at least " + count(k.Want, "item")
	case *kind.MaxItems:
		return "too_long", "at most " + count(k.Want, "item")
	case *kind.MinProperties:
		return "too_short", "at least " + count(k.Want, "member")
	case *kind.MaxProperties:
		return "too_long", "at most " + count(k.Want, "member")
	case *kind.Minimum:
		return "too_small", "at least " + decimal(k.Want)
	case *kind.Maximum:
		return "too_large", "at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "too_small", "more than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "too_large", "less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return multipleIssue(k.Want)
	case *kind.Enum:
		return "not_allowed", "one of: " + list(k.Want)
	case *kind.Const:
		return "not_allowed", "must be " + list([]any{k.Want})
	default:
		return "not_allowed", "is not allowed"
	}
}

// multipleIssue speaks of decimals where the step is 1, 0.1, 0.01 and so on.
func multipleIssue(step *big.Rat) (code, message string) {
	decimals, exact := step.FloatPrec()
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	switch {
	case !exact || step.Num().Cmp(big.NewInt(1)) != 0 || step.Denom().Cmp(unit) != 0:
		return "not_allowed", "must be a multiple of " + decimal(step)
	case decimals == 0:
		return "too_many_decimals", "must be a whole number"
	default:
		return "too_many_decimals", "at most " + count(decimals, "decimal")
	}
}

var articles = map[string]string{
	"array": "an array", "boolean": "true or false", "integer": "an integer",
	"null": "null", "number": "a number", "object": "an object", "string": "a string",
}

func typeMessage(types []string) string {
	var names []string
	for _, name := range types {
		if name = articles[name]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return "must be " + strings.Join(names, " or ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// decimal writes n exactly, without needless zeros.
func decimal(n *big.Rat) string {
	decimals, exact := n.FloatPrec()
	if !exact {
		return n.RatString()
	}
	return n.FloatString(decimals)
}

// list writes values as people read them: strings without quotes.
func list(values []any) string {
	var names []string
	for _, value := range values {
		switch value := value.(type) {
		case nil:
			names = append(names, "null")
		case map[string]any, []any:
			names = append(names, "a fixed value")
		default:
			names = append(names, fmt.Sprint(value))
		}
	}
	return strings.Join(names, ", ")
}
