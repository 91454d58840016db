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

// serve answers requests until the context ends.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
