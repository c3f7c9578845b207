package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"partilha.dev/pkg/client"
	"partilha.dev/pkg/fault"
)

func TestARefusalIsToldWhole(t *testing.T) {
	const body = `{"code":"invalid_body","message":"2 fields are not valid","details":[` +
		`{"path":"/amount_brl","code":"too_many_decimals","message":"at most 2 decimals"},{"path":"/plan_id","code":"required","message":"is missing"}],` +
		`"request_id":"req-7","new_member":1}`
	answer := func(w http.ResponseWriter, _ *http.Request, _ int) { say(w, 400, body) }
	inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
		_, err := c.RecordSale(t.Context(), report("order-1"))
		var refused *client.Error
		if !errors.As(err, &refused) {
			t.Fatalf("the error is %v", err)
		}
		if refused.Status != 400 || refused.Code != "invalid_body" || refused.Message != "2 fields are not valid" || refused.RequestID != "req-7" ||
			len(refused.Details) != 2 || refused.Details[0] != (fault.Detail{Path: "/amount_brl", Code: "too_many_decimals", Message: "at most 2 decimals"}) {
			t.Errorf("it is read as %+v", refused)
		}
		want := "record sale: 400 invalid_body: 2 fields are not valid: /amount_brl at most 2 decimals; /plan_id is missing (request req-7)"
		if err.Error() != want {
			t.Errorf("it says %s\nwant %s", err, want)
		}
	})
}

func TestARefusalByAProxyIsToldByItsStatus(t *testing.T) {
	for name, body := range map[string]string{
		"a page":              "<html>Bad Gateway</html>",
		"nothing":             "",
		"JSON of another":     `{"error":"upstream"}`,
		"a list":              `[1]`,
		"too much":            `{"code":"x","message":"` + strings.Repeat("x", 2<<20) + `"}`,
		"an array in details": `{"code":"x","message":"y","details":[[]]}`,
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(w http.ResponseWriter, _ *http.Request, _ int) {
				w.Header().Set("X-Request-Id", "req-9")
				say(w, 502, body)
			}
			inBubble(t, client.Options{Attempts: 1}, answer, func(t *testing.T, s *server, c *client.Client) {
				_, err := c.GetSale(t.Context(), saleID)
				if err == nil || err.Error() != "read sale: 502: Bad Gateway (request req-9)" {
					t.Errorf("it says %.200v", err)
				}
			})
		})
	}
}

func TestAnAnswerWithoutEndIsNotRead(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request, _ int) {
		w.WriteHeader(200)
		blank := strings.Repeat(" ", 64<<10)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, blank); err != nil {
				return
			}
		}
	}
	inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
		if _, err := c.GetSale(t.Context(), saleID); err == nil || !strings.Contains(err.Error(), "too long") {
			t.Errorf("it says %v", err)
		}
		if n := len(s.requests()); n != 1 {
			t.Errorf("it is asked for %d times", n)
		}
	})
}

func TestAnAnswerThatCannotBeReadIsAnError(t *testing.T) {
	for name, body := range map[string]string{
		"nothing": "", "a page": "<html>", "another type": `{"sale_id":7}`, "text for money": `{"commission_amount_brl":"25.00"}`,
		"a member twice": `{"idempotent":true,"idempotent":false}`,
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(w http.ResponseWriter, _ *http.Request, _ int) { say(w, 200, body) }
			inBubble(t, client.Options{}, answer, func(t *testing.T, s *server, c *client.Client) {
				if sold, err := c.RecordSale(t.Context(), report("order-1")); err == nil {
					t.Errorf("it is read as %+v", sold)
				}
			})
		})
	}
}

// TestARedirectIsNotFollowed would send the key to another server, or the report to
// another address.
func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s is followed with %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{elsewhere.URL, "/moved"} {
			here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/moved" {
					t.Errorf("%d to the same server is followed", status)
				}
				http.Redirect(w, r, to, status)
			}))
			c, err := client.New(here.URL, apiKey, client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var refused *client.Error
			if _, err := c.RecordSale(t.Context(), report("order-1")); !errors.As(err, &refused) || refused.Status != status {
				t.Errorf("a report that is answered %d returns %v", status, err)
			}
			if _, err := c.GetSale(t.Context(), saleID); !errors.As(err, &refused) || refused.Status != status {
				t.Errorf("a read that is answered %d returns %v", status, err)
			}
			here.Close()
		}
	}
}

func TestTheKeyIsSentAndNeverShown(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request, nth int){
		"whoever shows the request": func(w http.ResponseWriter, r *http.Request, _ int) {
			say(w, 400, refusal("some_code", "you sent "+r.Header.Get("Authorization")))
		},
		"whoever tears it": func(w http.ResponseWriter, r *http.Request, _ int) {
			tear(w, "HTTP/1.1 "+r.Header.Get("Authorization")+"\r\n\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, client.Options{Attempts: 1}, answer, func(t *testing.T, s *server, c *client.Client) {
				_, err := c.RecordSale(t.Context(), report("order-1"))
				var refused *client.Error
				errors.As(err, &refused)
				for _, shown := range []string{err.Error(), fmt.Sprintf("%+v %#v", err, refused), fmt.Sprintf("%v %+v %#v", c, *c, *c)} {
					if leaks(shown) {
						t.Errorf("the key is shown: %s", shown)
					}
				}
				if got := s.requests()[0].header.Get("Authorization"); got != "Bearer "+apiKey {
					t.Errorf("the request is sent with %q", got)
				}
			})
		})
	}
}

func TestAFailureDoesNotShowWhoWasAskedFor(t *testing.T) {
	inBubble(t, client.Options{Attempts: 1}, nil, func(t *testing.T, s *server, c *client.Client) {
		s.refuse = 1
		for _, err := range c.ListPartners(t.Context(), client.PartnerFilter{Email: "ana@example.com"}) {
			if err == nil || strings.Contains(err.Error(), "example.com") || !strings.Contains(err.Error(), "list partners: dial") {
				t.Errorf("it says %v", err)
			}
		}
	})
}

func TestAClientThatCannotWorkIsNotMade(t *testing.T) {
	for name, row := range map[string]struct {
		base, key string
		options   client.Options
	}{
		"no URL":               {"", apiKey, client.Options{}},
		"no scheme":            {"partilha.example.com", apiKey, client.Options{}},
		"another scheme":       {"ftp://partilha.example.com", apiKey, client.Options{}},
		"no host":              {"https:///api", apiKey, client.Options{}},
		"a password":           {"https://me:ThisIsTheKey@partilha.example.com", apiKey, client.Options{}},
		"a query":              {"https://partilha.example.com?key=ThisIsTheKey", apiKey, client.Options{}},
		"a fragment":           {"https://partilha.example.com#x", apiKey, client.Options{}},
		"a broken URL":         {"https://ThisIsTheKey\x7f", apiKey, client.Options{}},
		"no key":               {"https://partilha.example.com", "", client.Options{}},
		"a key with a newline": {"https://partilha.example.com", apiKey + "\n", client.Options{}},
		"negative attempts":    {"https://partilha.example.com", apiKey, client.Options{Attempts: -1}},
		"a negative time":      {"https://partilha.example.com", apiKey, client.Options{AttemptTimeout: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := client.New(row.base, row.key, row.options); err == nil || leaks(err.Error()) {
				t.Errorf("New returns %v", err)
			}
		})
	}
}
