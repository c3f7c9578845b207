package goals

import (
	"archive/zip"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/testkit"
)

// Zones whose clocks change at or near midnight, or in other unusual ways; in the first
// group no midnight has come twice since 2000.
var (
	plainZones = []string{
		"America/Sao_Paulo", // until 2018 a day of spring began at 01:00, and a day of autumn had 25 hours
		"UTC", "America/New_York", "Europe/Lisbon", "Asia/Kathmandu", "Australia/Lord_Howe",
		"America/Asuncion", // 1 October 2000 began at 01:00
	}
	oddZones = []string{
		"Pacific/Apia",     // had no 30 December 2011
		"Asia/Amman",       // 1 April 2011 began at 01:00, and other days twice
		"America/Havana",   // 1 November 2020 had two midnights
		"Asia/Gaza",        // 1 October 2004 had two midnights
		"America/St_Johns", // 1 November 2009 went back into October after a minute
	}
	periods = []period{day, week, month, quarter, year}
)

func zoneFor(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := zoneOf(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// beginsRightly tells whether the day is one on which such a period begins.
func (p period) beginsRightly(day time.Time) bool {
	switch p {
	case week:
		return day.Weekday() == time.Monday
	case month:
		return day.Day() == 1
	case quarter:
		return day.Day() == 1 && (day.Month()-1)%3 == 0
	case year:
		return day.YearDay() == 1
	default:
		return true
	}
}

func TestPeriodsFollowEachOtherWithoutGapOrOverlap(t *testing.T) {
	until := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range append(oddZones, plainZones...) {
		zone := zoneFor(t, name)
		for _, p := range periods {
			previous := p.spanOf(time.Date(2000, 1, 15, 0, 0, 0, 0, time.UTC), zone)
			for previous.end.Before(until) {
				next := p.spanOf(*previous.end, zone)
				if !next.start.Equal(*previous.end) {
					t.Fatalf("%s: the %s after %s begins at %s", name, p, previous.end, next.start)
				}
				local, before := next.start.In(zone), next.start.Add(-time.Microsecond).In(zone)
				if !p.beginsRightly(local) || local.Format(time.DateOnly) == before.Format(time.DateOnly) {
					t.Errorf("%s: a %s begins at %s, just after %s", name, p, local, before)
				}
				for _, within := range []time.Time{next.start, next.start.Add(30 * time.Second), next.start.Add(time.Hour), next.end.Add(-time.Microsecond)} {
					if in := p.spanOf(within, zone); !in.start.Equal(next.start) || !in.end.Equal(*next.end) {
						t.Errorf("%s: %s is put into the %s from %s to %s", name, within, p, in.start, in.end)
					}
				}
				previous = next
			}
		}
	}
}

func TestPeriodsBeginAndEndByTheCalendarOfTheirZone(t *testing.T) {
	for _, row := range []struct {
		zone          string
		period        period
		within        string
		start, end    string
		whatIsSpecial string
	}{
		{"America/Sao_Paulo", month, "2026-03-10T00:00:00Z", "2026-03-01T03:00:00Z", "2026-04-01T03:00:00Z", "nothing"},
		{"America/Sao_Paulo", day, "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z", "midnight is left out, and the day has 23 hours"},
		{"America/Sao_Paulo", day, "2018-11-04T02:59:59Z", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z", "the day before has 24"},
		{"America/Sao_Paulo", day, "2018-02-18T02:30:00Z", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z", "23:30 for the second time, in a day of 25 hours"},
		{"America/Sao_Paulo", week, "2018-11-04T12:00:00Z", "2018-10-29T03:00:00Z", "2018-11-05T02:00:00Z", "the change is on its last day"},
		{"America/Sao_Paulo", year, "2018-12-31T23:00:00Z", "2018-01-01T02:00:00Z", "2019-01-01T02:00:00Z", "it begins and ends in summer"},
		{"America/New_York", day, "2026-03-08T12:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z", "23 hours"},
		{"America/New_York", day, "2026-11-01T05:30:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "25 hours"},
		{"America/New_York", week, "2026-03-08T12:00:00Z", "2026-03-02T05:00:00Z", "2026-03-09T04:00:00Z", "a change on Sunday"},
		{"America/New_York", quarter, "2026-02-14T00:00:00Z", "2026-01-01T05:00:00Z", "2026-04-01T04:00:00Z", "it ends in summer time"},
		{"America/New_York", quarter, "2026-12-31T23:59:59Z", "2026-10-01T04:00:00Z", "2027-01-01T05:00:00Z", "it ends with the year"},
		{"America/New_York", quarter, "2026-07-01T03:59:59Z", "2026-04-01T04:00:00Z", "2026-07-01T04:00:00Z", "its last second"},
		{"Europe/Lisbon", day, "2024-02-29T12:00:00Z", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z", "a leap day"},
		{"Europe/Lisbon", day, "2023-02-28T12:00:00Z", "2023-02-28T00:00:00Z", "2023-03-01T00:00:00Z", "no leap day"},
		{"Europe/Lisbon", week, "2024-03-01T12:00:00Z", "2024-02-26T00:00:00Z", "2024-03-04T00:00:00Z", "a week with a leap day"},
		{"Europe/Lisbon", month, "2026-10-31T12:00:00Z", "2026-09-30T23:00:00Z", "2026-11-01T00:00:00Z", "it ends in winter time"},
		{"UTC", month, "2000-02-29T23:59:59Z", "2000-02-01T00:00:00Z", "2000-03-01T00:00:00Z", "a leap year of four centuries"},
		{"UTC", week, "2027-01-01T00:00:00Z", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z", "a week of two years"},
		{"UTC", week, "2026-11-01T23:59:59Z", "2026-10-26T00:00:00Z", "2026-11-02T00:00:00Z", "Sunday is the last day"},
		{"UTC", year, "2026-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "its last second"},
		{"UTC", year, "9998-12-31T23:59:59Z", "9998-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "the last year of all"},
		{"Asia/Kathmandu", day, "2026-01-01T00:00:00Z", "2025-12-31T18:15:00Z", "2026-01-01T18:15:00Z", "three quarters of an hour"},
		{"Asia/Kathmandu", year, "2025-12-31T18:15:00Z", "2025-12-31T18:15:00Z", "2026-12-31T18:15:00Z", "its first second"},
		{"Pacific/Apia", day, "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "the day before the one that is left out"},
		{"Pacific/Apia", day, "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z", "the day after it"},
		{"Pacific/Apia", week, "2011-12-30T10:00:00Z", "2011-12-26T10:00:00Z", "2012-01-01T10:00:00Z", "a week of six days"},
		{"Pacific/Apia", month, "2011-12-30T10:00:00Z", "2011-12-01T10:00:00Z", "2011-12-31T10:00:00Z", "a month of thirty days"},
		{"America/Asuncion", month, "2000-10-10T00:00:00Z", "2000-10-01T04:00:00Z", "2000-11-01T03:00:00Z", "midnight is left out"},
		{"Asia/Amman", month, "2011-04-10T00:00:00Z", "2011-03-31T22:00:00Z", "2011-04-30T21:00:00Z", "midnight is left out"},
		{"America/Havana", month, "2020-11-10T00:00:00Z", "2020-11-01T04:00:00Z", "2020-12-01T05:00:00Z", "two midnights"},
		{"America/Havana", day, "2020-11-01T04:30:00Z", "2020-11-01T04:00:00Z", "2020-11-02T05:00:00Z", "between its two midnights"},
		{"Asia/Gaza", month, "2004-10-10T00:00:00Z", "2004-09-30T21:00:00Z", "2004-10-31T22:00:00Z", "two midnights"},
		{"America/St_Johns", month, "2009-11-01T03:00:00Z", "2009-11-01T02:30:00Z", "2009-12-01T03:30:00Z", "the clock shows October again"},
		{"America/St_Johns", day, "2009-11-01T03:00:00Z", "2009-11-01T02:30:00Z", "2009-11-02T03:30:00Z", "the clock shows the day before again"},
	} {
		in := row.period.spanOf(moment(t, row.within), zoneFor(t, row.zone))
		if start, end := in.start.Format(time.RFC3339), in.end.Format(time.RFC3339); start != row.start || end != row.end {
			t.Errorf("%s, %s: the %s of %s lasts from %s to %s, want %s to %s", row.zone, row.whatIsSpecial, row.period, row.within, start, end, row.start, row.end)
		}
	}
}

func TestPeriodsBeginWherePostgreSQLSaysSo(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), testkit.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, name := range plainZones {
		zone := zoneFor(t, name)
		for _, p := range periods {
			rows, err := conn.Query(t.Context(), `
				select at, date_trunc($2, at at time zone $1) at time zone $1
				from generate_series('2000-01-01 00:30+00'::timestamptz, '2037-12-31', '13 hours') as at`, name, string(p))
			if err != nil {
				t.Fatal(err)
			}
			var at, want time.Time
			_, err = pgx.ForEachRow(rows, []any{&at, &want}, func() error {
				if got := p.spanOf(at, zone).start; !got.Equal(want) {
					t.Errorf("%s: the %s of %s begins at %s, PostgreSQL says %s", name, p, at.UTC(), got, want.UTC())
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestTheCalendarOfAGoalIsThatOfItsPeriod(t *testing.T) {
	start, end := moment(t, "2026-03-10T00:00:00Z"), moment(t, "2026-09-10T00:00:00Z")
	g := &goal{period: total, timezone: "UTC", origin: start, startsAt: start.Add(-time.Hour), endsAt: &end}
	c, err := newCalendar(g)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{start, end.Add(time.Hour)} {
		if in := c.spanOf(at); !in.start.Equal(start) || !in.end.Equal(end) {
			t.Errorf("in all, %s is in the span from %s to %s", at, in.start, in.end)
		}
	}
	g.period = day
	for _, at := range []time.Time{start, start.Add(30 * time.Hour), start} { // back and forth
		if in := c.spanOf(at); !in.holds(at) || in.end.Sub(in.start) != 24*time.Hour {
			t.Errorf("by day, %s is in the span from %s to %s", at, in.start, in.end)
		}
	}
}

func TestOnlyIANAZonesAreKnown(t *testing.T) {
	for _, name := range []string{
		"", "Local", "posixrules", "right/UTC", "localtime", "Mars/Olympus", "../etc/passwd", "america/sao_paulo", "UTC\x00", "UTC\n",
		"America//Sao_Paulo", "America/./Sao_Paulo", "America/.///./Sao_Paulo", "America/Sao_Paulo/", "America", "America/",
	} {
		if zone, err := zoneOf(name); err == nil {
			t.Errorf("%q is taken for %s", name, zone)
		}
		if _, kept := zones.Load(name); kept {
			t.Errorf("%q is kept", name)
		}
	}
}

// What this fails on after a new version of Go, the list lacks or has too much.
func TestTheZonesAreThoseThatGoBringsWithIt(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	left := maps.Clone(zoneNames)
	for _, file := range data.File {
		if strings.HasSuffix(file.Name, "/") {
			continue
		}
		zoneFor(t, file.Name)
		delete(left, file.Name)
	}
	if len(left) > 0 {
		t.Errorf("too much: %v", slices.Sorted(maps.Keys(left)))
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
