package postgres

import (
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	acquiredDesc = describe("partilha_pool_acquired", "Connections to PostgreSQL that are in use.")
	idleDesc     = describe("partilha_pool_idle", "Connections to PostgreSQL that wait to be used.")
	maxDesc      = describe("partilha_pool_max", "Connections to PostgreSQL that the pool may have.")
	waitsDesc    = describe("partilha_pool_waits_total", "Times that a connection had to be waited for.")
	waitedDesc   = describe("partilha_pool_wait_seconds_total", "Time that connections were waited for.")
)

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"pool"}, nil)
}

// measured are the pools whose use is told, by name. They are asked at each scrape, which
// costs no query.
var measured = &poolCollector{pools: map[string]*pgxpool.Pool{}}

func init() { prometheus.MustRegister(measured) }

// Measure has the metrics tell the pool's use, under that name, until stop is called.
func Measure(name string, pool *pgxpool.Pool) (stop func()) {
	measured.put(name, pool)
	return func() { measured.remove(name, pool) }
}

type poolCollector struct {
	mu    sync.Mutex
	pools map[string]*pgxpool.Pool
}

func (c *poolCollector) put(name string, pool *pgxpool.Pool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pools[name] = pool
}

func (c *poolCollector) remove(name string, pool *pgxpool.Pool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pools[name] == pool {
		delete(c.pools, name)
	}
}

// Describe implements prometheus.Collector.
func (c *poolCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{acquiredDesc, idleDesc, maxDesc, waitsDesc, waitedDesc} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *poolCollector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, pool := range c.pools {
		stat := pool.Stat()
		gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
		to <- prometheus.MustNewConstMetric(acquiredDesc, gauge, float64(stat.AcquiredConns()), name)
		to <- prometheus.MustNewConstMetric(idleDesc, gauge, float64(stat.IdleConns()), name)
		to <- prometheus.MustNewConstMetric(maxDesc, gauge, float64(stat.MaxConns()), name)
		to <- prometheus.MustNewConstMetric(waitsDesc, counter, float64(stat.EmptyAcquireCount()), name)
		to <- prometheus.MustNewConstMetric(waitedDesc, counter, stat.EmptyAcquireWaitTime().Seconds(), name)
	}
}
