package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"partilha.dev/deploy/e2e/stage"
	"partilha.dev/pkg/testkit"
)

func TestEveryProcessAnswersTheAddressesOfTheSystem(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	stage.OpenShop(t, p) // so that there is something to measure
	elsewhere := regexp.MustCompile(`(src|href)\s*=\s*"?(https?:)?//|@import|url\(`)
	for _, service := range stage.Services {
		for _, address := range []struct{ path, contentType, contains string }{
			{"/healthz", "application/json", `"status":"ok"`},
			{"/readyz", "application/json", `"status":"ready"`},
			{"/metrics", "text/plain", "partilha_http_request_seconds"},
			{"/openapi.json", "application/json", `"openapi"`},
			{"/docs", "text/html", "<html"},
		} {
			got := p.SystemAddress(t, service, address.path)
			if got.Status != 200 || !strings.HasPrefix(got.Header.Get("Content-Type"), address.contentType) || !strings.Contains(string(got.Body), address.contains) {
				t.Errorf("%s %s answers %d %s %.200s", service, address.path, got.Status, got.Header.Get("Content-Type"), got.Body)
			}
			if got.Header.Get("X-Request-Id") == "" {
				t.Errorf("%s %s has no X-Request-Id", service, address.path)
			}
		}
		if found := elsewhere.FindString(string(p.SystemAddress(t, service, "/docs").Body)); found != "" {
			t.Errorf("the page of %s loads something from elsewhere: %s", service, found)
		}
		var document struct {
			OpenAPI string
			Paths   map[string]any
		}
		p.SystemAddress(t, service, "/openapi.json").Into(t, &document)
		if !strings.HasPrefix(document.OpenAPI, "3.1") || len(document.Paths) == 0 {
			t.Errorf("the document of %s is OpenAPI %q with %d paths", service, document.OpenAPI, len(document.Paths))
		}
		for path := range document.Paths {
			if stage.OwnerOf(path) != service {
				t.Errorf("the document of %s has the path %s", service, path)
			}
		}
	}
}

func TestARequestUnderWayIsAnsweredWhenTheProcessIsAskedToStop(t *testing.T) {
	t.Parallel()
	p := stage.StartPlatform(t)
	shop := stage.OpenShop(t, p)
	body, err := json.Marshal(shop.Report("order-1"))
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(p.Processes["sales"].Base(), "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(stage.Soon)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /api/v1/sales HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", shop.Token, len(body))
	reader := bufio.NewReader(conn)
	if line, err := reader.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatalf("before the body the process says %q, %v", line, err)
	}
	if _, err := reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}

	p.Processes["sales"].Signal(syscall.SIGTERM) // the request is being read by now
	testkit.Eventually(t, stage.Soon, "new connections are refused", func() bool {
		other, err := net.Dial("tcp", address)
		if err == nil {
			other.Close()
		}
		return err != nil
	})
	if _, err := conn.Write(body); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var sold stage.Receipt
	if err := json.NewDecoder(response.Body).Decode(&sold); err != nil || response.StatusCode != http.StatusCreated {
		t.Fatalf("the request under way is answered %s %+v, %v", response.Status, sold, err)
	}
	if err := p.Processes["sales"].Wait(); err != nil {
		t.Errorf("the process ends with %v", err)
	}
	p.Processes["sales"].Start()
	stage.Books{Platform: p, Shop: shop}.Settle(t, map[string]stage.Receipt{"order-1": sold})
}
