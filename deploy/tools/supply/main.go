// Command supply tells what the platform's programs are made of. It keeps
// deploy/LICENCES.md, the table of every module that is linked into one of them and of
// its licences, and writes a bill of materials for each program.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . page ../../..

// page is where the table is kept, in the project.
const page = "deploy/LICENCES.md"

const usage = `usage:
  supply page PROJECT           writes the project's ` + page + `
  supply check PROJECT FOLDER   fails where that page is not up to date; builds the programs into FOLDER/bin
                                and writes a bill of materials for each into FOLDER`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "page":
		return writePage(args[1])
	case len(args) == 3 && args[0] == "check":
		return check(args[1], args[2])
	}
	return errors.New(usage)
}

func writePage(root string) error {
	parts, err := madeOf(root)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, page), []byte(render(parts)), 0o644); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

func check(root, folder string) error {
	parts, err := madeOf(root)
	if err != nil {
		return err
	}
	if err := compare(root, parts); err != nil {
		return err
	}
	if err := writeBills(root, folder, parts); err != nil {
		return err
	}
	fmt.Printf("%s is up to date; the bills are in %s\n", page, filepath.Clean(folder))
	return nil
}

// compare fails where the page that is kept is not that of the parts.
func compare(root string, parts []part) error {
	kept, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return fmt.Errorf("read the table: %w", err)
	}
	if string(kept) != render(parts) {
		return fmt.Errorf("%s is not what the programs are made of: run make generate", page)
	}
	return nil
}
