package commissions

import (
	"encoding/hex"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// A PIX key is in clear for whoever may approve, and nowhere else: whether it was taken,
// repeated otherwise or refused, and whatever fails.
func TestNoPIXKeyIsToldOrLoggedOrStoredInClear(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	core, logged := observer.New(zapcore.DebugLevel)
	w.deps.Log = zap.New(core)
	w.wire()
	w.hearKeys()
	secrets := []string{"52998224725", "529.982.247-25", "11144477735", "111.444.777-35", "52998224726", "secret.person@example.com", "+5511987654321", "not-a-key-at-all"}
	var said strings.Builder
	note := func(answer *httptest.ResponseRecorder) int {
		fmt.Fprintln(&said, answer.Code, answer.Header(), answer.Body)
		return answer.Code
	}
	ask := func(kind, key, ref string) string {
		return fmt.Sprintf(`{"partner_id":%q,"amount_brl":1,"pix_key_type":%q,"pix_key":%q,"external_ref":%q}`, w.partner, kind, key, ref)
	}
	for _, call := range []struct {
		body   string
		status int
	}{
		{ask("cpf", "529.982.247-25", "a"), 201},
		{ask("cpf", "111.444.777-35", "a"), 200}, // and differs
		{ask("email", "Secret.Person@example.com", "b"), 201},
		{ask("phone", "+5511987654321", "c"), 201},
		{ask("cpf", "52998224726", "d"), 400},
		{ask("evp", "not-a-key-at-all", "d"), 400},
		{ask("not-a-key-at-all", "52998224725", "d"), 400},
		{strings.Replace(ask("cpf", "52998224725", "d"), `"amount_brl":1`, `"amount_brl":1000`, 1), 422},
		{strings.Replace(ask("cpf", "52998224725", "d"), `"pix_key"`, `"pix_kei"`, 1), 400},
		{ask("cpf", "52998224725", "d") + "x", 400},
	} {
		if got := note(w.send(w.asker, withdrawalsPath, call.body)); got != call.status {
			t.Errorf("%s is answered %d, want %d", call.body, got, call.status)
		}
	}
	note(w.get(w.reader, withdrawalsPath))
	w.exec(`update withdrawals set pix_key = substring(pix_key for 20) where external_ref = 'a'`)
	if got := note(w.send(w.asker, withdrawalsPath, ask("cpf", "52998224725", "a"))); got != 500 {
		t.Errorf("a key that cannot be opened is answered %d", got)
	}
	w.exec(`alter table withdrawals rename to gone`)
	if got := note(w.send(w.asker, withdrawalsPath, ask("cpf", "52998224725", "e"))); got != 500 {
		t.Errorf("a table that is not there is answered %d", got)
	}
	w.exec(`alter table gone rename to withdrawals`)
	for _, rows := range w.state() {
		fmt.Fprintln(&said, rows)
	}
	for _, entry := range logged.All() {
		fmt.Fprintln(&said, entry.Message, entry.ContextMap())
	}
	if logged.FilterMessage("request failed").Len() != 2 {
		t.Errorf("%d failures were logged", logged.Len())
	}
	w.deps.Pool.Close()
	note(w.send(w.asker, withdrawalsPath, ask("cpf", "52998224725", "f")))

	text := strings.ToLower(said.String())
	for _, secret := range secrets {
		if strings.Contains(text, secret) || strings.Contains(text, hex.EncodeToString([]byte(secret))) {
			at := max(strings.Index(text, secret), 0)
			t.Errorf("%s is told: ...%s", secret, text[max(0, at-200):min(len(text), at+50)])
		}
	}
}
