package testkit

import (
	"maps"
	"testing"
)

func TestStatementsAreFoundByTheirNamesAndPutTogether(t *testing.T) {
	t.Parallel()
	got := statementsIn(t, "testdata/statements")
	want := map[string]string{
		"listQuery":    "select id, name from things order by id",
		"addStatement": "insert into things (id, name) values (@id, @name)",
	}
	if !maps.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
