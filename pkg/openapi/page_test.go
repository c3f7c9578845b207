package openapi_test

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"partilha.dev/pkg/openapi"
)

// elements parses a page and returns all its elements.
func elements(t *testing.T, page []byte) []*html.Node {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var all []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return all
}

func TestThePageLoadsNothingAndRunsNothing(t *testing.T) {
	for _, n := range elements(t, loadShop(t).Docs()) {
		switch n.Data {
		case "script", "link", "img", "iframe", "object", "embed", "video", "audio", "source", "base", "form", "svg":
			t.Errorf("there is a <%s>", n.Data)
		case "style":
			for _, load := range []string{"url(", "@import", "@font-face", "//"} {
				if strings.Contains(n.FirstChild.Data, load) {
					t.Errorf("the style contains %s", load)
				}
			}
		}
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "srcset" || a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
			}
			if a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("a link leads away: %s", a.Val)
			}
		}
	}
}

func TestEveryLinkOfThePageHasItsPlace(t *testing.T) {
	ids := map[string]int{}
	links := map[string]bool{}
	for _, n := range elements(t, loadShop(t).Docs()) {
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				ids[a.Val]++
			case "href":
				links[strings.TrimPrefix(a.Val, "#")] = true
			}
		}
	}
	for id, n := range ids {
		if n > 1 || !links[id] {
			t.Errorf("%s occurs %d times; linked: %t", id, n, links[id])
		}
	}
	for link := range links {
		if ids[link] == 0 {
			t.Errorf("#%s leads nowhere", link)
		}
	}
	for _, want := range []string{"op-recordSale", "op-listSales", "op-changeThing", "op-post-api-v1-payouts--id--cancel"} {
		if ids[want] == 0 {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestThePageTellsAllThatACallerNeeds(t *testing.T) {
	page := string(loadShop(t).Docs())
	for _, want := range []string{
		"<title>Shop 1.2.0</title>", "prefers-color-scheme: dark",
		"What was sold.", "Record a sale", "/api/v1/things/{id}", // groups and operations
		"in query", "at least 1", "Default <code>25</code>", "in path", // parameters
		"<code>amount_brl</code> <span class=\"required\">required</span>", "a multiple of 0.01", "at most 999999999.99", "Gross value.",
		"string (date-time) or null", "one of active, suspended", "array of string", "each at most 3 characters",
		"<code>owner.id</code>", "object or null", "always thing", "at most 255 characters", // members
		"The usual", "&#34;sale_id&#34;: &#34;0197f0a2-1111", "199.90", // examples
		"X-Request-Id", "Recorded.", "The body breaks its schema.", "key sales:write", // responses
		"<code>shop</code>", "<strong>things</strong>", "<li>takes them back</li>", // prose
		"Some &lt;b&gt;sales&lt;/b&gt; &amp; more.", // escaping
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestThePageSurvivesASchemaThatContainsItself(t *testing.T) {
	d, err := openapi.Load([]byte(`
openapi: 3.1.0
info: {title: Tree, version: '1'}
paths:
  /trees:
    post:
      requestBody: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Tree'}}}}
      responses: {201: {description: Grown.}}
components:
  schemas:
    Tree: {type: object, additionalProperties: false, properties: {name: {type: string}, below: {type: array, items: {$ref: '#/components/schemas/Tree'}}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(d.Docs()), "<code>below[].below[].name</code>") {
		t.Error("the page does not list the inner members")
	}
	var tree struct {
		Name string `json:"name"`
	}
	got := refusal(t, d.Body("POST", "/trees").Decode([]byte(`{"below":[{"below":[{"name":1}]}]}`), &tree))
	if len(got) != 1 || got[0] != "/below/0/below/0/name type" {
		t.Errorf("got %q", got)
	}
}
