package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// NewAPIKey is a key that is to be made.
type NewAPIKey struct {
	Name      string    `json:"name"`
	Scopes    []string  `json:"scopes,omitzero"`     // "sales:write" and so on, none that this client's key lacks; nil is sales:write and sales:read
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never
}

// APIKey is a key as it is listed: never in clear.
type APIKey struct {
	APIKeyID   uuid.UUID  `json:"api_key_id"`
	Name       string     `json:"name"`
	Prefix     string     `json:"prefix"` // the part by which people tell keys apart
	Scopes     []string   `json:"scopes"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
	LastUsedAt *time.Time `json:"last_used_at"` // to the minute
}

// IssuedAPIKey is a new key with its clear text, which cannot be read again.
type IssuedAPIKey struct {
	APIKey
	Clear string `json:"api_key"`
}

const apiKeysPath = "/api/v1/api-keys"

// CreateAPIKey makes a key, which every service knows within a second. It is never
// repeated once it may have been sent: if the answer is lost so is the key; find it by
// its name and revoke it.
func (c *Client) CreateAPIKey(ctx context.Context, key NewAPIKey) (IssuedAPIKey, error) {
	return send[IssuedAPIKey](ctx, c, call{what: "create API key", method: http.MethodPost, path: apiKeysPath, body: key})
}

// ListAPIKeys yields all keys, revoked ones too, the last one first.
func (c *Client) ListAPIKeys(ctx context.Context) iter.Seq2[APIKey, error] {
	return list[APIKey](ctx, c, "list API keys", apiKeysPath, filter{})
}

// RevokeAPIKey ends a key, in every service within a second. Doing it again changes
// nothing.
func (c *Client) RevokeAPIKey(ctx context.Context, apiKeyID uuid.UUID) error {
	_, err := send[nothing](ctx, c, call{what: "revoke API key", method: http.MethodDelete, path: apiKeysPath + "/" + apiKeyID.String()})
	return err
}
