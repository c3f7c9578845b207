package testkit

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// NATSCluster is servers that keep copies of each other's streams. Each of them may be
// killed and started again by itself, while most of them are up.
type NATSCluster []*NATSServer

// NewNATSCluster starts that many servers with empty stores as one JetStream cluster and
// returns when it answers at each of them. They end with the test.
func NewNATSCluster(t testing.TB, members int) NATSCluster {
	t.Helper()
	program, err := natsProgram()
	if err != nil {
		t.Fatal(err)
	}
	cluster := make(NATSCluster, members)
	for i := range cluster {
		cluster[i] = &NATSServer{t: t, program: program, folder: newFolder(t)}
		t.Cleanup(cluster[i].Kill)
	}
	const attempts = 5 // another process may take a port before its server does
	for range attempts {
		if err = cluster.start(); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// URL names every server, as NATS_URL does.
func (c NATSCluster) URL() string {
	urls := make([]string, len(c))
	for i, member := range c {
		urls[i] = member.URL()
	}
	return strings.Join(urls, ",")
}

// start gives every server its ports and waits for none before all are there: JetStream
// answers once most of them have found each other. It leaves no process behind if it fails.
func (c NATSCluster) start() (err error) {
	routes := make([]int, len(c))
	for i, member := range c {
		if member.port, err = freePort(); err != nil {
			return err
		}
		if routes[i], err = freePort(); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			for _, member := range c {
				member.Kill()
			}
		}
	}()
	for i, member := range c {
		member.member = memberSettings(i, routes)
		if err := member.launch(); err != nil {
			return err
		}
	}
	for _, member := range c {
		if err := member.awaitReady(); err != nil {
			return fmt.Errorf("start a NATS cluster: %w", err)
		}
	}
	return nil
}

// memberSettings are what one server says of the cluster. A cluster of JetStream knows
// its members by name.
func memberSettings(i int, routes []int) string {
	peers := make([]string, len(routes))
	for j, port := range routes {
		peers[j] = fmt.Sprintf("\"nats://127.0.0.1:%d\"", port)
	}
	return fmt.Sprintf("server_name: \"nats-%d\"\ncluster: { name: \"test\", listen: \"127.0.0.1:%d\", routes: [%s] }\n",
		i+1, routes[i], strings.Join(peers, ", "))
}
