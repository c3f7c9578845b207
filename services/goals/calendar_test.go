package goals

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/testkit"
)

// Zones whose clocks change at or near the first midnight of a month, or in unusual
// ways; in the first group midnight never comes twice on a first day since 2000.
var (
	plainZones = []string{
		"America/Sao_Paulo", "UTC", "America/New_York", "Europe/Lisbon", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia",
		"America/Asuncion", // 1 October 2000 began at 01:00
		"Asia/Amman",       // 1 April 2011 began at 01:00
	}
	oddZones = []string{
		"America/Havana",   // 1 November 2020 had two midnights
		"Asia/Gaza",        // 1 October 2004 had two midnights
		"America/St_Johns", // 1 November 2009 went back into October after a minute
	}
)

func zoneFor(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := zoneOf(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestMonthsFollowEachOtherWithoutGapOrOverlap(t *testing.T) {
	for _, name := range append(oddZones, plainZones...) {
		zone := zoneFor(t, name)
		previous := monthOf(time.Date(2000, 1, 15, 0, 0, 0, 0, time.UTC), zone)
		for range 12 * 40 {
			next := monthOf(*previous.end, zone)
			if !next.start.Equal(*previous.end) {
				t.Fatalf("%s: the month after %s begins at %s", name, previous.end, next.start)
			}
			if local := next.start.In(zone); local.Day() != 1 || next.start.Add(-time.Microsecond).In(zone).Day() == 1 {
				t.Errorf("%s: a month begins at %s, which is not where the first day begins", name, local)
			}
			for _, moment := range []time.Time{next.start, next.start.Add(30 * time.Second), next.start.Add(time.Hour), next.end.Add(-time.Microsecond)} {
				if in := monthOf(moment, zone); !in.start.Equal(next.start) || !in.end.Equal(*next.end) {
					t.Errorf("%s: %s is put into the month from %s to %s", name, moment, in.start, in.end)
				}
			}
			previous = next
		}
	}
}

func TestMonthsBeginWhereTheClockIsChangedOverMidnight(t *testing.T) {
	for _, row := range []struct{ zone, within, start string }{
		{"America/Sao_Paulo", "2026-03-10T00:00:00Z", "2026-03-01T03:00:00Z"},
		{"America/Asuncion", "2000-10-10T00:00:00Z", "2000-10-01T04:00:00Z"},
		{"Asia/Amman", "2011-04-10T00:00:00Z", "2011-03-31T22:00:00Z"},
		{"America/Havana", "2020-11-10T00:00:00Z", "2020-11-01T04:00:00Z"},
		{"Asia/Gaza", "2004-10-10T00:00:00Z", "2004-09-30T21:00:00Z"},
		{"America/St_Johns", "2009-11-01T03:00:00Z", "2009-11-01T02:30:00Z"}, // the clock shows October again
	} {
		within, _ := time.Parse(time.RFC3339, row.within)
		if got := monthOf(within, zoneFor(t, row.zone)).start.Format(time.RFC3339); got != row.start {
			t.Errorf("%s: the month of %s begins at %s, want %s", row.zone, row.within, got, row.start)
		}
	}
}

func TestMonthsBeginWherePostgreSQLSaysSo(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), testkit.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, name := range plainZones {
		zone := zoneFor(t, name)
		rows, err := conn.Query(t.Context(), `
			select at, date_trunc('month', at at time zone $1) at time zone $1
			from generate_series('2000-01-01 00:30+00'::timestamptz, '2037-12-31', '13 hours') as at`, name)
		if err != nil {
			t.Fatal(err)
		}
		var moment, want time.Time
		_, err = pgx.ForEachRow(rows, []any{&moment, &want}, func() error {
			if got := monthOf(moment, zone).start; !got.Equal(want) {
				t.Errorf("%s: the month of %s begins at %s, PostgreSQL says %s", name, moment.UTC(), got, want.UTC())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOnlyIANAZonesAreKnown(t *testing.T) {
	for _, name := range []string{"", "Local", "posixrules", "right/UTC", "localtime", "Mars/Olympus", "../etc/passwd", "america/sao_paulo", "UTC\x00"} {
		if zone, err := zoneOf(name); err == nil {
			t.Errorf("%q is taken for %s", name, zone)
		}
	}
}

func TestAPercentageHasAtMostTwoDecimals(t *testing.T) {
	for _, row := range []struct {
		progress, target int64
		want             string
	}{
		{0, 3, "0"}, {1, 3, "33.33"}, {2, 3, "66.67"}, {1, 2, "50"}, {1, 8, "12.5"}, {1_240_315, 1_000_050, "124.03"},
		{1, 20_000, "0.01"}, {9_000_000_000_000_000_000, 1, "900000000000000000000"},
	} {
		if got := string(percentOf(row.progress, row.target)); got != row.want {
			t.Errorf("%d of %d is %s%%, want %s", row.progress, row.target, got, row.want)
		}
	}
}
