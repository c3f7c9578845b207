package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sources are the folders of main packages, in the project, of which programs are made.
var sources = []string{"services/*/cmd/*", "deploy/local", "deploy/local/cmd/*"}

// program is a main package: its name, and its folder as go knows it from the root.
type program struct{ name, folder string }

func programs(root string) (all []program, err error) {
	for _, pattern := range sources {
		folders, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, fmt.Errorf("find programs: %w", err)
		}
		for _, folder := range folders {
			inProject, err := filepath.Rel(root, folder)
			if err != nil {
				return nil, fmt.Errorf("find programs: %w", err)
			}
			all = append(all, program{filepath.Base(folder), "./" + filepath.ToSlash(inProject)})
		}
	}
	return all, nil
}

// tools runs go on the workspace as deploy/docker/Dockerfile does, for Linux on amd64
// wherever it runs, and returns what it prints.
func tools(root string, args ...string) ([]byte, error) {
	command := exec.Command("go", args...)
	command.Dir = root
	command.Env = append(os.Environ(), "GOWORK=auto", "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	out, err := command.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return out, nil
}

// How the images' programs are built, so that a bill's hash is that of the program in an
// image of the same tree, Go, VERSION and COMMIT.
const (
	buildTags  = "timetzdata"
	buildFlags = "-trimpath -buildvcs=false -tags " + buildTags
	linkFlags  = "-s -w -buildid= -X partilha.dev/pkg/service.version=${VERSION} -X partilha.dev/pkg/service.commit=${COMMIT}"
)

// stamp is what an image is stamped with: a variable of the environment, or the default
// that deploy/docker/Dockerfile has.
func stamp(name string) string {
	return cmp.Or(os.Getenv(name), map[string]string{"VERSION": "dev", "COMMIT": "unknown"}[name])
}

// build puts the programs into a folder, whose path is absolute.
func build(root, folder string, all []program) error {
	args := append([]string{"build"}, strings.Fields(buildFlags)...)
	args = append(args, "-ldflags", os.Expand(linkFlags, stamp), "-o", folder+string(filepath.Separator))
	for _, p := range all {
		args = append(args, p.folder)
	}
	_, err := tools(root, args...)
	return err
}
