// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/host"
)

func newHostServe() *cobra.Command {
	var (
		listen string
		flows  int
	)
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve this host's metrics for Prometheus at /metrics, and its health at /healthz",
		Long: `Serve metrics of this host's congestion controls, NP and RP for Prometheus. The
server only reads: the host works the same without it. Metrics of flows are sums for each
congestion control; with --flows, the fastest flows also have series of their own.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flows < 0 || flows > 1000 {
				return usageError{fmt.Errorf("invalid --flows %d: want 0 to 1000, "+
					"since each flow adds series that Prometheus keeps", flows)}
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("serve metrics: %w", err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "http://%s/metrics\n", l.Addr())
			return serve(cmd.Context(), l, host.New().Handler(flows))
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:9818", "address to listen on")
	c.Flags().IntVar(&flows, "flows", 0,
		"number of flows, the fastest ones, with series of their own")
	return c
}

// How long a client may take. No request has a body. A scrape of many flows takes seconds, and
// Prometheus waits for at most its interval, mostly a minute: connections that idle stay open
// between scrapes.
const (
	readTimeout  = 5 * time.Second // of a request
	writeTimeout = time.Minute     // from the request's end to the answer's
	idleTimeout  = 3 * time.Minute
	stopTimeout  = time.Second // for the answers that are on their way when the server ends
)

// serve answers requests until the context ends. A client that stalls loses its connection.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{
		Handler:      h,
		ReadTimeout:  readTimeout,
		WriteTimeout: writeTimeout,
		IdleTimeout:  idleTimeout,
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		_ = s.Shutdown(ctx) // what takes longer is cut off
	})
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serve metrics: %w", err)
	}
	<-stopped
	return nil
}
