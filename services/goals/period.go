package goals

import "time"

// period is the span of time in which a goal is to be reached, again and again.
type period string

const (
	total   period = "total" // once in all
	day     period = "day"   // a calendar day in the goal's time zone, like all that follow
	week    period = "week"  // from Monday on
	month   period = "month"
	quarter period = "quarter" // from January, April, July and October on
	year    period = "year"
)

// date is a day of the calendar, wherever that is. Days below 1 or beyond the month's
// last, and months beyond December, are those of the months and years around it.
type date struct {
	year  int
	month time.Month
	day   int
}

// first returns the day on which the period begins that the day is in.
func (p period) first(d date) date {
	switch p {
	case week:
		sinceMonday := (int(time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC).Weekday()) + 6) % 7
		return date{d.year, d.month, d.day - sinceMonday}
	case month:
		return date{d.year, d.month, 1}
	case quarter:
		return date{d.year, d.month - (d.month-1)%3, 1}
	case year:
		return date{d.year, time.January, 1}
	default:
		return d
	}
}

// next returns the day on which the period begins that follows the one beginning on d.
func (p period) next(d date) date {
	switch p {
	case week:
		d.day += 7
	case month:
		d.month++
	case quarter:
		d.month += 3
	case year:
		d.year++
	default:
		d.day++
	}
	return d
}

// spanOf returns the day, week, month, quarter or year of zone that holds at.
func (p period) spanOf(at time.Time, zone *time.Location) span {
	var d date
	d.year, d.month, d.day = at.In(zone).Date()
	d = p.first(d)
	start, after := d.begins(zone), p.next(d)
	end := after.begins(zone)
	for !at.Before(end) { // it had ended when the clock was set back into it
		after = p.next(after)
		start, end = end, after.begins(zone)
	}
	return span{start, &end}
}

// begins returns the first moment of the day in zone, in UTC: midnight, the first of
// the two where the clock is set back over it, or the moment of the change where the
// clock is set forward over it, or over the whole day.
func (d date) begins(zone *time.Location) time.Time {
	midnight := time.Date(d.year, d.month, d.day, 0, 0, 0, 0, zone)
	since, until := midnight.ZoneBounds()
	wanted := time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC)
	_, offset := midnight.Zone()
	switch shown := midnight.Add(time.Duration(offset) * time.Second); {
	case shown.Before(wanted):
		return until.UTC() // there is no midnight; this is before the change
	case shown.After(wanted):
		return since.UTC() // there is no midnight; this is after the change
	case since.IsZero():
		return midnight.UTC()
	}
	_, before := since.Add(-time.Second).Zone()
	if other := midnight.Add(time.Duration(offset-before) * time.Second); other.Before(since) {
		return other.UTC()
	}
	return midnight.UTC()
}
