package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync/atomic"
)

// counters are receivers that believe everything and count it.
type counters struct {
	urls      []string
	total     atomic.Int64
	listeners []net.Listener
	// hear is told of each body, and whether to answer; nil: every one is answered.
	hear func(body []byte) (answer bool)
}

// listenAll opens so many receivers. What hear does with a body must not keep it.
func listenAll(n int, hear func(body []byte) (answer bool)) (_ *counters, err error) {
	c := &counters{hear: hear}
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			c.close()
			return nil, fmt.Errorf("listen for webhooks: %w", err)
		}
		c.listeners = append(c.listeners, listener)
		c.urls = append(c.urls, "http://"+listener.Addr().String()+"/webhook")
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return // it is closed
				}
				go c.serve(conn)
			}
		}()
	}
	return c, nil
}

// serve counts what comes on one connection until its other end closes it.
func (c *counters) serve(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 4096)
	var body []byte
	for {
		head, err := readRequestHead(reader)
		if err != nil {
			return
		}
		body = append(body[:0], make([]byte, head.length)...)
		if _, err := io.ReadFull(reader, body); err != nil {
			return
		}
		c.total.Add(1)
		if c.hear != nil && !c.hear(body) {
			continue
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
			return
		}
	}
}

func (c *counters) close() {
	for _, listener := range c.listeners {
		listener.Close()
	}
}
