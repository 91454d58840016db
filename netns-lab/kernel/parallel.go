// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// parallel calls fn for 0 to n - 1 on all CPUs, until one fails, and returns its error.
func parallel(n int, fn func(i int) error) error {
	g, ctx := errgroup.WithContext(context.Background())
	g.SetLimit(runtime.NumCPU())
	for i := range n {
		g.Go(func() error {
			if ctx.Err() != nil {
				return nil // another has failed
			}
			return fn(i)
		})
	}
	return g.Wait()
}
