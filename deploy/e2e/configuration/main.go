// Command configuration writes deploy/CONFIGURATION.md, the table of every variable that a
// program of the platform reads, from the fields that read them: their tags and comments.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../../..

// page is where the table is kept, in the project.
const page = "deploy/CONFIGURATION.md"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: configuration PROJECT")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "configuration:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	all, err := read(root)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, page), []byte(render(all)), 0o644); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}
