package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// standard is the path under which Go's standard library stands among the modules.
const standard = "std"

// part is a module, or the standard library, that is linked into a program.
type part struct {
	path     string
	version  string // none of what is the project's own, nor of the standard library
	own      bool
	licences []string // SPDX ids, all of which hold for some of it
	programs []string // by name, in the order of their folders
}

// linked is a package as go list describes it.
type linked struct {
	Dir      string
	Standard bool
	Module   struct {
		Path, Version, Dir string
		Main               bool
	}
}

// part is the package's module, or the standard library, and the folders in which a
// licence of the package may stand: its own and those above it, up to the module's.
func (l linked) part(root, goroot string) (p part, folders []string) {
	switch {
	case l.Standard:
		return part{path: standard}, []string{goroot}
	case l.Module.Main: // the project has one licence
		return part{path: l.Module.Path, own: true}, []string{root}
	}
	for folder := l.Dir; len(folder) >= len(l.Module.Dir); folder = filepath.Dir(folder) {
		folders = append(folders, folder)
	}
	return part{path: l.Module.Path, version: l.Module.Version}, folders
}

// madeOf returns what the programs are made of, sorted by path. It fails where a licence
// is not known or not allowed.
func madeOf(root string) ([]part, error) {
	all, err := programs(root)
	if err != nil {
		return nil, err
	}
	goroot, err := tools(root, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	parts, folders := map[string]part{}, map[string][]string{} // by path
	for _, program := range all {
		packages, err := packagesOf(root, program)
		if err != nil {
			return nil, err
		}
		for _, one := range packages {
			p, in := one.part(root, strings.TrimSpace(string(goroot)))
			p.programs = parts[p.path].programs
			if !slices.Contains(p.programs, program.name) {
				p.programs = append(p.programs, program.name)
			}
			parts[p.path] = p
			folders[p.path] = append(folders[p.path], in...)
		}
	}
	return licensed(parts, folders)
}

// licensed returns the parts, sorted by path, with the licences that stand in their
// folders.
func licensed(parts map[string]part, folders map[string][]string) (sorted []part, err error) {
	licences, err := newReader()
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(parts)) {
		p := parts[path]
		slices.Sort(folders[path])
		if p.licences, err = licences.in(slices.Compact(folders[path])); err != nil {
			return nil, fmt.Errorf("%s %s: %w", p.path, p.version, err)
		}
		sorted = append(sorted, p)
	}
	return sorted, nil
}

// packagesOf are all packages that are linked into a program.
func packagesOf(root string, p program) (all []linked, err error) {
	out, err := tools(root, "list", "-deps", "-tags", buildTags, "-json=Dir,Standard,Module", p.folder)
	if err != nil {
		return nil, err
	}
	lines := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var one linked
		switch err := lines.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read what go lists: %w", err)
		}
		all = append(all, one)
	}
}
