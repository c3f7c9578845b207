package stack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"partilha.dev/deploy/local/front"
	"partilha.dev/pkg/openapi"
)

// edge puts the services behind one address: each request goes to the service whose
// document has its path prefix, and the system's addresses speak for all of them.
func edge(members []member, extra http.Handler) (http.Handler, error) {
	owners := map[string]http.Handler{}
	shown := make([]front.Member, len(members))
	for i, m := range members {
		shown[i] = front.Member{Name: m.name, Document: m.document, Ready: m.deps.Ready}
		prefixes, err := prefixesOf(m.document)
		if err != nil {
			return nil, fmt.Errorf("read paths of %s: %w", m.name, err)
		}
		for _, prefix := range prefixes {
			owners[prefix] = m.Handler()
		}
	}
	merged, err := front.Document(shown)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
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
	return front.Around(shown, merged, mux), nil
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
