// Package front speaks for several services that share one address: one OpenAPI
// document and one page of it, and one answer to whether they are ready.
package front

import (
	"context"
	"fmt"
	"net/http"

	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/web"
)

// Member is one of the services.
type Member struct {
	Name     string
	Document *openapi.Document
	Ready    func(context.Context) web.Readiness
}

// Document is the document of all of them.
func Document(members []Member) (*openapi.Document, error) {
	documents := make([]*openapi.Document, len(members))
	for i, m := range members {
		documents[i] = m.Document
	}
	merged, err := openapi.Merge("Partilha", documents...)
	if err != nil {
		return nil, fmt.Errorf("merge the OpenAPI documents: %w", err)
	}
	return merged, nil
}

// Around serves the system's addresses for all members, and each one's document at
// /openapi/NAME.json; api answers everything else.
func Around(members []Member, document *openapi.Document, api http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, m := range members {
		mux.HandleFunc("GET /openapi/"+m.Name+".json", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write(m.Document.JSON())
		})
	}
	mux.Handle("/", api)
	return web.System{Document: document, Ready: readyAll(members)}.Around(mux)
}

// readyAll is as ready as the least ready member. All are asked at once.
func readyAll(members []Member) func(context.Context) web.Readiness {
	return func(ctx context.Context) web.Readiness {
		answers := make([]chan web.Readiness, len(members))
		for i, m := range members {
			answers[i] = make(chan web.Readiness, 1)
			go func() { answers[i] <- m.Ready(ctx) }()
		}
		all := web.Readiness{Status: "ready"}
		for i, m := range members {
			one := <-answers[i]
			if one.Status == "unavailable" || one.Status == "degraded" && all.Status == "ready" {
				all.Status = one.Status
			}
			for _, reason := range one.Reasons {
				all.Reasons = append(all.Reasons, m.Name+": "+reason)
			}
		}
		return all
	}
}
