package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// maxSourceDepth bounds the source's nesting, and thereby an alias that contains itself.
const maxSourceDepth = 100

// readYAML turns one YAML document into a tree that JSON can express.
//
// Numbers keep their spelling and thus their exact value. Refused are: a second
// document, a duplicate key, a merge key, binary data, infinities, and numbers in a
// spelling that JSON lacks.
func readYAML(source []byte) (*node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(source))
	var root yaml.Node
	if err := dec.Decode(&root); err != nil {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("read YAML: there is more than one document")
	}
	if root.Kind != yaml.DocumentNode || len(root.Content) != 1 {
		return nil, errors.New("read YAML: the document is empty")
	}
	tree, err := convert(root.Content[0], 0)
	if err != nil {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	return tree, nil
}

func convert(y *yaml.Node, depth int) (*node, error) {
	if depth > maxSourceDepth {
		return nil, fmt.Errorf("line %d: nested more than %d levels deep", y.Line, maxSourceDepth)
	}
	switch y.Kind {
	case yaml.AliasNode:
		return convert(y.Alias, depth+1)
	case yaml.MappingNode:
		return convertMapping(y, depth)
	case yaml.SequenceNode:
		n := &node{kind: '[', items: make([]*node, 0, len(y.Content))}
		for _, content := range y.Content {
			item, err := convert(content, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		return n, nil
	default:
		return convertScalar(y)
	}
}

func convertMapping(y *yaml.Node, depth int) (*node, error) {
	n := &node{kind: '{', members: make([]member, 0, len(y.Content)/2)}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return nil, fmt.Errorf("line %d: a key must be plain text", key.Line)
		}
		if n.get(key.Value) != nil {
			return nil, fmt.Errorf("line %d: key %q appears twice", key.Line, key.Value)
		}
		value, err := convert(y.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		n.members = append(n.members, member{key.Value, value})
	}
	return n, nil
}

func convertScalar(y *yaml.Node) (*node, error) {
	switch y.ShortTag() {
	case "!!str", "!!timestamp":
		return text(y.Value), nil
	case "!!null":
		return &node{kind: 'n', text: "null"}, nil
	case "!!bool":
		var b bool
		if err := y.Decode(&b); err != nil {
			return nil, fmt.Errorf("line %d: %q is not a boolean", y.Line, y.Value)
		}
		token := strconv.FormatBool(b)
		return &node{kind: jsontext.Kind(token[0]), text: token}, nil
	case "!!int", "!!float":
		if !jsontext.Value(y.Value).IsValid() {
			return nil, fmt.Errorf("line %d: write the number %q as JSON does", y.Line, y.Value)
		}
		return &node{kind: '0', text: y.Value}, nil
	default:
		return nil, fmt.Errorf("line %d: a value of type %s cannot be JSON", y.Line, y.ShortTag())
	}
}
