package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"partilha.dev/pkg/client"
	"partilha.dev/pkg/openapi"
	commissionsservice "partilha.dev/services/commissions"
	goalsservice "partilha.dev/services/goals"
	salesservice "partilha.dev/services/sales"
	webhooksservice "partilha.dev/services/webhooks"
)

// answerTypes are what the client reads the answers of an operation into, or the rows of
// its pages. An operation that no document has yet is not looked at.
var answerTypes = map[string]func() any{
	"recordSale":            func() any { return &client.SaleReceipt{} },
	"getSale":               func() any { return &client.Sale{} },
	"listSales":             func() any { return &client.Sale{} },
	"recordRefund":          func() any { return &client.RefundReceipt{} },
	"listRefunds":           func() any { return &client.Refund{} },
	"recordConversion":      func() any { return &client.ConversionReceipt{} },
	"getConversion":         func() any { return &client.Conversion{} },
	"listConversions":       func() any { return &client.Conversion{} },
	"createPartner":         func() any { return &client.CreatedPartner{} },
	"getPartner":            func() any { return &client.Partner{} },
	"updatePartner":         func() any { return &client.Partner{} },
	"listPartners":          func() any { return &client.Partner{} },
	"listCampaignPartners":  func() any { return &client.Partner{} },
	"createCampaign":        func() any { return &client.CreatedCampaign{} },
	"getCampaign":           func() any { return &client.Campaign{} },
	"updateCampaign":        func() any { return &client.Campaign{} },
	"listCampaigns":         func() any { return &client.Campaign{} },
	"createPlan":            func() any { return &client.CreatedPlan{} },
	"getPlan":               func() any { return &client.Plan{} },
	"updatePlan":            func() any { return &client.Plan{} },
	"listPlans":             func() any { return &client.Plan{} },
	"createApiKey":          func() any { return &client.IssuedAPIKey{} },
	"listApiKeys":           func() any { return &client.APIKey{} },
	"getCommission":         func() any { return &client.Commission{} },
	"listCommissions":       func() any { return &client.Commission{} },
	"createGoal":            func() any { return &client.CreatedGoal{} },
	"getGoal":               func() any { return &client.Goal{} },
	"updateGoal":            func() any { return &client.Goal{} },
	"listGoals":             func() any { return &client.Goal{} },
	"listGoalProgress":      func() any { return &client.Progress{} },
	"createWebhookEndpoint": func() any { return &client.RegisteredWebhookEndpoint{} },
	"getWebhookEndpoint":    func() any { return &client.WebhookEndpoint{} },
	"listWebhookEndpoints":  func() any { return &client.WebhookEndpoint{} },
	"getWebhookDelivery":    func() any { return &client.WebhookDelivery{} },
	"listWebhookDeliveries": func() any { return &client.WebhookDelivery{} },
}

// TestTheClientKnowsEveryMemberThatTheDocumentsShow reads the examples of every answer
// and wants a place for each of their members, so that the client does not fall behind.
func TestTheClientKnowsEveryMemberThatTheDocumentsShow(t *testing.T) {
	looked := 0
	for service, load := range map[string]func() (*openapi.Document, error){
		"sales": salesservice.Document, "commissions": commissionsservice.Document, "goals": goalsservice.Document, "webhooks": webhooksservice.Document,
	} {
		document, err := load()
		if err != nil {
			t.Fatal(err)
		}
		var tree struct {
			Paths map[string]map[string]json.RawMessage
		}
		if err := json.Unmarshal(document.JSON(), &tree); err != nil {
			t.Fatalf("read the document of %s: %v", service, err)
		}
		for path, methods := range tree.Paths {
			for method, raw := range methods {
				var operation struct {
					OperationID string
					Responses   map[string]struct {
						Content map[string]struct {
							Examples map[string]struct{ Value json.RawMessage }
						}
					}
				}
				if err := json.Unmarshal(raw, &operation); err != nil {
					t.Fatalf("read %s %s: %v", method, path, err)
				}
				kind := answerTypes[operation.OperationID]
				if kind == nil {
					continue
				}
				for status, response := range operation.Responses {
					if !strings.HasPrefix(status, "2") {
						continue
					}
					for name, example := range response.Content["application/json"].Examples {
						looked++
						if err := fits(example.Value, kind); err != nil {
							t.Errorf("%s answers the example %s of %s: %v", operation.OperationID, name, status, err)
						}
					}
				}
			}
		}
	}
	if looked < 25 {
		t.Errorf("the documents show only %d answers", looked)
	}
}

// fits reads an answer, or each row of a page, into what kind makes.
func fits(answer json.RawMessage, kind func() any) error {
	var page struct{ Data []json.RawMessage }
	if err := json.Unmarshal(answer, &page); err != nil {
		return err
	}
	rows := page.Data
	if rows == nil {
		rows = []json.RawMessage{answer}
	}
	for i, row := range rows {
		strict := json.NewDecoder(bytes.NewReader(row))
		strict.DisallowUnknownFields()
		if err := strict.Decode(kind()); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}
