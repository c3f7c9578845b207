package goals

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones are known also where the system brings none
)

const defaultZone = "America/Sao_Paulo"

// zoneList has the name of every zone of time/tzdata, in a line of its own.
//
//go:embed zones.txt
var zoneList string

var zoneNames = func() map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(zoneList) {
		names[name] = true
	}
	return names
}()

// zones holds every zone that was asked for.
var zones sync.Map

// zoneOf returns the time zone of an IANA name: one that every build of this program
// brings with it. What else the system may have ("posixrules", "right/UTC"), other ways
// to write its path ("Europe//Lisbon") and the zone of this machine are refused: a goal
// with such a zone could not be counted everywhere.
func zoneOf(name string) (*time.Location, error) {
	if zone, known := zones.Load(name); known {
		return zone.(*time.Location), nil
	}
	if !zoneNames[name] {
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
	last span // what was answered last: facts come in the order of time, nearly
}

func newCalendar(g *goal) (*calendar, error) {
	zone, err := zoneOf(g.timezone)
	if err != nil {
		return nil, fmt.Errorf("read goal %s: %w", g.id, err)
	}
	return &calendar{goal: g, zone: zone}, nil
}

// spanOf returns the period that holds at. A goal without periods has one, which is
// returned for every moment: it ends with the goal, and keeps the start that the goal
// was made with, by which totals know it, also where the goal starts earlier by now.
func (c *calendar) spanOf(at time.Time) span {
	if c.goal.period == total {
		return span{c.goal.origin, c.goal.endsAt}
	}
	if c.last.end == nil || !c.last.holds(at) {
		c.last = c.goal.period.spanOf(at, c.zone)
	}
	return c.last
}
