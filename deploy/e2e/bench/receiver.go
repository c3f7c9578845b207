package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// receiver is a tenant's server that hears commission.available. It believes a
// webhook only if the signature over the raw body is right, and remembers when it
// first heard of each sale. Like the load, it is a bare HTTP/1.1 server, so that it
// takes little from what is measured.
type receiver struct {
	listener net.Listener

	mu       sync.Mutex
	secret   []byte
	heard    map[uuid.UUID]time.Time // by sale
	repeated int64                   // webhooks of a sale that was heard of before
	refused  int64                   // webhooks that were not believed
	last     time.Time               // when the newest sale was heard of
}

func newReceiver() (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r := &receiver{listener: listener, heard: map[uuid.UUID]time.Time{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			go r.serve(conn)
		}
	}()
	return r, nil
}

func (r *receiver) url() string { return "http://" + r.listener.Addr().String() + "/webhook" }

// trust is told the secret before the first webhook can come.
func (r *receiver) trust(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = []byte(secret)
}

func (r *receiver) close() { r.listener.Close() }

// standing is what a receiver has seen so far.
type standing struct {
	sales, repeated, refused int64
	last                     time.Time
}

func (r *receiver) standing() standing {
	r.mu.Lock()
	defer r.mu.Unlock()
	return standing{sales: int64(len(r.heard)), repeated: r.repeated, refused: r.refused, last: r.last}
}

// when tells at what moment the sale's webhook was there.
func (r *receiver) when(sale uuid.UUID) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.heard[sale]
	return at, ok
}

// serve answers one connection until its other end closes it.
func (r *receiver) serve(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 4096)
	r.mu.Lock()
	mac := hmac.New(sha256.New, r.secret)
	r.mu.Unlock()
	var body []byte
	for {
		head, err := readRequestHead(reader)
		if err != nil {
			return
		}
		body = append(body[:0], make([]byte, head.length)...)
		if _, err := io.ReadFull(reader, body); err != nil {
			return
		}
		answer := "HTTP/1.1 204 No Content\r\n\r\n"
		if !r.hear(head, body, mac, time.Now()) {
			answer = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

// requestHead is what matters of a webhook's head.
type requestHead struct {
	length           int
	event, signature string
}

// maxWebhook is far more than any webhook has.
const maxWebhook = 1 << 20

func readRequestHead(reader *bufio.Reader) (head requestHead, err error) {
	for first := true; ; first = false {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return head, err
		}
		text := bytes.TrimRight(line, "\r\n")
		switch {
		case first && !bytes.HasPrefix(text, []byte("POST ")):
			return head, errors.New("a webhook is a POST")
		case first:
			continue
		case len(text) == 0:
			if head.length <= 0 || head.length > maxWebhook {
				return head, errors.New("a webhook has a body")
			}
			return head, nil
		}
		name, value, _ := strings.Cut(string(text), ": ")
		switch name {
		case "Content-Length":
			if head.length, err = strconv.Atoi(value); err != nil {
				return head, err
			}
		case "X-Service-Event":
			head.event = value
		case "X-Service-Signature":
			head.signature = value
		}
	}
}

var saleMember = []byte(`"source_sale_id":"`)

// hear judges a webhook and remembers it, and tells whether it is believed.
func (r *receiver) hear(head requestHead, body []byte, mac hash.Hash, at time.Time) bool {
	sale, err := believe(head, body, mac)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.refused++
		return false
	}
	if _, known := r.heard[sale]; known {
		r.repeated++
		return true
	}
	r.heard[sale], r.last = at, at
	return true
}

// believe checks the signature and finds the sale. One sale has one commission, and
// one commission one event, so that the sale's id tells webhooks apart.
func believe(head requestHead, body []byte, mac hash.Hash) (sale uuid.UUID, err error) {
	mac.Reset()
	mac.Write(body)
	var want [len("sha256=") + 2*sha256.Size]byte
	hex.Encode(want[copy(want[:], "sha256="):], mac.Sum(nil))
	if !hmac.Equal(want[:], []byte(head.signature)) {
		return sale, errors.New("the signature is wrong")
	}
	at := bytes.Index(body, saleMember) + len(saleMember)
	if head.event != "commission.available" || at < len(saleMember) || len(body) < at+36 {
		return sale, errors.New("the event is not the commission of a sale")
	}
	return uuid.ParseBytes(body[at : at+36])
}
