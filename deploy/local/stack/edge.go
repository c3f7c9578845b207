package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"partilha.dev/pkg/openapi"
	"partilha.dev/pkg/web"
)

// edge puts the services behind one address: each request goes to the service whose
// document has its path prefix, and the system's addresses speak for all of them.
func edge(members []member, extra http.Handler) (http.Handler, error) {
	owners := map[string]http.Handler{}
	documents := make([]*openapi.Document, len(members))
	for i, m := range members {
		documents[i] = m.document
		prefixes, err := prefixesOf(m.document)
		if err != nil {
			return nil, fmt.Errorf("read paths of %s: %w", m.name, err)
		}
		for _, prefix := range prefixes {
			owners[prefix] = m.Handler()
		}
	}
	merged, err := openapi.Merge("Partilha", documents...)
	if err != nil {
		return nil, fmt.Errorf("merge the OpenAPI documents: %w", err)
	}
	mux := http.NewServeMux()
	for _, m := range members {
		mux.HandleFunc("GET /openapi/"+m.name+".json", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Write(m.document.JSON())
		})
	}
	if extra != nil {
		mux.Handle("/demo/", extra)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		owner, ok := owners[prefixOf(r.URL.Path)]
		if !ok {
			owner = members[0].Handler() // any of them says that there is nothing
		}
		owner.ServeHTTP(w, r)
	})
	return web.System{Document: merged, Ready: readyAll(members)}.Around(mux), nil
}

// prefixOf is the part of a path that belongs to one service: /admin/v1, or /api/v1
// and one segment more.
func prefixOf(path string) string {
	segments := strings.SplitN(path, "/", 5)
	switch {
	case len(segments) >= 4 && segments[1] == "api":
		return strings.Join(segments[:4], "/")
	case len(segments) >= 3:
		return strings.Join(segments[:3], "/")
	default:
		return path
	}
}

func prefixesOf(document *openapi.Document) (prefixes []string, err error) {
	var paths struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	err = json.Unmarshal(document.JSON(), &paths)
	for path := range paths.Paths {
		prefixes = append(prefixes, prefixOf(path))
	}
	return prefixes, err
}

// readyAll is as ready as the least ready service.
func readyAll(members []member) func(context.Context) web.Readiness {
	return func(ctx context.Context) web.Readiness {
		all := web.Readiness{Status: "ready"}
		for _, m := range members {
			one := m.deps.Ready(ctx)
			if one.Status == "unavailable" || one.Status == "degraded" && all.Status == "ready" {
				all.Status = one.Status
			}
			for _, reason := range one.Reasons {
				all.Reasons = append(all.Reasons, m.name+": "+reason)
			}
		}
		return all
	}
}
