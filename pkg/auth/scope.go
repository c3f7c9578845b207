package auth

import "slices"

// Scope is one thing that a key may do.
type Scope string

// The scopes.
const (
	SalesWrite         Scope = "sales:write"
	SalesRead          Scope = "sales:read"
	CatalogWrite       Scope = "catalog:write"
	CatalogRead        Scope = "catalog:read"
	CommissionsRead    Scope = "commissions:read"
	WithdrawalsWrite   Scope = "withdrawals:write"
	WithdrawalsApprove Scope = "withdrawals:approve"
	GoalsWrite         Scope = "goals:write"
	GoalsRead          Scope = "goals:read"
	WebhooksWrite      Scope = "webhooks:write"
	WebhooksRead       Scope = "webhooks:read"
	KeysWrite          Scope = "keys:write"
)

// AllScopes is everything that a key can be allowed.
var AllScopes = Scopes{
	SalesWrite, SalesRead, CatalogWrite, CatalogRead, CommissionsRead, WithdrawalsWrite,
	WithdrawalsApprove, GoalsWrite, GoalsRead, WebhooksWrite, WebhooksRead, KeysWrite,
}

// DefaultScopes is what a key may do that was made without naming scopes.
var DefaultScopes = Scopes{SalesWrite, SalesRead}

// sensitive scopes move money or keys. They are refused where a revocation may not
// have been heard of.
var sensitive = Scopes{WithdrawalsWrite, WithdrawalsApprove, KeysWrite}

// Scopes is a set, in the order in which it was granted.
type Scopes []Scope

// Has tells whether the set holds scope.
func (s Scopes) Has(scope Scope) bool { return slices.Contains(s, scope) }

// Missing returns the first of wanted that the set lacks, or "".
func (s Scopes) Missing(wanted Scopes) Scope {
	for _, scope := range wanted {
		if !s.Has(scope) {
			return scope
		}
	}
	return ""
}

// Strings is the set as a database stores it.
func (s Scopes) Strings() []string {
	names := make([]string, len(s))
	for i, scope := range s {
		names[i] = string(scope)
	}
	return names
}

// ScopesOf is the set that a database stored.
func ScopesOf(names []string) Scopes {
	scopes := make(Scopes, len(names))
	for i, name := range names {
		scopes[i] = Scope(name)
	}
	return scopes
}
