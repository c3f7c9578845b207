package auth_test

import (
	"slices"
	"testing"

	"partilha.dev/pkg/auth"
)

func TestAScopeIsHadOnlyByItsWholeName(t *testing.T) {
	set := auth.Scopes{auth.SalesRead, auth.GoalsRead}
	for scope, want := range map[auth.Scope]bool{
		auth.SalesRead: true, auth.GoalsRead: true, auth.SalesWrite: false, "sales": false, "sales:*": false, "SALES:READ": false, "": false,
	} {
		if set.Has(scope) != want {
			t.Errorf("Has(%q) is %t", scope, !want)
		}
	}
	if (auth.Scopes)(nil).Has(auth.SalesRead) {
		t.Error("the empty set has a scope")
	}
}

func TestMissingNamesTheFirstScopeThatASetLacks(t *testing.T) {
	set := auth.Scopes{auth.SalesRead}
	if got := set.Missing(auth.Scopes{auth.SalesRead, auth.KeysWrite, auth.GoalsRead}); got != auth.KeysWrite {
		t.Errorf("missing %q", got)
	}
	if got := set.Missing(auth.Scopes{auth.SalesRead}); got != "" {
		t.Errorf("missing %q", got)
	}
	if got := set.Missing(nil); got != "" {
		t.Errorf("missing %q of nothing", got)
	}
}

func TestScopesSurviveTheDatabase(t *testing.T) {
	if got := auth.ScopesOf(auth.AllScopes.Strings()); !slices.Equal(got, auth.AllScopes) {
		t.Errorf("%v", got)
	}
	if got := (auth.Scopes)(nil).Strings(); got == nil || len(got) != 0 {
		t.Errorf("the empty set is written as %#v: the column takes no null", got)
	}
}

func TestAKeyMadeWithoutScopesMovesNeitherMoneyNorKeys(t *testing.T) {
	if got := auth.AllScopes.Missing(auth.DefaultScopes); got != "" {
		t.Errorf("%s is no scope", got)
	}
	for _, s := range []auth.Scope{auth.WithdrawalsWrite, auth.WithdrawalsApprove, auth.KeysWrite} {
		if auth.DefaultScopes.Has(s) {
			t.Errorf("%s is given by default", s)
		}
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(auth.AllScopes))); len(distinct) != len(auth.AllScopes) {
		t.Error("a scope is listed twice")
	}
}
