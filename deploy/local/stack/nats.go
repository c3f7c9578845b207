package stack

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// startNATS starts the embedded server on a port of its own choice, unless the
// options name a server. Nobody else on the machine can speak to it without the
// password, which is made anew at every start.
func (s *Stack) startNATS(o Options) (string, error) {
	if o.NATSURL != "" {
		return o.NATSURL, nil
	}
	password, err := randomSecret()
	if err != nil {
		return "", err
	}
	const user = "partilha"
	embedded, err := server.NewServer(&server.Options{
		ServerName: "partilha-local", Host: "127.0.0.1", Port: server.RANDOM_PORT,
		Username: user, Password: password,
		JetStream: true, StoreDir: filepath.Join(o.DataDir, "nats"), SyncInterval: 2 * time.Second,
		NoSigs: true, NoLog: true,
	})
	if err != nil {
		return "", fmt.Errorf("cannot prepare the embedded NATS server: %w", err)
	}
	go embedded.Start()
	if !embedded.ReadyForConnections(15 * time.Second) {
		embedded.Shutdown()
		return "", errors.New("the embedded NATS server does not start; is the disk of DATA_DIR full?")
	}
	s.started(func() error {
		embedded.Shutdown()
		embedded.WaitForShutdown()
		return nil
	})
	address := url.URL{Scheme: "nats", User: url.UserPassword(user, password), Host: embedded.Addr().String()}
	return address.String(), nil
}
