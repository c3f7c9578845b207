package e2e

import (
	"strings"
	"testing"

	"partilha.dev/deploy/e2e/stage"
)

func TestAnOperatorSuspendsATenantAndLetsItGoOn(t *testing.T) {
	p := stage.StartPlatform(t)
	shop, other := stage.OpenShop(t, p), stage.OpenShop(t, p)
	sales := p.Processes["sales"]
	for range 2 { // doing it again changes nothing
		if said := sales.MustRun("tenant", "suspend", shop.TenantID); said != "tenant "+shop.TenantID+" ("+t.Name()+") is suspended" {
			t.Errorf("tenant suspend says %q", said)
		}
		holds(t, shop.Caller, "a key of a suspended tenant", "403 tenant_suspended")
	}
	if got := shop.Call(t, "POST", "/api/v1/sales", shop.Report("order-1")); got.Status != 403 {
		t.Errorf("a suspended tenant's sale is answered %s", got)
	}
	other.Sell(t, "order-1")
	for range 2 {
		sales.MustRun("tenant", "resume", shop.TenantID)
		holds(t, shop.Caller, "a key of a tenant that may go on", "200 ")
	}
	shop.Sell(t, "order-1")
}

func TestAnOperatorRevokesAKeyByItsIDOrByItsFirstCharacters(t *testing.T) {
	p := stage.StartPlatform(t)
	byID, byPrefix, other := stage.OpenShop(t, p), stage.OpenShop(t, p), stage.OpenShop(t, p)
	sales := p.Processes["sales"]
	for range 2 {
		for shop, name := range map[*stage.Shop]string{byID: byID.KeyID, byPrefix: byPrefix.Token[:12]} {
			if said := sales.MustRun("key", "revoke", name); !strings.Contains(said, shop.KeyID) || !strings.HasSuffix(said, "of tenant "+shop.TenantID+" is revoked") {
				t.Errorf("key revoke %s says %q", name, said)
			}
			holds(t, shop.Caller, "a revoked key", "401 unauthorized")
		}
	}
	other.Sell(t, "order-1")
}

func TestAnOperatorWhoNamesNobodyIsToldSoInOneSentence(t *testing.T) {
	t.Parallel()
	sales := stage.NewPlatform(t).Processes["sales"]
	const nobody = "01890000-0000-7000-8000-000000000000"
	for _, wrong := range []struct {
		args []string
		says string
	}{
		{[]string{"tenant", "suspend", nobody}, "there is no tenant " + nobody},
		{[]string{"tenant", "resume", nobody}, "there is no tenant " + nobody},
		{[]string{"tenant", "suspend", "loja"}, `"loja" is not the id of a tenant`},
		{[]string{"tenant", "suspend"}, "name one tenant"},
		{[]string{"tenant", "resume", nobody, nobody}, "name one tenant"},
		{[]string{"key", "revoke", nobody}, "there is no key"},
		{[]string{"key", "revoke", "ptl_00000000"}, "there is no key"},
		{[]string{"key", "revoke"}, "name one key"},
		{[]string{"customer", "erase", "--tenant", nobody, "--ref", "maria"}, "there is no tenant " + nobody},
		{[]string{"customer", "erase", "--ref", "maria"}, "--tenant"},
	} {
		got := sales.Run(wrong.args...)
		if got.Status != 1 || got.Stdout != "" || strings.Count(got.Stderr, "\n") != 1 || !strings.Contains(got.Stderr, wrong.says) {
			t.Errorf("sales %q ends with status %d, prints %q and says %q", wrong.args, got.Status, got.Stdout, got.Stderr)
		}
	}
}
