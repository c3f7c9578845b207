package front

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"partilha.dev/pkg/web"
)

// Remote asks a service that runs elsewhere, at its base URL, whether it is ready. One
// that gives no answer is unavailable.
func Remote(base string) func(context.Context) web.Readiness {
	return func(ctx context.Context) web.Readiness {
		readiness, err := ask(ctx, base+"/readyz")
		if err != nil {
			return web.Readiness{Status: "unavailable", Reasons: []string{"it does not answer"}}
		}
		return readiness
	}
}

const maxAnswer = 64 << 10 // bytes

func ask(ctx context.Context, url string) (readiness web.Readiness, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return readiness, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return readiness, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&readiness)
	return readiness, err
}
