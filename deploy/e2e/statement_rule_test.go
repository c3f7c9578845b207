package e2e

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// tenantless are the statements that speak of no tenant, and why they need not.
var tenantless = map[string]string{
	"commissions.earnedQuery":       "counts a minute of all tenants",
	"goals.streamKeyQuery":          "reads the one key under which all ids of streams are sealed",
	"webhooks.keptQuery":            "counts a minute of all tenants",
	"webhooks.muteStatement":        "is for the whole of a restored database",
	"webhooks.stopReplaysStatement": "is for the whole of a restored database",
	"webhooks.secretOfEachKeyQuery": "tries the sealing keys on what is stored at the start",
	"webhooks.stillPendingQuery":    "asks of a whole day whether it may be dropped",
	"webhooks.releaseStatement":     "goes by random tokens that only this worker has drawn",
}

var sqlPattern = regexp.MustCompile(`(?is)^\s*(with\s+(recursive\s+)?\w+\s+as\s*(\(|materialized)|select\s|insert\s+into\s|update\s+\w+.*\sset\s|delete\s+from\s)`)

// tablePattern tells a statement about rows from one that takes a lock or makes a setting.
var tablePattern = regexp.MustCompile(`(?i)\b(from|into|update)\b`)

func TestEveryStatementOfAServiceNamesItsTenant(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range everyPackage(t) {
		if !p.under("services") {
			continue
		}
		known := constants{}
		var files []*ast.File
		for _, name := range p.GoFiles {
			file := parse(t, filepath.Join(p.Dir, name), 0)
			files = append(files, file)
			known.learn(file)
		}
		for name, expression := range known {
			text := known.text(expression)
			if !sqlPattern.MatchString(text) || !tablePattern.MatchString(text) {
				continue
			}
			statement := strings.TrimPrefix(p.ImportPath, projectPath+"services/") + "." + name
			seen[statement] = true
			_, excused := tenantless[statement]
			if named := strings.Contains(text, "tenant_id"); named == excused {
				t.Errorf("%s names tenant_id: %t, and stands on the list of exceptions: %t", statement, named, excused)
			}
		}
		for _, file := range files {
			for _, place := range inline(file) {
				t.Errorf("%s: a statement stands outside a constant: %.60q", p.ImportPath, place)
			}
		}
	}
	for statement := range tenantless {
		if !seen[statement] {
			t.Errorf("%s is an exception and no statement", statement)
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d statements were found", len(seen))
	}
}

// constants are the expressions of a package's constants by name.
type constants map[string]ast.Expr

func (c constants) learn(file *ast.File) {
	ast.Inspect(file, func(node ast.Node) bool {
		if group, ok := node.(*ast.GenDecl); ok && group.Tok == token.CONST {
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				for i, name := range value.Names {
					if i < len(value.Values) {
						c[name.Name] = value.Values[i]
					}
				}
			}
		}
		return true
	})
}

// text is the text of an expression of literals and constants; what is neither is left
// out.
func (c constants) text(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value) // the parser has read it
			return text
		}
	case *ast.BinaryExpr:
		return c.text(e.X) + c.text(e.Y)
	case *ast.ParenExpr:
		return c.text(e.X)
	case *ast.Ident:
		if value, ok := c[e.Name]; ok {
			return c.text(value)
		}
	}
	return ""
}

// inline are the statements that a file writes where it uses them.
func inline(file *ast.File) (found []string) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GenDecl:
			return node.Tok != token.CONST
		case *ast.BasicLit:
			if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING && sqlPattern.MatchString(text) {
				found = append(found, text)
			}
		}
		return true
	})
	return found
}
