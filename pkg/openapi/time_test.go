package openapi_test

import (
	"encoding/json"
	"testing"
	"time"

	"partilha.dev/pkg/openapi"
)

func TestParseTimeReadsEveryOffset(t *testing.T) {
	for text, want := range map[string]string{
		"2026-03-01T12:00:00Z":                      "2026-03-01T12:00:00Z",
		"2026-03-01T12:00:00+00:00":                 "2026-03-01T12:00:00Z",
		"2026-03-01T12:00:00-03:00":                 "2026-03-01T15:00:00Z",
		"2026-03-01T12:00:00-0330":                  "2026-03-01T15:30:00Z",
		"2026-03-01T12:00:00-03":                    "2026-03-01T15:00:00Z",
		"2026-03-01T12:00:00+05:45":                 "2026-03-01T06:15:00Z",
		"2026-03-01T00:00:00+14":                    "2026-02-28T10:00:00Z",
		"2026-03-01T12:00:00.5Z":                    "2026-03-01T12:00:00.5Z",
		"2026-03-01T12:00:00.000001Z":               "2026-03-01T12:00:00.000001Z",
		"2026-03-01T12:00:00.1234569Z":              "2026-03-01T12:00:00.123456Z",
		"2026-03-01T23:59:59.999999999999999+00:00": "2026-03-01T23:59:59.999999Z",
		"2024-02-29T00:00:00Z":                      "2024-02-29T00:00:00Z",
		"2000-02-29T00:00:00Z":                      "2000-02-29T00:00:00Z",
		"2000-01-01T00:00:00Z":                      "2000-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999Z":               "9999-12-31T23:59:59.999999Z",
	} {
		got, err := openapi.ParseTime(text)
		if err != nil || got.Location() != time.UTC {
			t.Errorf("%s: got %v, %v", text, got, err)
			continue
		}
		token, err := json.Marshal(openapi.Time{Time: got})
		if err != nil || string(token) != `"`+want+`"` {
			t.Errorf("%s: got %s, %v; want %s", text, token, err, want)
		}
	}
}

func TestParseTimeRefuses(t *testing.T) {
	for _, text := range []string{
		"", "yesterday", "2026-03-01", "2026-03-01T12:00Z", "2026-03-01T12:00:00", "2026-03-01 12:00:00Z",
		"2026-03-01t12:00:00Z", "2026-03-01T12:00:00z", "2026-03-01T12:00:00.Z", "2026-03-01T12:00:00,5Z",
		"2026-00-01T12:00:00Z", "2026-13-01T12:00:00Z", "2026-02-30T12:00:00Z", "2025-02-29T12:00:00Z", "2100-02-29T00:00:00Z",
		"2026-04-31T12:00:00Z", "2026-03-00T12:00:00Z", "2026-03-32T12:00:00Z",
		"2026-03-01T24:00:00Z", "2026-03-01T12:60:00Z", "2026-12-31T23:59:60Z",
		"1999-12-31T23:59:59Z", "1999-12-31T23:59:59-03:00", "2000-01-01T00:00:00+03:00", "9999-12-31T23:59:59-03:00",
		"2026-03-01T12:00:00+3", "2026-03-01T12:00:00+3:00", "2026-03-01T12:00:00+03:0", "2026-03-01T12:00:00+24:00",
		"2026-03-01T12:00:00+03:60", "2026-03-01T12:00:00+0a:00", "2026-03-01T12:00:00+03:00Z", "2026-03-01T12:00:00ZZ",
		"2026-03-01T12:00:00 Z", " 2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z ", "2026-03-01T12:00:00UTC",
		"26-03-01T12:00:00Z", "+2026-03-01T12:00:00Z", "2026-3-1T12:00:00Z", "20260301T120000Z", "2026-W09-7T12:00:00Z",
		"２026-03-01T12:00:00Z", "2026-03-01T-1:00:00Z", "2026-03-01T12:00:00.5", "2026-03-01T12:00:00.5.5Z",
	} {
		if got, err := openapi.ParseTime(text); err == nil {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestTimeReadsWhatParseTimeReads(t *testing.T) {
	var at openapi.Time
	if err := json.Unmarshal([]byte(`"2026-03-01T12:00:00-03"`), &at); err != nil || at.Hour() != 15 {
		t.Errorf("got %v, %v", at, err)
	}
	if err := json.Unmarshal([]byte(`"2026-03-01\u005412:00:01-03"`), &at); err != nil || at.Second() != 1 {
		t.Errorf("an escape: got %v, %v", at, err)
	}
	if err := json.Unmarshal([]byte(`null`), &at); err != nil || at.Second() != 1 {
		t.Errorf("null: got %v, %v", at, err)
	}
	for _, token := range []string{`"2026-03-01T12:00:00"`, `5`, `{}`, `true`} {
		if err := at.UnmarshalJSON([]byte(token)); err == nil || at.Second() != 1 {
			t.Errorf("%s: got %v, %v", token, at, err)
		}
	}
}

func TestTimeRefusesToWriteAYearOfFiveDigits(t *testing.T) {
	if token, err := (openapi.Time{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}).MarshalJSON(); err == nil {
		t.Errorf("got %s", token)
	}
}
