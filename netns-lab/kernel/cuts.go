// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// cut tells the switches what is so at a time: which links are down, and which hosts are parted.
// Ports know when their links fail: see [plan.rateChanges].
func (f *fabric) cut(at experiment.Duration) error {
	e := f.plan.exp
	if e.LinkStates() {
		routes := f.plan.routesOver(f.plan.paths.Without(e.DownAt(at)))
		if err := f.setRoutes(routes, f.out); err != nil {
			return err
		}
	}
	if len(e.Partitions) == 0 {
		return nil
	}
	sides := make([]uint64, f.plan.targets()) // routers are on no side
	for i := range f.plan.hosts {
		sides[i] = e.SideAt(f.plan.nodes[i].name, at)
	}
	return f.switches.SetSides(sides)
}

// cutting has the switches follow the experiment's cuts until it is over.
type cutting struct {
	stop context.CancelFunc
	done chan error
}

// startCutting makes the cuts of a run whose t = 0 is t0Ns: at once those that have been by then.
func (f *fabric) startCutting(ctx context.Context, t0Ns uint64) (*cutting, error) {
	ctx, stop := context.WithCancel(ctx)
	c := &cutting{stop: stop, done: make(chan error, 1)}
	now, cuts := experiment.Duration(int64(f.clock.nowNs()-t0Ns)), f.plan.exp.Cuts()
	for len(cuts) > 0 && cuts[0] <= now {
		if err := f.cut(cuts[0]); err != nil {
			stop()
			return nil, err
		}
		cuts = cuts[1:]
	}
	go func() {
		c.done <- func() error {
			for _, at := range cuts {
				if f.clock.sleepUntil(ctx, uint64(int64(t0Ns)+int64(at))) != nil {
					return nil // the run is over
				}
				if err := f.cut(at); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	return c, nil
}

// close ends it, and returns what went wrong.
func (c *cutting) close() error {
	c.stop()
	return <-c.done
}
