package openapi_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"partilha.dev/pkg/fault"
	"partilha.dev/pkg/money"
	"partilha.dev/pkg/openapi"
)

//go:embed testdata/shop.yaml
var shopYAML []byte

type newSale struct {
	ReferralCode string        `json:"referral_code"`
	CampaignID   uuid.UUID     `json:"campaign_id"`
	PlanID       uuid.UUID     `json:"plan_id"`
	AmountBRL    money.BRL     `json:"amount_brl"`
	ExternalRef  string        `json:"external_ref"`
	SoldAt       *openapi.Time `json:"sold_at"`
	CustomerRef  *string       `json:"customer_ref"`
	Notes        *string       `json:"notes"`
}

func loadShop(t testing.TB) *openapi.Document {
	t.Helper()
	d, err := openapi.Load(shopYAML)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func shopBody(t testing.TB, method, path string) *openapi.Body {
	t.Helper()
	b := loadShop(t).Body(method, path)
	if b == nil {
		t.Fatalf("%s %s has no body", method, path)
	}
	return b
}

const saleFormat = `{"referral_code":"ana","campaign_id":"0197f0a2-1111-7abc-8def-0123456789ab",` +
	`"plan_id":"0197f0a2-2222-7abc-8def-0123456789ab"%s}`

// sale is a sale with these further members; amount and reference are added where they are not given.
func sale(members string) []byte {
	if !strings.Contains(members, `mount_brl"`) {
		members += `,"amount_brl":10.00`
	}
	if !strings.Contains(members, `"external_ref"`) {
		members += `,"external_ref":"order-1"`
	}
	return fmt.Appendf(nil, saleFormat, ","+strings.TrimPrefix(members, ","))
}

// refusal returns the details of a refusal as "path code" lines, and fails the test
// where err is no fault of kind Invalid with code invalid_body.
func refusal(t testing.TB, err error) []string {
	t.Helper()
	f := fault.Of(err)
	if f == nil || f.Kind != fault.Invalid || f.Code != "invalid_body" || len(f.Details) == 0 {
		t.Fatalf("got %v; want an invalid_body with details", err)
	}
	var lines []string
	for _, d := range f.Details {
		for _, internal := range []string{"jsontext", "json:", "jsonschema", "openapi:///", "Go "} {
			if strings.Contains(d.Message+f.Message, internal) || d.Message == "" {
				t.Errorf("the message %q is not in plain words", d.Message)
			}
		}
		if !jsontext.Pointer(d.Path).IsValid() {
			t.Errorf("the path %q is no JSON Pointer", d.Path)
		}
		lines = append(lines, d.Path+" "+d.Code)
	}
	return lines
}
