package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/go-json-experiment/json"

	"partilha.dev/pkg/event"
	"partilha.dev/pkg/webhook"
)

// A receiver verifies the raw body, remembers the event by its id, and only then looks at
// what it tells.
func Example() {
	seen := map[event.ID]bool{}
	receive := func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			return
		}
		if err := webhook.Verify(secret, raw, r.Header); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		told, err := webhook.Parse(raw)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if seen[told.ID] {
			return
		}
		seen[told.ID] = true
		if told.Name == event.NameCommissionAvailable {
			var commission event.CommissionAvailable
			if err := json.Unmarshal(told.Data, &commission); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			fmt.Println("a commission of", commission.Amount)
		}
	}

	genuine := signed(signature, "")
	for _, header := range []http.Header{genuine, genuine, signed(another, "")} {
		request := httptest.NewRequest("POST", "/partilha", strings.NewReader(body))
		request.Header = header
		answer := httptest.NewRecorder()
		receive(answer, request)
		fmt.Println(answer.Code)
	}
	// Output:
	// a commission of 32.42
	// 200
	// 200
	// 401
}

func ExampleVerify() {
	header := http.Header{webhook.SignatureHeader: {signature}}
	fmt.Println(webhook.Verify(secret, []byte(body), header))
	fmt.Println(webhook.Verify(secret, []byte(body+"\n"), header))
	// Output:
	// <nil>
	// verify webhook: the signature is not that of this body and secret
}

func ExampleParse() {
	told, err := webhook.Parse([]byte(body))
	fmt.Println(told.Name, told.ID, err)
	// Output:
	// commission.available evt_0123456789abcdef0123456789abcdef <nil>
}
