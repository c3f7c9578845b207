package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"
)

// devel is the version of a module that was built from the workspace.
const devel = "(devel)"

// writeBills builds every program into folder/bin and writes folder/NAME.cdx.json, the
// bill of its materials: CycloneDX, in JSON. The same tree makes the same bytes.
func writeBills(root, folder string, parts []part) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return fmt.Errorf("find the folder for bills: %w", err)
	}
	all, err := programs(root)
	if err != nil {
		return err
	}
	binaries := filepath.Join(folder, "bin")
	if err := build(root, binaries, all); err != nil {
		return err
	}
	for _, p := range all {
		path := filepath.Join(folder, p.name+".cdx.json")
		if err := writeBill(filepath.Join(binaries, p.name), path, parts); err != nil {
			return fmt.Errorf("bill of %s: %w", p.name, err)
		}
	}
	return nil
}

// writeBill writes the bill of a built program, reads it again, and holds it against what
// the program says it is made of.
func writeBill(binary, path string, parts []part) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	bill, err := billOf(binary, info, parts)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create the file: %w", err)
	}
	err = cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bill, cyclonedx.SpecVersion1_6)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the file: %w", err)
	}
	return wantComplete(path, info)
}

// billOf is the bill of a built program: itself, and a component for each module that it
// names and for the standard library.
func billOf(binary string, info *debug.BuildInfo, parts []part) (*cyclonedx.BOM, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	hash := sha256.Sum256(content)
	itself, err := componentOf(&info.Main, parts)
	if err != nil {
		return nil, err
	}
	itself.Type = cyclonedx.ComponentTypeApplication
	itself.Name = info.Path
	itself.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(hash[:])}}

	components := []cyclonedx.Component{}
	for _, m := range modulesOf(info) {
		one, err := componentOf(m, parts)
		if err != nil {
			return nil, err
		}
		components = append(components, one)
	}
	bill := cyclonedx.NewBOM()
	bill.Metadata = &cyclonedx.Metadata{Component: &itself}
	bill.Components = &components
	return bill, nil
}

// modulesOf are the modules that a program names beside its own, and the standard library.
func modulesOf(info *debug.BuildInfo) []*debug.Module {
	return append([]*debug.Module{{Path: standard, Version: strings.TrimPrefix(info.GoVersion, "go")}}, info.Deps...)
}

// componentOf describes a module with the licences of the part that has its path. The
// project's own modules have the version that an image is stamped with.
func componentOf(m *debug.Module, parts []part) (none cyclonedx.Component, err error) {
	if m.Replace != nil {
		return none, fmt.Errorf("%s is replaced by %s, of which a bill could not tell the origin", m.Path, m.Replace.Path)
	}
	for _, p := range parts {
		if p.path != m.Path || p.version != m.Version && p.version != "" {
			continue
		}
		version := m.Version
		if p.own {
			version = stamp("VERSION")
		}
		purl, err := purlOf(m.Path, version)
		if err != nil {
			return none, err
		}
		one := cyclonedx.Component{
			BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary,
			Name: m.Path, Version: version, PackageURL: purl,
			Licenses: &cyclonedx.Licenses{choice(p.licences)},
		}
		if m.Sum != "" {
			one.Properties = &[]cyclonedx.Property{sumOf(m)}
		}
		return one, nil
	}
	return none, fmt.Errorf("no licence is known of %s %s", m.Path, m.Version)
}

// sumOf is what go.sum holds the module's files against.
func sumOf(m *debug.Module) cyclonedx.Property {
	return cyclonedx.Property{Name: "partilha:go.sum", Value: m.Sum}
}

// purlOf is the package URL of a module, which is in lower case: the component's name
// tells the path as it is.
func purlOf(path, version string) (string, error) {
	folder, name := filepath.Split(path)
	purl := packageurl.NewPackageURL(packageurl.TypeGolang, folder, name, version, nil, "")
	if err := purl.Normalize(); err != nil {
		return "", fmt.Errorf("package URL of %s %s: %w", path, version, err)
	}
	return purl.ToString(), nil
}

// choice is one licence by its id, or several as an expression.
func choice(ids []string) cyclonedx.LicenseChoice {
	if len(ids) == 1 {
		return cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: ids[0]}}
	}
	return cyclonedx.LicenseChoice{Expression: strings.Join(ids, " AND ")}
}

// wantComplete fails where the bill in a file lacks a module that a program names, or
// says of it less than its version, its purl, its sum and a licence.
func wantComplete(path string, info *debug.BuildInfo) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the bill: %w", err)
	}
	defer file.Close()
	var bill cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(file, cyclonedx.BOMFileFormatJSON).Decode(&bill); err != nil {
		return fmt.Errorf("read the bill: %w", err)
	}
	if bill.Components == nil {
		return errors.New("the bill has no components")
	}
	named := map[string]cyclonedx.Component{}
	for _, one := range *bill.Components {
		named[one.Name] = one
	}
	for _, m := range modulesOf(info) {
		one, ok := named[m.Path]
		if !ok {
			return fmt.Errorf("the bill lacks %s", m.Path)
		}
		purl, err := packageurl.FromString(one.PackageURL)
		if err != nil {
			return fmt.Errorf("the bill's package URL of %s: %w", m.Path, err)
		}
		version := m.Version == one.Version || m.Version == devel
		sum := m.Sum == "" || one.Properties != nil && slices.Contains(*one.Properties, sumOf(m))
		if !version || !sum || purl.Version != one.Version || one.Licenses == nil {
			return fmt.Errorf("the bill does not tell version, package URL, sum and licence of %s %s", m.Path, m.Version)
		}
	}
	return nil
}
