package rowfile

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// members are the members of the one JSON object that text is, those that appear twice
// included; nil where it is no such object.
func members(text []byte) []Member {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return nil
	}
	found := []Member{}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		text := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		found = append(found, Member{text, value.Clone()})
	}
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '}' {
		return nil
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil
	}
	return found
}
