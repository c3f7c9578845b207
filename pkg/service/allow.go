package service

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"partilha.dev/pkg/seal"
)

// The forms that are lists, with or without spaces after their commas.
const (
	networkList = "networks"
	portList    = "ports, or *"
)

// forms are what the tag allow may name beside words and ranges. Each returns what is
// wrong with a value, as the end of a sentence that begins with the variable's name.
var forms = map[string]func(string) error{
	"text":                         anything,
	"host:port":                    checkAddress,
	"PostgreSQL URL":               checkPostgres,
	"NATS URLs":                    checkNATS,
	"HTTP URL":                     checkHTTP,
	networkList:                    checkNetworks,
	portList:                       checkPorts,
	"keys of 32 bytes in base64":   checkKeys,
	"percentage, or off":           checkPercentage,
	"bytes such as 512MiB, or off": anything, // the runtime ends the process over what it does not understand
}

func anything(string) error { return nil }

// check returns an error that names the variable where value is not what it may be.
func (v variable) check(value string) error {
	err := v.judge(value)
	switch {
	case err == nil:
		return nil
	case v.secret:
		return fmt.Errorf("%s %w", v.name, err)
	default:
		return fmt.Errorf("%s %q %w", v.name, value, err)
	}
}

// plain is a list without the spaces that are allowed around its elements, and any
// other value as it is.
func (v variable) plain(value string) string {
	if v.allow != networkList && v.allow != portList {
		return value
	}
	elements := strings.Split(value, ",")
	for i := range elements {
		elements[i] = strings.TrimSpace(elements[i])
	}
	return strings.Join(elements, ",")
}

func (v variable) judge(value string) error {
	if form, ok := forms[v.allow]; ok {
		return form(value)
	}
	if least, most, ok := strings.Cut(v.allow, ".."); ok {
		return checkRange(v.kind, value, least, most)
	}
	words := strings.Split(v.allow, "|")
	switch {
	case slices.Contains(words, value):
		return nil
	case len(words) == 2:
		return fmt.Errorf("is neither %s nor %s", words[0], words[1])
	default:
		return fmt.Errorf("is none of %s", strings.Join(words, ", "))
	}
}

// checkRange judges a duration where the setting is one, and else a whole number.
func checkRange(kind reflect.Type, value, least, most string) error {
	if kind == reflect.TypeFor[time.Duration]() {
		if !within(value, least, most, time.ParseDuration) {
			return fmt.Errorf("is not a duration such as %s, from %s to %s", least, least, most)
		}
		return nil
	}
	if !within(value, least, most, strconv.Atoi) {
		return fmt.Errorf("is not a whole number from %s to %s", least, most)
	}
	return nil
}

func within[N int | time.Duration](value, least, most string, parse func(string) (N, error)) bool {
	v, err := parse(value)
	low, lowErr := parse(least)
	high, highErr := parse(most)
	return errors.Join(err, lowErr, highErr) == nil && low <= v && v <= high
}

func checkAddress(value string) error {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("is not an address such as 127.0.0.1:8080")
	}
	return nil
}

// checkPostgres lets through what pgx reads, several hosts among it, which is more than a
// URL may be. It says nothing of what the URL parser finds: that may be a piece of the
// password.
func checkPostgres(value string) error {
	malformed := errors.New("is not of the form postgres://user:password@host:port/database, several hosts separated by commas")
	if !strings.HasPrefix(value, "postgres://") && !strings.HasPrefix(value, "postgresql://") {
		return malformed
	}
	_, err := pgx.ParseConfig(value)
	if err == nil {
		return nil
	}
	if _, wrong := url.Parse(value); wrong != nil {
		return malformed
	}
	return fmt.Errorf("cannot be used: %w", errors.Unwrap(err))
}

func checkNATS(value string) error {
	for server := range strings.SplitSeq(value, ",") {
		if !isURL(strings.TrimSpace(server), "nats", "tls", "ws", "wss") {
			return errors.New("is not of the form nats://user:password@host:port, several separated by commas")
		}
	}
	return nil
}

func checkHTTP(value string) error {
	if !isURL(value, "http", "https") {
		return errors.New("is not of the form http://host:port")
	}
	return nil
}

func isURL(value string, schemes ...string) bool {
	parsed, err := url.Parse(value)
	return err == nil && slices.Contains(schemes, parsed.Scheme) && parsed.Hostname() != ""
}

func checkNetworks(value string) error {
	for network := range strings.SplitSeq(value, ",") {
		if _, err := netip.ParsePrefix(strings.TrimSpace(network)); err != nil {
			return errors.New("is not a list of networks such as 10.0.0.0/8,fd00::/8")
		}
	}
	return nil
}

func checkPorts(value string) error {
	if strings.TrimSpace(value) == "*" {
		return nil
	}
	for port := range strings.SplitSeq(value, ",") {
		if number, err := strconv.ParseUint(strings.TrimSpace(port), 10, 16); err != nil || number == 0 {
			return errors.New("is neither * nor a list of ports such as 443,8443")
		}
	}
	return nil
}

func checkKeys(value string) error {
	if _, err := seal.NewRing(value); err != nil {
		return fmt.Errorf("is not one or more keys of 32 bytes in base64, separated by commas: %w", err)
	}
	return nil
}

func checkPercentage(value string) error {
	if number, err := strconv.ParseInt(value, 10, 32); value != "off" && (err != nil || number < 1) {
		return errors.New("is neither off nor a whole number above 0")
	}
	return nil
}
