package client_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/google/uuid"

	"partilha.dev/pkg/client"
	"partilha.dev/pkg/money"
)

// A sale is reported while Partilha is not there for a moment. The client sends the same
// report again, so that it is recorded once and answered.
func ExampleClient_RecordSale() {
	down := true
	partilha := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down {
			down = false
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"sale_id":"019f60bb-3400-78de-80b3-c47f112c5974","commission_id":"019f60bb-3400-708f-8271-887ce94707da","commission_amount_brl":25.00,"idempotent":false}`)
	}))
	defer partilha.Close()

	c, err := client.New(partilha.URL, "ptl_k3y", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	sold, err := c.RecordSale(context.Background(), client.SaleReport{
		ReferralCode: "ana",
		CampaignID:   uuid.MustParse("019f60b5-3400-76b2-83c0-d5f35d1b11f9"),
		PlanID:       uuid.MustParse("019f60b6-3400-772d-8fcf-b0c470ac255c"),
		Amount:       money.BRL(25000), // R$ 250.00
		ExternalRef:  "order-48213",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sale", sold.SaleID, "earns", sold.CommissionAmount)
	// Output:
	// sale 019f60bb-3400-78de-80b3-c47f112c5974 earns 25.00
}

// What a shop sold while it was offline is reported in one call. Each sale stands alone.
func ExampleClient_RecordSales() {
	partilha := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"results":[
			{"status":201,"sale_id":"019f60bb-3400-78de-80b3-c47f112c5974","commission_id":"019f60bb-3400-708f-8271-887ce94707da","commission_amount_brl":25.00,"idempotent":false},
			{"status":422,"code":"create_failed","message":"the campaign is not active"}]}`)
	}))
	defer partilha.Close()

	c, err := client.New(partilha.URL, "ptl_k3y", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	gathered := []client.SaleReport{
		{ReferralCode: "ana", Amount: money.BRL(25000), ExternalRef: "order-48213"},
		{ReferralCode: "ana", Amount: money.BRL(8000), ExternalRef: "order-48214"},
	}
	results, err := c.RecordSales(context.Background(), gathered)
	if err != nil {
		log.Fatal(err)
	}
	for i, result := range results {
		switch {
		case result.Refusal == nil:
			fmt.Println(gathered[i].ExternalRef, "earns", result.CommissionAmount)
		case result.Refusal.Temporary():
			fmt.Println(gathered[i].ExternalRef, "is to be reported again")
		default:
			fmt.Println(gathered[i].ExternalRef, "is refused:", result.Refusal.Message)
		}
	}
	// Output:
	// order-48213 earns 25.00
	// order-48214 is refused: the campaign is not active
}

// A partner is paid what is available. The request may be repeated under its reference,
// and each step as it is.
func ExampleClient_RequestWithdrawal() {
	partilha := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const withdrawal = `{"withdrawal_id":"019f60be-3400-7c52-a1f3-8d94e7b6c520","amount_brl":250.00,"pix_key_type":"cpf","pix_key":"***.982.247-**","status":`
		switch verb := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; verb {
		case "withdrawals":
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, withdrawal+`"requested","idempotent":false}`)
		case "approve":
			io.WriteString(w, withdrawal+`"approved"}`)
		case "pay":
			io.WriteString(w, withdrawal+`"paid"}`)
		}
	}))
	defer partilha.Close()

	c, err := client.New(partilha.URL, "ptl_k3y", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	asked, err := c.RequestWithdrawal(ctx, client.WithdrawalRequest{
		ReferralCode: "ana",
		Amount:       money.BRL(25000), // R$ 250.00
		PixKeyType:   "cpf",
		PixKey:       "529.982.247-25",
		ExternalRef:  "ana-july",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(asked.Amount, "to", asked.PixKey, "is", asked.Status)
	if _, err := c.ApproveWithdrawal(ctx, asked.WithdrawalID); err != nil {
		log.Fatal(err)
	}
	paid, err := c.PayWithdrawal(ctx, asked.WithdrawalID, client.Payment{EndToEndID: "E12345678202607141305abcDEF12345"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("it is", paid.Status)
	// Output:
	// 250.00 to ***.982.247-** is requested
	// it is paid
}

// The sales of a partner are added up. The second page is fetched when it is needed.
func ExampleClient_ListSales() {
	partilha := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("cursor") == "" {
			io.WriteString(w, `{"data":[{"external_ref":"order-3","amount_brl":100.50},{"external_ref":"order-2","amount_brl":0.50}],"next_cursor":"more"}`)
			return
		}
		io.WriteString(w, `{"data":[{"external_ref":"order-1","amount_brl":9.00}],"next_cursor":null}`)
	}))
	defer partilha.Close()

	c, err := client.New(partilha.URL, "ptl_k3y", client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var total money.BRL
	partner := uuid.MustParse("019f60b3-3400-75c6-82e0-91b8c0565f1b")
	for sale, err := range c.ListSales(context.Background(), client.SaleFilter{PartnerID: partner}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(sale.ExternalRef, sale.Amount)
		total += sale.Amount
	}
	fmt.Println("total", total)
	// Output:
	// order-3 100.50
	// order-2 0.50
	// order-1 9.00
	// total 110.00
}
