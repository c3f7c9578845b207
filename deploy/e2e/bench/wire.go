package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// wire is one keep-alive connection that reports sales. It is as cheap as can be,
// since it takes its processor time from what it measures: the request is written
// once, only the digits of external_ref change, and of an answer it looks at the
// status, the length and the sale's id.
type wire struct {
	conn    net.Conn
	request []byte
	named   []byte // the part of request that is external_ref
	digits  []byte // the part of that which counts
	buffer  []byte // grows to the longest answer
}

const refDigits = "000000000000"

// dialShop opens the connection of that number. Each number has external_refs of its
// own.
func dialShop(s *shop, number int) (*wire, error) {
	conn, err := net.DialTimeout("tcp", s.address, 5*time.Second)
	if err != nil {
		return nil, fmt.Errorf("connect to the service: %w", err)
	}
	w := newWire(s, number)
	w.conn = conn
	return w, nil
}

func newWire(s *shop, number int) *wire {
	ref := fmt.Sprintf("bench-%03d-%s", number, refDigits)
	w := &wire{request: requestOf(s, "/api/v1/sales", []byte(saleBody(s, ref))), buffer: make([]byte, 4096)}
	w.digits = digitsOf(w.request, ref)
	at := bytes.Index(w.request, []byte(ref))
	w.named = w.request[at : at+len(ref)]
	return w
}

// ref is the external_ref of the last sale.
func (w *wire) ref() string { return string(w.named) }

func saleBody(s *shop, ref string) string {
	return fmt.Sprintf(`{"referral_code":%q,"campaign_id":%q,"plan_id":%q,"amount_brl":100.50,"external_ref":%q,"customer_ref":"cliente@example.com"}`,
		referralCode, s.CampaignID, s.PlanID, ref)
}

func requestOf(s *shop, path string, body []byte) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, s.address, s.key, len(body), body)
}

// digitsOf is the part of a request that counts: the last digits of the reference.
func digitsOf(request []byte, ref string) []byte {
	at := bytes.Index(request, []byte(ref)) + len(ref) - len(refDigits)
	return request[at : at+len(refDigits)]
}

// count adds one to the digits, in place.
func (w *wire) count() {
	for i := len(w.digits) - 1; i >= 0; i-- {
		if w.digits[i] < '9' {
			w.digits[i]++
			return
		}
		w.digits[i] = '0'
	}
}

// post reports a new sale and returns its id. Any status but 201 is an error.
func (w *wire) post() (sale uuid.UUID, err error) {
	w.count()
	if _, err := w.conn.Write(w.request); err != nil {
		return sale, fmt.Errorf("report a sale: %w", err)
	}
	status, body, err := w.read()
	if err != nil {
		return sale, fmt.Errorf("read the answer to a sale: %w", err)
	}
	if status != 201 {
		return sale, fmt.Errorf("a sale was answered %d: %s", status, body)
	}
	return saleIDOf(body)
}

const saleIDMember = `{"sale_id":"`

// saleIDOf reads the id that an answer begins with.
func saleIDOf(body []byte) (sale uuid.UUID, err error) {
	text, ok := bytes.CutPrefix(body, []byte(saleIDMember))
	if !ok || len(text) < 36 {
		return sale, fmt.Errorf("an answer does not begin with the sale's id: %s", body)
	}
	return uuid.ParseBytes(text[:36])
}

var (
	endOfHead     = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
	errNoLength   = errors.New("the answer has no Content-Length")
)

// read reads one whole answer. The body is good until the next call.
func (w *wire) read() (status int, body []byte, err error) {
	filled, head := 0, -1
	for head < 0 {
		if filled, err = w.fill(filled); err != nil {
			return 0, nil, err
		}
		head = bytes.Index(w.buffer[:filled], endOfHead)
	}
	status, length, err := readHead(w.buffer[:head])
	if err != nil {
		return 0, nil, err
	}
	start := head + len(endOfHead)
	for filled < start+length {
		if filled, err = w.fill(filled); err != nil {
			return 0, nil, err
		}
	}
	return status, w.buffer[start : start+length], nil
}

// fill reads once behind what the buffer holds.
func (w *wire) fill(filled int) (int, error) {
	if filled == len(w.buffer) {
		w.buffer = append(w.buffer, make([]byte, len(w.buffer))...)
	}
	n, err := w.conn.Read(w.buffer[filled:])
	return filled + n, err
}

// readHead finds the status and the length of the body.
func readHead(head []byte) (status, length int, err error) {
	const prefix = "HTTP/1.1 "
	if len(head) < len(prefix)+3 || string(head[:len(prefix)]) != prefix {
		return 0, 0, fmt.Errorf("the answer is not HTTP: %q", head)
	}
	if status, err = strconv.Atoi(string(head[len(prefix) : len(prefix)+3])); err != nil {
		return 0, 0, fmt.Errorf("the answer has no status: %q", head)
	}
	at := bytes.Index(head, contentLength)
	if at < 0 {
		return 0, 0, errNoLength
	}
	digits := head[at+len(contentLength):]
	if end := bytes.IndexByte(digits, '\r'); end >= 0 {
		digits = digits[:end]
	}
	if length, err = strconv.Atoi(string(digits)); err != nil || length < 0 {
		return 0, 0, errNoLength
	}
	return status, length, nil
}
