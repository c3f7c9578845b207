package openapi

import (
	"errors"
	"fmt"
	"time"
)

const (
	firstYear = 2000
	lastYear  = 9999

	secondsLength  = len("2006-01-02T15:04:05")
	microsDigits   = 6
	wireTimeLayout = "2006-01-02T15:04:05.999999Z"
)

var (
	errTimeShape  = errors.New("want YYYY-MM-DDThh:mm:ss, an optional fraction, and Z or an offset")
	errTimeValue  = errors.New("no such date or time of day")
	errTimeOffset = errors.New("want Z, ±hh:mm, ±hhmm or ±hh")
	errTimeYear   = fmt.Errorf("want a year from %d to %d", firstYear, lastYear)
)

// Time is an instant on the wire. It is read as [ParseTime] reads it, whatever the
// offset, and written in UTC with a Z and the shortest fraction, at most microseconds.
type Time struct{ time.Time }

// ParseTime reads an ISO 8601 date and time of day with an offset and returns the
// instant in UTC, cut (not rounded) to microseconds.
//
// The shape is YYYY-MM-DD, a capital T, hh:mm:ss, at will a point and one or more
// digits, then Z, ±hh:mm, ±hhmm or ±hh. An error is: any other shape, a day that the
// calendar does not have, 24:00:00, a leap second, and a year outside 2000 to 9999 as
// written or in UTC.
func ParseTime(s string) (time.Time, error) {
	if len(s) <= secondsLength || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return time.Time{}, errTimeShape
	}
	year, ok1 := digits(s[0:4])
	month, ok2 := digits(s[5:7])
	day, ok3 := digits(s[8:10])
	hour, ok4 := digits(s[11:13])
	minute, ok5 := digits(s[14:16])
	second, ok6 := digits(s[17:19])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) {
		return time.Time{}, errTimeShape
	}
	if year < firstYear {
		return time.Time{}, errTimeYear
	}
	micros, rest, ok := fraction(s[secondsLength:])
	if !ok {
		return time.Time{}, errTimeShape
	}
	offset, ok := parseOffset(rest)
	if !ok {
		return time.Time{}, errTimeOffset
	}
	local := time.Date(year, time.Month(month), day, hour, minute, second, micros*int(time.Microsecond), time.UTC)
	if local.Month() != time.Month(month) || local.Hour() != hour || local.Minute() != minute || local.Second() != second {
		return time.Time{}, errTimeValue
	}
	instant := local.Add(-offset)
	if y := instant.Year(); y < firstYear || y > lastYear {
		return time.Time{}, errTimeYear
	}
	return instant, nil
}

// UnmarshalJSON reads a JSON string as [ParseTime] does. A null leaves the time as it is.
func (t *Time) UnmarshalJSON(token []byte) error {
	if string(token) == "null" {
		return nil
	}
	text, err := unquote(token)
	if err != nil {
		return fmt.Errorf("read time: %w", errTimeShape)
	}
	instant, err := ParseTime(text)
	if err != nil {
		return fmt.Errorf("read time: %w", err)
	}
	t.Time = instant
	return nil
}

// MarshalJSON writes the instant in UTC, for example "2026-03-01T15:00:00.25Z".
// It fails for a year that four digits cannot hold.
func (t Time) MarshalJSON() ([]byte, error) {
	instant := t.UTC()
	if y := instant.Year(); y < 0 || y > lastYear {
		return nil, fmt.Errorf("write time: year %d does not fit four digits", y)
	}
	token := make([]byte, 0, len(wireTimeLayout)+2)
	token = append(token, '"')
	token = instant.AppendFormat(token, wireTimeLayout)
	return append(token, '"'), nil
}

// digits returns the value of an all-digit text; ok is false where another byte occurs.
func digits(s string) (value int, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		value = value*10 + int(s[i]-'0')
	}
	return value, true
}

// fraction reads an optional point and digits off the front of s and returns the
// microseconds that they make, and what follows them.
func fraction(s string) (micros int, rest string, ok bool) {
	if s == "" || s[0] != '.' {
		return 0, s, true
	}
	end := 1
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		if end <= microsDigits {
			micros = micros*10 + int(s[end]-'0')
		}
		end++
	}
	for n := end - 1; n < microsDigits; n++ {
		micros *= 10
	}
	return micros, s[end:], end > 1
}

// parseOffset reads Z, ±hh:mm, ±hhmm or ±hh as a distance east of UTC.
func parseOffset(s string) (time.Duration, bool) {
	if s == "Z" {
		return 0, true
	}
	if len(s) == len("+hh:mm") && s[3] == ':' {
		s = s[:3] + s[4:]
	}
	if (len(s) != len("+hh") && len(s) != len("+hhmm")) || (s[0] != '+' && s[0] != '-') {
		return 0, false
	}
	hours, ok1 := digits(s[1:3])
	minutes, ok2 := digits(s[3:])
	if !ok1 || !ok2 || hours > 23 || minutes > 59 {
		return 0, false
	}
	east := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if s[0] == '-' {
		east = -east
	}
	return east, true
}

// unquote returns the text of a JSON string token.
func unquote(token []byte) (string, error) {
	if len(token) < 2 || token[0] != '"' {
		return "", errors.New("want a JSON string")
	}
	for _, c := range token {
		if c == '\\' {
			return unescape(token)
		}
	}
	return string(token[1 : len(token)-1]), nil
}
