package service

import "fmt"

// Set by the linker where an image is built (-X); a build by hand has none.
var (
	version = "dev"
	commit  = "unknown"
)

// Version tells which version of Partilha this program is, and of which commit it was
// built: "v1.4.0 (3f2c…)".
func Version() string { return fmt.Sprintf("%s (%s)", version, commit) }

func (p Program) printVersion() error {
	_, err := fmt.Println(p.Name, Version())
	return err
}
