package commissions

import "strings"

// compared is a member of a repeat, and whether it says what the first call said.
type compared struct {
	member string
	same   bool
}

// differing are the names of the members that are not the same, in the order given,
// which is the alphabetical one.
func differing(members ...compared) (names []string) {
	for _, m := range members {
		if !m.same {
			names = append(names, m.member)
		}
	}
	return names
}

// mismatchHeader tells the caller which members of a repeat were not heeded.
func mismatchHeader(names []string) map[string]string {
	if len(names) == 0 {
		return nil
	}
	return map[string]string{"Idempotency-Mismatch": strings.Join(names, ", ")}
}
