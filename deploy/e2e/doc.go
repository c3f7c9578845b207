// Package e2e tests Partilha as its users and operators meet it: four real processes,
// a real PostgreSQL, a real NATS, and a receiver of webhooks, while one or the other
// is stopped, killed or made to say everything twice.
//
// There is nothing in it but tests. With -short the longest of them do less; with
// E2E_FULL=1 in the environment the storm of repeats is as large as it gets, and NATS
// loses everything twenty times.
package e2e
