package openapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
)

// maxDepth is how many objects and arrays may enclose one another.
const maxDepth = 32

// Members are compared by the parser below, so that it can name every duplicate; the
// library would stop at the first.
var allowDuplicates = jsontext.AllowDuplicateNames(true)

// A parser makes one pass over a body: it checks the grammar of JSON and what is asked
// beyond it, and builds the tree that the validator reads. Strings of the tree are
// slices of one copy of the body; numbers are [json.Number], bounded.
type parser struct {
	dec    jsontext.Decoder
	input  bytes.Buffer
	text   string
	issues []fault.Detail // with single members; the tree is complete all the same
	paths  int            // bytes of the paths of the issues
	nulls  bool           // the body is an object and a member of it is null
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// parsed is a body that is JSON.
type parsed struct {
	tree   any            // map[string]any, []any, string, json.Number, bool or nil
	issues []fault.Detail // what breaks the rules for every body, whatever its schema
	nulls  bool           // tree is an object and a member of it is null
}

// parse reads one JSON value that fills the whole of raw. The fault says where raw is not that.
func parse(raw []byte) (parsed, *fault.Error) {
	p := parsers.Get().(*parser)
	defer p.release()
	p.input = *bytes.NewBuffer(raw)
	p.text = string(raw)
	p.dec.Reset(&p.input, allowDuplicates)

	tree, err := p.value()
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return parsed{}, syntaxFault(raw, err)
	}
	return parsed{tree: tree, issues: p.issues, nulls: p.nulls}, nil
}

// release forgets the body, so that the pool keeps none alive.
func (p *parser) release() {
	p.input, p.text, p.issues, p.paths, p.nulls = bytes.Buffer{}, "", nil, 0, false
	p.dec.Reset(&p.input, allowDuplicates)
	parsers.Put(p)
}

func (p *parser) value() (any, error) {
	switch p.dec.PeekKind() {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		return p.string()
	case '0':
		token, err := p.token()
		return json.Number(money.Bound(token)), err
	}
	switch token, err := p.dec.ReadToken(); {
	case err != nil:
		return nil, err
	case token.Kind() == 't':
		return true, nil
	case token.Kind() == 'f':
		return false, nil
	default:
		return nil, nil
	}
}

func (p *parser) object() (any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	top := p.dec.StackDepth() == 1
	members := make(map[string]any, 8)
	for p.dec.PeekKind() != '}' {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		if _, taken := members[name]; taken {
			p.issue("duplicate_member", "appears more than once")
		}
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		members[name] = value
		p.nulls = p.nulls || top && value == nil
	}
	_, err := p.dec.ReadToken()
	return members, err
}

func (p *parser) array() (any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	items := []any{}
	for p.dec.PeekKind() != ']' {
		item, err := p.value()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := p.dec.ReadToken()
	return items, err
}

// enter reads the bracket that opens an object or array. It is what bounds the recursion.
func (p *parser) enter() error {
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	if p.dec.StackDepth() > maxDepth {
		return errTooDeep
	}
	return nil
}

// name reads the name of a member. Whatever else stands in its place is refused by its
// first token: reading it whole would recurse as deep as the sender likes.
func (p *parser) name() (string, error) {
	if p.dec.PeekKind() != '"' {
		_, err := p.dec.ReadToken()
		return "", cmp.Or(err, errNoName)
	}
	return p.string()
}

// string reads a string, be it a value or the name of a member.
func (p *parser) string() (string, error) {
	token, err := p.token()
	if err != nil {
		return "", err
	}
	if strings.IndexByte(token, '\\') < 0 {
		return token[1 : len(token)-1], nil
	}
	text, err := unescape([]byte(token))
	if err != nil {
		return "", err
	}
	if strings.IndexByte(text, 0) >= 0 {
		p.issue("format", "must not contain the character U+0000")
	}
	return text, nil
}

// token reads a string or number and returns its spelling, without an allocation.
func (p *parser) token() (string, error) {
	token, err := p.dec.ReadValue()
	if err != nil {
		return "", err
	}
	end := int(p.dec.InputOffset())
	return p.text[end-len(token) : end], nil
}

// end makes sure that nothing follows the value.
func (p *parser) end() error {
	switch _, err := p.dec.ReadToken(); {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	default:
		return errTrailing
	}
}

// issue records what is wrong with the string, name or value that was read last, as long
// as an answer could list it.
func (p *parser) issue(code, message string) {
	if len(p.issues) > 1 && p.paths > fault.MaxPaths {
		return
	}
	at := string(p.dec.StackPointer())
	p.paths += len(at)
	p.issues = append(p.issues, fault.Detail{Path: at, Code: code, Message: message})
}

var (
	errTooDeep  = fmt.Errorf("is nested more than %d levels deep", maxDepth)
	errTrailing = errors.New("has more data after the end of the JSON object")
	errNoName   = errors.New("has a member whose name is not a string")
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// syntaxFault says in words of our own why raw is not a JSON text.
func syntaxFault(raw []byte, err error) *fault.Error {
	message := "is not valid JSON"
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, errTooDeep), errors.Is(err, errTrailing), errors.Is(err, errNoName):
		message = err.Error()
	case len(bytes.TrimLeft(raw, " \t\r\n")) == 0:
		message = "is empty; send a JSON object"
	case bytes.HasPrefix(raw, byteOrderMark), bytes.HasPrefix(raw, []byte("\xff\xfe")), bytes.HasPrefix(raw, []byte("\xfe\xff")):
		message = "starts with a byte-order mark; send plain UTF-8"
	case !utf8.Valid(raw):
		message = fmt.Sprintf("is not valid UTF-8 at byte %d", invalidUTF8(raw))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		message = "ends before the JSON object is complete"
	case errors.As(err, &syntax):
		message = fmt.Sprintf("is not valid JSON at byte %d", syntax.ByteOffset)
	}
	return syntaxIssue(message)
}

// syntaxIssue is the answer to a body that is not a JSON text; message continues "the body".
func syntaxIssue(message string) *fault.Error {
	f := fault.InvalidBody(fault.Detail{Code: "syntax", Message: "the body " + message})
	f.Message = "the body " + message
	return f
}

// invalidUTF8 is the offset of the first byte of raw that is not part of a character.
func invalidUTF8(raw []byte) int {
	offset := 0
	for offset < len(raw) {
		r, size := utf8.DecodeRune(raw[offset:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		offset += size
	}
	return offset
}

// unescape returns the text of a JSON string token that may contain escapes.
func unescape(token []byte) (string, error) {
	text, err := jsontext.AppendUnquote(nil, token)
	return string(text), err
}
