// Command setup installs what the tests and benchmarks need and this machine lacks:
// PostgreSQL's server programs. It starts nothing and changes no server that the
// system runs.
package main

import (
	"context"
	"fmt"
	"os"

	"partilha.dev/pkg/pgserver"
)

func main() {
	if err := pgserver.Install(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "setup:", err)
		os.Exit(1)
	}
}
