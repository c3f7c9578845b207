package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
)

// shape is what a schema says of one value, with all that it refers to.
type shape struct {
	types           map[string]bool
	enum            []any
	format, pattern string
	unique, closed  bool
	members         map[string]any // schemas
	required        []string       // in every form of the value
	items           any            // schema
	minLength, maxLength, minItems, maxItems,
	minProperties *int
	minimum, maximum, above, step *big.Rat
}

// silent are keywords that say nothing about which values are right.
var silent = []string{"description", "default", "example", "examples", "title", "deprecated", "$ref"}

// shape reads a schema. It fails on a keyword of which no wrong values are known.
func (d *document) shape(schema any) (*shape, error) {
	s := &shape{types: map[string]bool{}, members: map[string]any{}}
	return s, d.add(s, schema, true)
}

func (d *document) add(s *shape, schema any, always bool) error {
	_, node := d.follow("", schema)
	for _, keyword := range slices.Sorted(maps.Keys(node)) {
		value := node[keyword]
		switch keyword {
		case "type":
			if name, single := value.(string); single {
				s.types[name] = true
				continue
			}
			for _, name := range value.([]any) {
				s.types[name.(string)] = true
			}
		case "enum":
			s.enum = value.([]any)
		case "const":
			s.enum = []any{value}
		case "format":
			s.format = value.(string)
		case "pattern":
			s.pattern = value.(string)
		case "uniqueItems":
			s.unique = value.(bool)
		case "additionalProperties":
			s.closed = value == false
		case "items":
			s.items = value
		case "minLength":
			s.minLength = count(value)
		case "maxLength":
			s.maxLength = count(value)
		case "minItems":
			s.minItems = count(value)
		case "maxItems":
			s.maxItems = count(value)
		case "minProperties":
			s.minProperties = count(value)
		case "minimum":
			s.minimum = number(value)
		case "maximum":
			s.maximum = number(value)
		case "exclusiveMinimum":
			s.above = number(value)
		case "multipleOf":
			s.step = number(value)
		case "properties":
			maps.Copy(s.members, value.(map[string]any))
		case "required":
			for _, name := range value.([]any) {
				if always {
					s.required = append(s.required, name.(string))
				}
			}
		case "allOf", "anyOf", "oneOf":
			for _, part := range value.([]any) {
				if err := d.add(s, part, always && keyword == "allOf"); err != nil {
					return err
				}
			}
		default:
			if !slices.Contains(silent, keyword) {
				return fmt.Errorf("no wrong values are known for the keyword %s", keyword)
			}
		}
	}
	return nil
}

// kinds is how many types the value may have beside null.
func (s *shape) kinds() int {
	n := len(s.types)
	if s.types["null"] {
		n--
	}
	if s.types["integer"] && s.types["number"] {
		n--
	}
	return n
}

func count(value any) *int {
	n, err := strconv.Atoi(string(value.(json.Number)))
	if err != nil {
		panic(err) // such a document does not load
	}
	return &n
}

func number(value any) *big.Rat {
	n, ok := new(big.Rat).SetString(string(value.(json.Number)))
	if !ok {
		panic(value) // such a document does not load
	}
	return n
}

// plain writes n without an exponent.
func plain(n *big.Rat) string {
	decimals, _ := n.FloatPrec()
	return n.FloatString(decimals)
}

// right is some value of the shape, for a member that the example leaves out.
func (d *document) right(s *shape) (any, error) {
	switch {
	case len(s.enum) > 0:
		return treeOf(s.enum[0]), nil
	case s.types["string"] && s.format != "":
		value, known := rightFormats[s.format]
		if !known {
			return nil, fmt.Errorf("no right value is known for the format %s", s.format)
		}
		return text(value), nil
	case s.types["string"]:
		return text("text"), nil
	case s.types["number"] || s.types["integer"]:
		if s.minimum != nil {
			return token(plain(s.minimum)), nil
		}
		return token("1"), nil
	case s.types["boolean"]:
		return token("true"), nil
	case s.types["array"]:
		inner, err := d.shape(s.items)
		if err != nil {
			return nil, err
		}
		item, err := d.right(inner)
		return []any{item}, err
	case s.types["object"]:
		members := object{}
		for _, name := range s.required {
			inner, err := d.shape(s.members[name])
			if err != nil {
				return nil, err
			}
			value, err := d.right(inner)
			if err != nil {
				return nil, err
			}
			members = append(members, member{quoted(name), value})
		}
		return members, nil
	default:
		return nil, fmt.Errorf("the schema names no type")
	}
}

var rightFormats = map[string]string{
	"uuid": "01890000-0000-7000-8000-000000000000", "date-time": "2026-07-14T13:00:00Z", "date": "2026-07-14",
	"email": "ana@example.com", "uri": "https://example.com/",
}
