// SPDX-License-Identifier: Apache-2.0

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
		Short: "Serve metrics for Prometheus, at /metrics, and this host's health, at /healthz",
		Long: `Serve what this host's congestion controls, NP and RP do, for Prometheus. It only reads: what runs does not depend on
it. Flows are summed up by congestion control; with --flows, the fastest have series of their own too.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flows < 0 || flows > 1000 {
				return usageError{fmt.Errorf("--flows %d: want 0 to 1000: each is a new series, for ever", flows)}
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("serve metrics: %w", err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "http://%s/metrics\n", l.Addr())
			return serve(cmd.Context(), l, host.New().Handler(flows))
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:9818", "address to listen at")
	c.Flags().IntVar(&flows, "flows", 0, "how many flows, the fastest, have series of their own")
	return c
}

// serve serves until the context ends.
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
