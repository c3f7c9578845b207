package check

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sections are the parts of the runbook below its headings of that level, by heading.
func sections(text, level string) map[string]string {
	parts := map[string]string{}
	heading := regexp.MustCompile(`(?m)^` + level + ` (.+)$`)
	places := heading.FindAllStringSubmatchIndex(text, -1)
	for i, place := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		parts[text[place[2]:place[3]]] = text[place[1]:end]
	}
	return parts
}

func TestEachAlertHasASectionOfTheRunbookAndEachSectionAnAlert(t *testing.T) {
	text, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	told := sections(sections(string(text), "##")["Alerts"], "###")
	names := map[string]bool{}
	for _, alert := range alertsOf(t) {
		if names[alert.Alert] {
			t.Errorf("there are two alerts %s", alert.Alert)
		}
		names[alert.Alert] = true
		if severity := alert.Labels["severity"]; !slices.Contains([]string{"page", "ticket"}, severity) {
			t.Errorf("%s has the severity %q", alert.Alert, severity)
		}
		if summary := alert.Annotations["summary"]; !strings.HasSuffix(summary, ".") {
			t.Errorf("%s has the summary %q", alert.Alert, summary)
		}
		// The anchor of a heading of one word is that word in small letters.
		if link, want := alert.Annotations["runbook"], "deploy/RUNBOOK.md#"+strings.ToLower(alert.Alert); link != want {
			t.Errorf("%s links to %q, want %q", alert.Alert, link, want)
		}
		section, found := told[alert.Alert]
		if !found {
			t.Errorf("the runbook has no section on %s", alert.Alert)
		}
		for _, part := range []string{"**Means.** ", "**Look at.** ", "**Do.** "} {
			if found && strings.Count(section, part) != 1 {
				t.Errorf("the section on %s says %s %d times", alert.Alert, part, strings.Count(section, part))
			}
		}
	}
	for name := range told {
		if !names[name] {
			t.Errorf("the runbook has a section on %s, which is no alert", name)
		}
	}
}
