package stack

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// secret is the given one, or the one that the file keeps, which is made with mode
// 0600 the first time.
func secret(path, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	kept, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(kept))) > 0 {
		return strings.TrimSpace(string(kept)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot read %s: %w", path, plain(err))
	}
	made, err := randomSecret()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, []byte(made+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("cannot write %s: %w", path, plain(err))
	}
	return made, nil
}

// randomSecret is 32 random bytes in base64.
func randomSecret() (string, error) {
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("draw a random secret: %w", err)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}

func takeLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
