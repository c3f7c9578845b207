package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Address is where a program answers.
type Address struct {
	Addr string `env:"ADDR" envDefault:"127.0.0.1:8080" allow:"host:port"` // where it answers; port 0 picks a free one
}

// healthcheckWithin is longer than /readyz itself may take.
const healthcheckWithin = 3 * time.Second

// Healthcheck asks the program that serves at ADDR in this container or on this machine
// whether it can do its work. It needs nothing but that variable, so that an image
// without a shell can be asked by its own binary. The error is the program's answer, or
// why there is none.
func Healthcheck(ctx context.Context) error {
	var at Address
	if err := ReadEnvironment(&at); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(at.Addr)
	if err != nil {
		return fmt.Errorf("read ADDR: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost" // whoever listens everywhere listens there too
	}
	ctx, cancel := context.WithTimeout(ctx, healthcheckWithin)
	defer cancel()
	readyz := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/readyz"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, readyz.String(), nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", &readyz, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err // it names the address
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err != nil {
		return fmt.Errorf("read %s: %w", &readyz, err)
	}
	return errors.New(strings.TrimSpace(string(answer)))
}
