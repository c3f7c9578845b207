package goals

import (
	"fmt"
	"sync"
	"time"
	_ "time/tzdata" // zones are known also where the system brings none
)

const defaultZone = "America/Sao_Paulo"

// zones holds every zone that was asked for; there are a few hundred at most.
var zones sync.Map

// zoneOf returns the time zone of an IANA name.
//
// Names of such zones begin with a capital. What else the system may have beside them
// ("posixrules", "right/UTC"), and the zone of this machine, is refused: it would not
// mean the same everywhere.
func zoneOf(name string) (*time.Location, error) {
	if zone, known := zones.Load(name); known {
		return zone.(*time.Location), nil
	}
	if name == "" || name[0] < 'A' || name[0] > 'Z' || name == "Local" {
		return nil, fmt.Errorf("load time zone %q: not an IANA name", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("load time zone: %w", err)
	}
	zones.Store(name, zone)
	return zone, nil
}

// span is one period of a goal: from start, inclusive, to end, exclusive; both in UTC.
type span struct {
	start time.Time
	end   *time.Time // nil: it has no end
}

func (s span) holds(at time.Time) bool {
	return !at.Before(s.start) && (s.end == nil || at.Before(*s.end))
}

// calendar divides time into the periods of one goal. They follow each other without
// a gap or an overlap.
type calendar struct {
	goal *goal
	zone *time.Location
	last span // what was answered last: sales come in the order of time, nearly
}

func newCalendar(g *goal) (*calendar, error) {
	zone, err := zoneOf(g.timezone)
	if err != nil {
		return nil, fmt.Errorf("read goal %s: %w", g.id, err)
	}
	return &calendar{goal: g, zone: zone}, nil
}

// spanOf returns the period that holds at. A goal without periods has one, which is
// the whole time in which it counts; it is returned for every moment.
func (c *calendar) spanOf(at time.Time) span {
	if c.goal.period == total {
		return span{c.goal.startsAt, c.goal.endsAt}
	}
	if c.last.end == nil || !c.last.holds(at) {
		c.last = monthOf(at, c.zone)
	}
	return c.last
}

// monthOf returns the calendar month that holds at in zone.
func monthOf(at time.Time, zone *time.Location) span {
	year, month, _ := at.In(zone).Date()
	start, end := monthStart(year, month, zone), monthStart(year, month+1, zone)
	if !at.Before(end) { // the month had begun when the clock was set back into the last one
		start, end = end, monthStart(year, month+2, zone)
	}
	return span{start, &end}
}

// monthStart returns the first moment of a month in zone, in UTC: midnight, the first
// of the two where the clock is set back over it, or the moment of the change where
// the clock is set forward over it. Months beyond December are those of the next year.
func monthStart(year int, month time.Month, zone *time.Location) time.Time {
	midnight := time.Date(year, month, 1, 0, 0, 0, 0, zone)
	since, until := midnight.ZoneBounds()
	switch {
	case midnight.Day() != 1:
		return until.UTC() // there is no midnight; this is before the change
	case midnight.Hour() != 0 || midnight.Minute() != 0 || midnight.Second() != 0:
		return since.UTC() // there is no midnight; this is after the change
	case since.IsZero():
		return midnight.UTC()
	}
	_, offset := midnight.Zone()
	_, before := since.Add(-time.Second).Zone()
	if other := midnight.Add(time.Duration(offset-before) * time.Second); other.Before(since) {
		return other.UTC()
	}
	return midnight.UTC()
}
