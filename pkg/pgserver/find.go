package pgserver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// debianRoot is where Debian and Ubuntu keep each major version in a folder of its own.
const debianRoot = "/usr/lib/postgresql"

var errNotInstalled = errors.New("PostgreSQL is not installed: neither " + debianRoot + " nor the PATH has the programs postgres and initdb")

// Find returns the folder of the newest installed PostgreSQL's programs: of those
// below /usr/lib/postgresql, else the one on the PATH. Its error is a sentence
// that can be shown as it is.
func Find() (binDir string, err error) {
	return find(debianRoot)
}

func find(root string) (string, error) {
	newest, newestMajor := "", -1
	folders, _ := filepath.Glob(filepath.Join(root, "*", "bin")) // the only error is a bad pattern
	for _, folder := range folders {
		major, err := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
		if err == nil && major > newestMajor && complete(folder) {
			newest, newestMajor = folder, major
		}
	}
	if newest != "" {
		return newest, nil
	}
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(folder) && complete(folder) {
			return folder, nil
		}
	}
	return "", errNotInstalled
}

// complete is whether a folder has a whole server: client packages have only psql.
func complete(folder string) bool {
	for _, program := range []string{"postgres", "initdb"} {
		if _, err := exec.LookPath(filepath.Join(folder, program)); err != nil {
			return false
		}
	}
	return true
}

// programsFor returns the programs that can open the cluster in data: of its own
// major version if it has one already and they are still installed, else the newest.
func programsFor(data string) (string, error) {
	if version, err := os.ReadFile(filepath.Join(data, "PG_VERSION")); err == nil {
		folder := filepath.Join(debianRoot, strings.TrimSpace(string(version)), "bin")
		if complete(folder) {
			return folder, nil
		}
	}
	return Find()
}
