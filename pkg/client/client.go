// Package client is Partilha for a payment system that is written in Go: it reports
// sales, refunds and conversions, keeps the catalogue, reads what became of it all, and
// says where webhooks go.
//
//	partilha, err := client.New("https://partilha.example.com", os.Getenv("PARTILHA_KEY"), client.Options{})
//	if err != nil {
//		return err
//	}
//	sold, err := partilha.RecordSale(ctx, client.SaleReport{
//		ReferralCode: "ana", CampaignID: campaign, PlanID: plan, ExternalRef: "order-48213",
//		Amount: money.BRL(25000), // R$ 250.00
//	})
//
// Amounts are whole centavos ([money.BRL]) and rates ten-thousandths of a percent
// ([money.Pct]), ids are UUIDs, times are instants. Members that an answer has and this
// version does not know are ignored.
//
// # Repeats
//
// What is reported bears an ExternalRef, the caller's own name for it, and is recorded
// once whatever happens: reporting it again answers what the first report was answered.
// So a call that may have been lost is repeated by the client itself, with the very same
// bytes: after a broken connection, after an attempt that took too long, and after 429,
// 502, 503 and 504. It waits as long as Retry-After asks, and a moment more that doubles
// each time and is partly random; see [Options] for how often. It never waits beyond the
// deadline of the context. If it gives up, the caller may report the same again at any
// time, tomorrow too.
//
// Repeated like this are reads, what bears an ExternalRef, and the links of partners to
// campaigns. Everything else (keys, webhook endpoints, updates, and what is created
// without an ExternalRef) is sent again only if it surely was not sent, because there
// was no connection.
//
// [Repeat] tells whether an answer is that of an earlier report, and in what the two
// reports differ. After a lost answer it is the client itself that reported earlier.
//
// # Errors
//
// Whatever Partilha refuses is an [Error] within the error that a call returns; the
// context's own errors, and those of the network, are found by [errors.Is] and
// [errors.As] as well. None of them contains the API key or the body of the request.
//
// # Lists
//
// A list is ranged over and fetched in pages as it goes, newest first where nothing else
// is said. An error ends it:
//
//	for sale, err := range partilha.ListSales(ctx, client.SaleFilter{PartnerID: partner}) {
//		if err != nil {
//			return err
//		}
//		...
//	}
//
// # Webhooks
//
// Package partilha.dev/pkg/webhook tells genuine webhooks from others and reads them.
// [Client.FollowEvents] reads the same events in their order, and misses none.
package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls one Partilha with one API key. It may be used by any number of
// goroutines.
type Client struct {
	base     string        // the base URL, without a slash at its end
	key      func() string // a function, so that printing a Client does not show the key
	http     *http.Client
	attempts int
	timeout  time.Duration
}

// Options are what a Client may be told to do otherwise. The zero Options are fine.
type Options struct {
	// Attempts is how often a call that can be repeated is sent at most; 0 means 5,
	// which takes 2 to 4 seconds if each fails at once. 1 never repeats.
	Attempts int

	// AttemptTimeout is how long one attempt may take, from the dialling to the last byte
	// of the answer; 0 means 15 seconds. How long a call may take in all is for the
	// caller's context to say.
	AttemptTimeout time.Duration

	// Transport makes the HTTP requests: for a proxy, or certificates of one's own. It
	// sees the API key, and must not repeat requests by itself. Nil is like
	// http.DefaultTransport, with more connections kept for a shorter time.
	Transport http.RoundTripper
}

const (
	defaultAttempts = 5
	defaultTimeout  = 15 * time.Second

	// keptConnections are as many as a busy shop uses at once; Go keeps two.
	keptConnections = 64

	// keptFor is how long an idle connection is kept: less than the minute after which
	// Partilha closes it, which would break a request that is just being sent on it.
	keptFor = 45 * time.Second
)

// New returns a client of the Partilha at baseURL, such as "https://partilha.example.com".
// It fails where the URL, the key or an option cannot be right, and calls nobody.
func New(baseURL, apiKey string, options Options) (*Client, error) {
	base, err := parseBase(baseURL)
	if err != nil {
		return nil, err
	}
	if apiKey == "" || strings.ContainsFunc(apiKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("make client: the API key is empty or has characters that no key has")
	}
	if options.Attempts < 0 || options.AttemptTimeout < 0 {
		return nil, errors.New("make client: Attempts and AttemptTimeout cannot be negative")
	}
	c := &Client{
		base: base, key: func() string { return apiKey },
		attempts: options.Attempts, timeout: options.AttemptTimeout,
		http: &http.Client{
			Transport: options.Transport,
			// A redirect is an answer like any other: following it would show the key to
			// whoever it names.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if c.attempts == 0 {
		c.attempts = defaultAttempts
	}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok && options.Transport == nil {
		own := standard.Clone()
		own.MaxIdleConnsPerHost, own.IdleConnTimeout = keptConnections, keptFor
		c.http.Transport = own
	}
	return c, nil
}

// parseBase returns the URL without a slash at its end. Its errors do not quote it: it
// may have been given a password.
func parseBase(text string) (string, error) {
	base, err := url.Parse(text)
	switch {
	case err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "":
		return "", fmt.Errorf("make client: the base URL is not like https://partilha.example.com")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return "", fmt.Errorf("make client: the base URL has more than a scheme, a host and a path")
	}
	return strings.TrimRight(base.String(), "/"), nil
}
