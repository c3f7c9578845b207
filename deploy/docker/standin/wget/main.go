// Command wget is the little of BusyBox's wget that health checks use: it asks one
// address over HTTP and ends with status 0 if the answer is good. All options but the
// address are accepted and change nothing.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	client := http.Client{Timeout: 3 * time.Second}
	response, err := client.Get(os.Args[len(os.Args)-1])
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("answered %s", response.Status)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "wget:", err)
		os.Exit(1)
	}
}
