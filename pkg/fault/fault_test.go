package fault

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestAFaultSurvivesWrapping(t *testing.T) {
	cause := errors.New("connection refused")
	err := fmt.Errorf("record sale: %w", Unreachable(cause))
	if KindOf(err) != Unavailable || Of(err).Code != "unavailable" {
		t.Errorf("kind %d, code %q", KindOf(err), Of(err).Code)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
	if strings.Contains(Of(err).Message, "refused") {
		t.Errorf("the message shows the cause: %s", Of(err).Message)
	}
}

func TestAnErrorWithoutAFaultIsUnknown(t *testing.T) {
	if KindOf(errors.New("surprise")) != Unknown || KindOf(nil) != Unknown {
		t.Error("a plain error has a kind")
	}
}

func TestBecauseLeavesTheOriginalAlone(t *testing.T) {
	shared := New(Invalid, "invalid_body", "no")
	if shared.Because(errors.New("x")); shared.Unwrap() != nil {
		t.Error("a cause was added to a shared fault")
	}
}

func TestAnAnswerListsAtMostAHundredIssues(t *testing.T) {
	f := InvalidBody(make([]Detail, 101)...)
	if len(f.Details) != 100 || !strings.HasPrefix(f.Message, "more than 100 ") {
		t.Errorf("%d details, %q", len(f.Details), f.Message)
	}
	if f := InvalidBody(make([]Detail, 100)...); len(f.Details) != 100 || f.Message != "100 fields are not valid" {
		t.Errorf("%d details, %q", len(f.Details), f.Message)
	}
	if f := InvalidBody(Detail{}); f.Message != "1 field is not valid" {
		t.Errorf("%q", f.Message)
	}
}

func TestPathsThatShareALongNameDoNotMakeALongAnswer(t *testing.T) {
	long := Detail{Path: "/" + strings.Repeat("x", 60<<10)}
	if f := InvalidBody(long, long); len(f.Details) != 1 || !strings.HasPrefix(f.Message, "more than 1 ") {
		t.Errorf("%d details, %q", len(f.Details), f.Message)
	}
	if f := InvalidBody(long); len(f.Details) != 1 || f.Message != "1 field is not valid" {
		t.Errorf("%d details, %q", len(f.Details), f.Message)
	}
}
