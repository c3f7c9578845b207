package openapi_test

import (
	"encoding/json"
	"testing"
)

func TestAnEmailIsOneBareAddress(t *testing.T) {
	body := shopBody(t, "PUT", "/api/v1/things/{id}")
	for address, ok := range map[string]bool{
		"a@b.co": true, "a.b+c@d.co": true, "é@b.co": true, "a@b": true, "a@b-c.co": true,
		"": false, "a": false, "@b.co": false, "a@": false, "a@b@c.co": false, "a b@c.co": false, "a..b@c.co": false, ".a@b.co": false,
		"<a@b.co>": false, "A <a@b.co>": false, " a@b.co": false, "a@b.co ": false, "a@b.co\n": false, "\"a\nb\"@c": false, "a@b.co,c@d": false,
		"a@-b.co": false, "a@b-.co": false, "a@b..co": false, "a@b.co.": false, "a@b_c.co": false, "a@[::1]": false, "a@b,co": false,
		"a@\u212aode.co": false, "a@\u017fa.co": false,
	} {
		raw, err := json.Marshal(map[string]string{"email": address})
		if err != nil {
			t.Fatal(err)
		}
		if err := body.Decode(raw, new(thing)); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
}
