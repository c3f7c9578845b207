package pgserver

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// programs makes a folder of executable files.
func programs(t *testing.T, folder string, names ...string) string {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestTheNewestWholeVersionIsFound(t *testing.T) {
	root := t.TempDir()
	programs(t, filepath.Join(root, "9", "bin"), "postgres", "initdb")
	want := programs(t, filepath.Join(root, "16", "bin"), "postgres", "initdb")
	programs(t, filepath.Join(root, "18", "bin"), "psql")

	got, err := find(root)

	if err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestThePathIsTheSecondChoice(t *testing.T) {
	want := programs(t, t.TempDir(), "postgres", "initdb")
	t.Setenv("PATH", programs(t, t.TempDir(), "psql")+":"+want)

	got, err := find(t.TempDir())

	if err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestNoServerIsAnErrorThatSaysSo(t *testing.T) {
	t.Setenv("PATH", programs(t, t.TempDir(), "psql"))
	if _, err := find(t.TempDir()); err != errNotInstalled {
		t.Errorf("got %v", err)
	}
}

func TestInstallDoesNothingWherePostgreSQLIsThere(t *testing.T) {
	t.Setenv("PATH", "") // without apt-get and sudo
	output := &bytes.Buffer{}
	if err := Install(t.Context(), output); err != nil {
		t.Error(err)
	}
	if output.Len() > 0 {
		t.Errorf("it wrote %s", output)
	}
}
