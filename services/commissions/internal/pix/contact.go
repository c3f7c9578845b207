package pix

import (
	"regexp"
	"strings"
)

var (
	anyPhone = regexp.MustCompile(`^\+[1-9][0-9]{7,14}$`)
	// Of Brazil: the area code has no 0, and a number 8 or 9 digits.
	brazilianPhone = regexp.MustCompile(`^\+55[1-9]{2}[0-9]{8,9}$`)
)

func readPhone(text string) (string, string) {
	if !anyPhone.MatchString(text) {
		return "", "a phone is written as + and 8 to 15 digits, the country first"
	}
	if strings.HasPrefix(text, "+55") && !brazilianPhone.MatchString(text) {
		return "", "a phone in Brazil is written as +55, 2 digits of the area, and 8 or 9 more"
	}
	return text, ""
}

const (
	longestEmail = 77 // as the central bank has it
	longestLocal = 64 // characters before the @
)

// An address begins with a letter, a digit or an underscore: one that began with =, + or
// - would be a formula to a spreadsheet that the payout list is opened with.
var email = regexp.MustCompile("^[a-z0-9_][a-z0-9!#$%&'*+/=?^_`{|}~-]*" + `(\.[a-z0-9!#$%&'*+/=?^_` + "`" + `{|}~-]+)*` +
	`@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

func readEmail(text string) (string, string) {
	address := lower(text)
	switch at := strings.LastIndexByte(address, '@'); {
	case len(address) > longestEmail:
		return "", "an email has at most 77 characters"
	case !email.MatchString(address) || at > longestLocal:
		return "", "must be an e-mail address"
	}
	return address, ""
}
