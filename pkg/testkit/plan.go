package testkit

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// WalksAlong fails unless the query, planned for its arguments or for any, looks rows up
// in indexes whose names begin with index, and in no other way. Found is how many rows it
// must find, -1 any number; what it reads is what it answers, unless it picks.
func WalksAlong(t testing.TB, conn *pgx.Conn, query string, arguments pgx.NamedArgs, index string, found int, picks bool) {
	t.Helper()
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		limited := false
		explained(t, conn, mode, query, arguments).walk(func(n node) {
			switch n.Type {
			case "Limit":
				limited = true
				if rows := strings.TrimSuffix(n.Rows.String(), ".00"); found >= 0 && rows != strconv.Itoa(found) {
					t.Errorf("%s: it finds %s rows, want %d", mode, rows, found)
				}
			case "Index Scan":
				if !strings.HasPrefix(n.Index, index) {
					t.Errorf("%s: the index is %s, want %s", mode, n.Index, index)
				}
			default:
				t.Errorf("%s: the plan has a %s", mode, n.Type)
			}
			if removed := n.Removed.String(); !picks && removed != "" && removed != "0" {
				t.Errorf("%s: %s rows are read in vain", mode, removed)
			}
		})
		if found >= 0 && !limited {
			t.Errorf("%s: the plan has no limit", mode)
		}
	}
}

// LooksUp fails unless the query, planned for its arguments or for any, finds rows and reads
// tables only by indexes whose names begin with one of these, at most so many rows of them
// in all.
func LooksUp(t testing.TB, conn *pgx.Conn, query string, arguments pgx.NamedArgs, most int, indexes ...string) {
	t.Helper()
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		read, plan := 0.0, explained(t, conn, mode, query, arguments)
		plan.walk(func(n node) {
			if !strings.HasSuffix(n.Type, "Scan") || n.Type == "Subquery Scan" || n.Type == "Function Scan" {
				return
			}
			known := slices.ContainsFunc(indexes, func(index string) bool { return strings.HasPrefix(n.Index, index) })
			if n.Type != "Index Scan" && n.Type != "Index Only Scan" || !known {
				t.Errorf("%s: the plan has a %s of %s", mode, n.Type, n.Index)
			}
			for _, rows := range []json.Number{n.Rows, n.Removed} {
				each, _ := rows.Float64()
				loops, _ := n.Loops.Float64()
				read += each * loops
			}
		})
		if rows, _ := plan.Rows.Float64(); rows == 0 {
			t.Errorf("%s: it finds nothing", mode)
		}
		if read > float64(most) {
			t.Errorf("%s: it reads %.0f rows, %d at most are needed", mode, read, most)
		}
	}
}

// FindsBy fails unless the statement, planned for its arguments or for any, finds the rows
// of every table by these indexes, and reads no table from end to end. What the statement
// does is undone.
func FindsBy(t testing.TB, conn *pgx.Conn, statement string, arguments pgx.NamedArgs, indexes ...string) {
	t.Helper()
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		used := map[string]bool{}
		explained(t, conn, mode, statement, arguments).walk(func(n node) {
			if n.Type == "Seq Scan" {
				t.Errorf("%s: it reads all of %s", mode, n.Table)
			}
			if n.Index != "" {
				used[n.Index] = true
			}
		})
		if got := slices.Sorted(maps.Keys(used)); !slices.Equal(got, slices.Sorted(slices.Values(indexes))) {
			t.Errorf("%s: it uses the indexes %v, want %v", mode, got, indexes)
		}
	}
}

// node is as much of a node of a plan as tests look at.
type node struct {
	Type    string      `json:"Node Type"`
	Index   string      `json:"Index Name"`
	Table   string      `json:"Relation Name"`
	Rows    json.Number `json:"Actual Rows"`
	Loops   json.Number `json:"Actual Loops"`
	Removed json.Number `json:"Rows Removed by Filter"`
	Plans   []node      `json:"Plans"`
}

// walk visits the node and all below it.
func (n node) walk(visit func(node)) {
	visit(n)
	for _, child := range n.Plans {
		child.walk(visit)
	}
}

// explained is how PostgreSQL runs the query in one of its two ways: planned for these
// arguments, or for any.
func explained(t testing.TB, conn *pgx.Conn, mode, query string, arguments pgx.NamedArgs) node {
	t.Helper()
	numbered, values, err := arguments.RewriteQuery(t.Context(), conn, query, nil)
	if err != nil {
		t.Fatal(err)
	}
	var literals []string
	for _, value := range values {
		literals = append(literals, literal(value))
	}
	call := "explained"
	if literals != nil {
		call += " (" + strings.Join(literals, ", ") + ")"
	}
	results, err := conn.PgConn().Exec(t.Context(), "deallocate all; set plan_cache_mode = "+mode+"; prepare explained as "+numbered+
		"; begin; explain (analyze, timing off, format json) execute "+call+"; rollback").ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal(results[len(results)-2].Rows[0][0], &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}

// literal is an argument of a query as SQL writes it.
func literal(argument any) string {
	switch a := argument.(type) {
	case *string:
		if a != nil {
			return "'" + *a + "'"
		}
	case *uuid.UUID:
		if a != nil {
			return "'" + a.String() + "'"
		}
	case *time.Time:
		if a != nil {
			return "'" + a.Format(time.RFC3339Nano) + "'"
		}
	case []uuid.UUID:
		texts := make([]string, len(a))
		for i, id := range a {
			texts[i] = id.String()
		}
		return "'{" + strings.Join(texts, ",") + "}'"
	case []time.Time:
		texts := make([]string, len(a))
		for i, at := range a {
			texts[i] = at.Format(time.RFC3339Nano)
		}
		return "'{" + strings.Join(texts, ",") + "}'"
	case int:
		return strconv.Itoa(a)
	case int64:
		return strconv.FormatInt(a, 10)
	}
	return "null"
}
