package pix

import "strings"

// A tax number ends in two check digits, each the sum of the characters before it, times
// weights, modulo 11. Characters count as their ASCII code less that of 0, so that a
// CNPJ with letters is checked like one of digits.

const (
	cpfLength  = 11
	cnpjLength = 14
	checked    = 2 // digits at the end
)

// The punctuation in which each is usually written, wherever in it that stands.
var (
	plainCPF  = strings.NewReplacer(".", "", "-", "")
	plainCNPJ = strings.NewReplacer(".", "", "-", "", "/", "")
)

func readCPF(text string) (string, string) {
	number := plainCPF.Replace(text)
	if len(number) != cpfLength || strings.Trim(number, digits) != "" {
		return "", "a cpf has 11 digits"
	}
	if !genuine(number, cpfLength) {
		return "", "is no valid cpf: its check digits do not fit"
	}
	return number, ""
}

func readCNPJ(text string) (string, string) {
	number := upper(plainCNPJ.Replace(text))
	if len(number) != cnpjLength || strings.Trim(number, digits+capitals) != "" || strings.Trim(number[cnpjLength-checked:], digits) != "" {
		return "", "a cnpj has 12 digits or letters, and 2 digits"
	}
	if !genuine(number, cnpjWeights) {
		return "", "is no valid cnpj: its check digits do not fit"
	}
	return number, ""
}

const (
	digits   = "0123456789"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// cnpjWeights is the greatest weight in a CNPJ; the one after 2 is the greatest again.
const cnpjWeights = 9

// genuine tells whether the check digits fit, and the number is not one character all
// along: such numbers fit and are nobody's.
func genuine(number string, heaviest int) bool {
	if strings.Count(number, number[:1]) == len(number) {
		return false
	}
	for i := len(number) - checked; i < len(number); i++ {
		if number[i] != checkDigit(number[:i], heaviest) {
			return false
		}
	}
	return true
}

// checkDigit is the digit that follows the number. The weights go up from 2, beginning
// at its end.
func checkDigit(number string, heaviest int) byte {
	sum := 0
	for i := range len(number) {
		back := len(number) - 1 - i
		weight := 2 + back%(heaviest-1)
		sum += weight * int(number[i]-'0')
	}
	if rest := sum % 11; rest >= 2 {
		return byte('0' + 11 - rest)
	}
	return '0'
}
