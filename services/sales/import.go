package sales

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/google/uuid"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/service"
	"partilha.dev/services/sales/internal/rowfile"
)

// importHelp is the format of a file of history, for whoever writes one.
//
//go:embed import.txt
var importHelp string

var importCommand = service.Command{
	Usage: "import --tenant ID FILE", About: "take over a customer's history; --help tells the format",
	Help: importHelp, Failure: 2, Run: runImportCommand,
}

// importOrder is what the operator asks of an import.
type importOrder struct {
	tenant  uuid.UUID
	path    string // "-" for standard input
	refused string // where refused rows go

	stdin          *os.File
	stdout, stderr io.Writer
	terminal       bool // a person watches stderr
}

func runImportCommand(ctx context.Context, deps service.Deps, args []string) error {
	order, err := readImportOrder(args)
	if err != nil {
		return err
	}
	order.stdin, order.stdout, order.stderr = os.Stdin, os.Stdout, os.Stderr
	if info, err := os.Stderr.Stat(); err == nil {
		order.terminal = info.Mode()&os.ModeCharDevice != 0
	}
	s, err := New(ctx, Config{}, deps)
	if err != nil {
		return err
	}
	refused, err := s.runImport(ctx, order)
	if err != nil {
		return err
	}
	if refused > 0 {
		return service.Status(1)
	}
	return nil
}

// readImportOrder reads the arguments, in which options may stand before and after the file.
func readImportOrder(args []string) (order importOrder, err error) {
	flags := flag.NewFlagSet("import", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	tenant := flags.String("tenant", "", "")
	flags.StringVar(&order.refused, "refused", "", "")
	for rest := args; err == nil; rest = flags.Args()[1:] {
		if err = flags.Parse(rest); err != nil || flags.NArg() == 0 {
			break
		}
		if order.path != "" {
			err = errors.New("one file at a time")
		}
		order.path = flags.Arg(0)
	}
	if err == nil && order.path == "" {
		err = errors.New("name a file, or - for standard input")
	}
	if err == nil {
		if order.tenant, err = readTenantID(*tenant); err != nil {
			err = fmt.Errorf("--tenant: %w", err)
		}
	}
	if order.refused == "" {
		order.refused = order.path + ".refused.ndjson"
		if order.path == "-" {
			order.refused = "import.refused.ndjson"
		}
	}
	return order, err
}

// runImport takes over the rows of a file, and returns how many it refused. After an
// error it can be run again, and goes on where it ended.
//
// Events are published at once while NATS can be reached; what is left is published
// by the service that serves.
func (s *Service) runImport(ctx context.Context, order importOrder) (refusedRows int, err error) {
	if err := s.checkImportable(ctx, order.tenant); err != nil {
		return 0, err
	}
	file, err := rowfile.Open(ctx, order.path, order.stdin, importColumns())
	if err != nil {
		return 0, interrupted(ctx, err)
	}
	defer file.Close()
	if file.Same(order.refused) {
		return 0, errors.New("--refused: this is the file that is to be imported")
	}
	m, err := s.newImporter(order, file)
	if err != nil {
		return 0, err
	}
	relaying, stop := context.WithCancel(ctx)
	relayed := make(chan error, 1)
	go func() { relayed <- s.relay.Run(relaying) }()
	err = interrupted(ctx, m.run(ctx))
	stop()
	return m.tally.refused(), errors.Join(err, <-relayed, m.finish())
}

// interrupted says in plain words that it was the operator who ended an import.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted; the same command goes on from here")
	}
	return err
}

const tenantStatusQuery = `select status from tenants where tenant_id = $1`

// checkImportable wants a tenant whose calls would be answered, and a place for every event.
func (s *Service) checkImportable(ctx context.Context, tenant uuid.UUID) error {
	if err := s.checkActive(ctx, tenant); err != nil {
		return err
	}
	for _, schema := range Migrations {
		if err := postgres.EnsurePartitions(ctx, s.deps.Pool, schema.Partitions); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) checkActive(ctx context.Context, tenant uuid.UUID) error {
	var status string
	err := s.deps.Pool.QueryRow(ctx, tenantStatusQuery, tenant).Scan(&status)
	switch {
	case postgres.Absent(err):
		return fmt.Errorf("there is no tenant %s", tenant)
	case err != nil:
		return fmt.Errorf("read tenant: %w", err)
	case status != "active":
		return fmt.Errorf("the tenant is %s", status)
	default:
		return nil
	}
}
