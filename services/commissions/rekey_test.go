package commissions

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"partilha.dev/pkg/seal"
)

func ringOf(t *testing.T, keys ...string) *seal.Ring {
	t.Helper()
	ring, err := seal.NewRing(strings.Join(keys, ","))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func TestEveryPIXKeyIsBroughtUnderTheNewKey(t *testing.T) {
	t.Parallel()
	const some = rekeyAtOnce + 3
	w := newTeller(t)
	newKey := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("new-", 8)))
	for range some {
		w.mustAsk(w.tenant, w.partner, 1)
	}
	if _, err := New(t.Context(), Config{SecretKey: newKey}, w.deps); err == nil || !strings.Contains(err.Error(), "COMMISSIONS_SECRET_KEY") || strings.Contains(err.Error(), newKey) {
		t.Errorf("without the old key it starts: %v", err)
	}
	w.ring = ringOf(t, newKey, sealingKey)
	w.mustAsk(w.tenant, w.partner, 1)
	for _, want := range []string{
		fmt.Sprintf("%d PIX keys are sealed again, 1 were under the first key already\n", some),
		fmt.Sprintf("0 PIX keys are sealed again, %d were under the first key already\n", some+1),
	} {
		var said strings.Builder
		if err := rekey(t.Context(), w.deps.Pool, w.ring, &said); err != nil || said.String() != want {
			t.Errorf("%q, %v; want %q", said.String(), err, want)
		}
	}
	w.ring = ringOf(t, newKey)
	if _, err := New(t.Context(), Config{SecretKey: newKey}, w.deps); err != nil {
		t.Errorf("with the new key alone: %v", err)
	}
	if listed := w.must(200, w.get(w.approver, withdrawalsPath))["data"].([]any); listed[0].(map[string]any)["pix_key"] != "52998224725" {
		t.Errorf("%v", listed[0])
	}
}

func TestAPIXKeyOpensNowhereElse(t *testing.T) {
	t.Parallel()
	w := newTeller(t)
	first, second := w.mustAsk(w.tenant, w.partner, 1), w.mustAsk(w.tenant, w.partner, 1)
	w.exec(`update withdrawals set pix_key = (select pix_key from withdrawals where withdrawal_id = $1) where withdrawal_id = $2`, first, second)
	refused(t, w.get(w.approver, withdrawalsPath+"/"+second.String()), 500, "internal_error")
	var said strings.Builder
	other := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("new-", 8)))
	if err := rekey(t.Context(), w.deps.Pool, ringOf(t, other, sealingKey), &said); err == nil || !strings.Contains(err.Error(), second.String()) || !strings.HasPrefix(said.String(), "1 PIX keys") {
		t.Errorf("%q, %v", said.String(), err)
	}
}

func TestAServiceWithoutAUsableKeyDoesNotStart(t *testing.T) {
	t.Parallel()
	f := prepare(t, nowhere)
	for _, key := range []string{"", "short", sealingKey + "," + sealingKey} {
		if _, err := New(t.Context(), Config{SecretKey: key}, f.deps); err == nil || !strings.HasPrefix(err.Error(), "COMMISSIONS_SECRET_KEY: ") {
			t.Errorf("%q: %v", key, err)
		}
	}
}
