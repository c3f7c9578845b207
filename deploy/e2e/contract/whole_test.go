package contract

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// wholes returns the bodies of an operation that are no strict JSON object.
func wholes(right object) []hostile {
	valid := written(right)
	open := valid[:len(valid)-1]
	nested := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	var bodies []hostile
	for code, named := range map[string]map[string]string{
		"type": {"null": "null", "an empty array": "[]", "an array of the object": "[" + valid + "]", "a string": `"x"`, "a number": "1", "a boolean": "true", "the object as a text": quoted(valid)},
		"syntax": {
			"empty": "", "white space": " \r\n\t", "truncated": open, "half of it": valid[:len(valid)/2], "one brace": "{", "a closing brace": "}",
			"two objects": valid + valid, "two objects on two lines": valid + "\n{}", "something after it": valid + "x", "a comma after it": valid + ",", "a zero byte after it": valid + "\x00",
			"a trailing comma": open + ",}", "a leading comma": "{," + valid[1:], "a comment": open + "/* paid */}", "a comment line": "// paid\n" + valid,
			"single quotes": strings.ReplaceAll(valid, `"`, "'"), "a byte-order mark": "\uFEFF" + valid, "a byte-order mark alone": "\uFEFF",
			"UTF-16": wide(valid, 1), "UTF-16 of the other order": wide(valid, 0), "a form": "name=x&value=1", "XML": "<sale/>", "invalid UTF-8 before it": "\xff" + valid,
			"a name without quotes": "{name:1}", "a name that is a number": "{1:1}", "a name alone": open + `,"name"}`, "no colon": open + `,"name" 1}`,
			"33 levels": open + `,"unknown":` + nested(32) + "}", "10,000 levels": open + `,"unknown":` + nested(10_000) + "}",
			"10,000 levels that never end": `{"unknown":` + strings.Repeat("[", 10_000), "10,000 objects that never end": strings.Repeat(`{"a":`, 10_000),
			"10,000 levels in place of a name": strings.Repeat("{[", 5_000), "invalid UTF-8 in a name": open + ",\"a\xffb\":1}", "half a surrogate pair in a name": open + `,"\ud800":1}`,
		},
	} {
		for name, body := range named {
			bodies = append(bodies, hostile{name, body, nil, code})
		}
	}
	slices.SortFunc(bodies, func(a, b hostile) int { return strings.Compare(a.name, b.name) })
	return bodies
}

// wide is text in UTF-16 with a byte-order mark; high is where the higher byte stands.
func wide(text string, high int) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune("\uFEFF" + text)) {
		pair := [2]byte{byte(unit), byte(unit)}
		pair[high] = byte(unit >> 8)
		b = append(b, pair[:]...)
	}
	return string(b)
}

// transport is a call that is refused, or not, for how its body is sent.
type transport struct {
	name    string
	request request
	status  int // 0: it must not be a 413 or 415
	code    string
}

// transports returns calls with the body in every wrong wrapping.
func transports(base request, most int) []transport {
	wrapped := func(headers ...string) request {
		r := base
		r.headers = headers
		return r
	}
	padded := func(size int, unmeasured bool) request {
		r := base
		r.body += strings.Repeat(" ", size-len(r.body))
		r.unmeasured = unmeasured
		return r
	}
	calls := []transport{
		{"a byte too many", padded(most+1, false), 413, "payload_too_large"},
		{"a byte too many without a Content-Length", padded(most+1, true), 413, "payload_too_large"},
		{"as many bytes as may be", padded(most, false), 0, ""},
		{"as many bytes as may be without a Content-Length", padded(most, true), 0, ""},
		{"two types", wrapped("Content-Type", "application/json", "Content-Type", "application/json"), 415, "unsupported_media_type"},
	}
	for _, media := range []string{
		"text/xml", "text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json-patch+json", "application/jsonp",
		"application", "application/", "*/*", "application/json, text/plain", ";charset=utf-8",
	} {
		calls = append(calls, transport{"the type " + media, wrapped("Content-Type", media), 415, "unsupported_media_type"})
	}
	for _, coding := range []string{"gzip", "deflate", "br", "identity", "gzip, gzip", "x"} {
		calls = append(calls, transport{"the coding " + coding, wrapped("Content-Type", "application/json", "Content-Encoding", coding), 415, "unsupported_media_type"})
	}
	for _, media := range []string{"application/json", "application/json;charset=utf-8", "application/json; charset=UTF-8; v=1", "Application/JSON"} {
		calls = append(calls, transport{"the type " + media, wrapped("Content-Type", media), 0, ""})
	}
	return calls
}

func (t transport) String() string { return fmt.Sprintf("%s with %s", t.request.address, t.name) }
