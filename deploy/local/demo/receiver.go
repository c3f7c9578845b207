package demo

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

// Path is where the receiver listens.
const Path = "/demo/webhook"

// Receiver is a tenant's server as a customer would write it: it knows the endpoint's
// secret and nothing else of Partilha. It believes a webhook only if the signature
// over the raw body is right.
type Receiver struct {
	mu     sync.Mutex
	secret string
	heard  chan Webhook
}

// Webhook is one call that the receiver got.
type Webhook struct {
	Event    string
	EventID  string
	SaleID   string // of commission.available and sale.recorded
	Verified bool
	At       time.Time
}

// NewReceiver makes a receiver that refuses everything until it is told its secret.
func NewReceiver() *Receiver { return &Receiver{heard: make(chan Webhook, 256)} }

func (r *Receiver) trust(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

// ServeHTTP checks the signature before it believes anything: 204, or 401.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, 1<<20))
	if err != nil || request.URL.Path != Path || request.Method != http.MethodPost {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	secret := r.secret
	r.mu.Unlock()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	want := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	verified := secret != "" && hmac.Equal([]byte(want), []byte(request.Header.Get("X-Service-Signature")))
	var envelope struct {
		Event   string `json:"event"`
		EventID string `json:"event_id"`
		Data    struct {
			SourceSaleID string `json:"source_sale_id"`
			SaleID       string `json:"sale_id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &envelope) != nil || !verified {
		w.WriteHeader(http.StatusUnauthorized)
	} else {
		w.WriteHeader(http.StatusNoContent)
	}
	select {
	case r.heard <- Webhook{envelope.Event, envelope.EventID, envelope.Data.SourceSaleID + envelope.Data.SaleID, verified, at}:
	default: // nobody looks any more
	}
}
