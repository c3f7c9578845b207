// Command receiver is a container of the tests: a customer's server that keeps every
// webhook for whoever asks, and, for the tests of the edge, a service that answers
// slowly and bit by bit.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// heard is one webhook as it came.
type heard struct {
	Signature string `json:"signature"`
	Body      string `json:"body"`
}

// pause is between two events of the stream, and poll is how long a long poll takes.
const (
	pause = 2 * time.Second
	poll  = 31 * time.Second
)

func main() {
	var mu sync.Mutex
	all := []heard{}
	http.HandleFunc("POST /hook", func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, heard{r.Header.Get("X-Service-Signature"), string(body)})
	})
	http.HandleFunc("GET /heard", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		json.NewEncoder(w).Encode(all)
	})
	http.HandleFunc("GET /api/v1/goals/{id}/progress/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 2 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			http.NewResponseController(w).Flush()
			time.Sleep(pause)
		}
	})
	http.HandleFunc("GET /api/v1/events", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(poll):
		case <-r.Context().Done():
		}
		io.WriteString(w, `{"data":[]}`)
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe(":8080", nil))
	os.Exit(1)
}
