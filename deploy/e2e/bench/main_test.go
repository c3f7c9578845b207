package main

import (
	"slices"
	"testing"

	"partilha.dev/pkg/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestWhatTakesLongIsMeasuredOnlyIfItIsAskedFor(t *testing.T) {
	o, err := parseOptions("bench", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if o.has(p.name) != p.usual {
			t.Errorf("without -parts %s is measured: %t", p.name, o.has(p.name))
		}
	}
	if o.has("balance") || !o.has("ledger") || !slices.Equal(o.clients, []int{1, 8, 64}) {
		t.Errorf("the usual options are %+v", o)
	}
	o, err = parseOptions("bench", []string{"-parts", "balance,post", "-transfers", "200", "-clients", "2,3"})
	if err != nil {
		t.Fatal(err)
	}
	if !o.has("balance") || !o.has("post") || o.has("ledger") || o.transfers != 200 || !slices.Equal(o.clients, []int{2, 3}) {
		t.Errorf("asked for two parts the options are %+v", o)
	}
}

func TestOptionsThatMeasureNothingAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"-parts", "post,speed"}, {"-parts", ""}, {"-rounds", "2"}, {"-events", "0"}, {"-partners", "-1"}, {"-facts", "0"},
		{"-transfers", "150"}, {"-clients", "8,"}, {"-rates", "0"}, {"post"},
	} {
		if _, err := parseOptions("bench", args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	if _, err := parseOptions("bench soak", []string{"-minutes", "1"}); err != nil {
		t.Errorf("a soak of a minute: %v", err)
	}
}
