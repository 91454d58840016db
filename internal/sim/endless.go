// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
)

// errEndless is the error of a call that does not return.
var errEndless = errors.New("loops without an end")

// mostAsked is how often a module may ask in one call whether it may go on. It does so each 2^20
// basic blocks (bpf/include/endless.h), so that is 2^27, a fraction of a second. Kernels refuse
// programs of more than a million instructions.
const mostAsked = 128

// watchdog ends calls of modules that loop without an end. Only those of users' own schemes ask
// it: so a run of other schemes costs nothing more.
type watchdog struct {
	ctx   context.Context
	asked int // in this call
}

// newWatchdog gives modules that import it a function that they call while they run.
func newWatchdog(ctx context.Context, r runtime) (*watchdog, error) {
	d := &watchdog{ctx: ctx}
	err := r.provide(ctx, "watch", map[string]any{"still_running": d.stillRunning})
	if err != nil {
		return nil, fmt.Errorf("provide modules with a watchdog: %w", err)
	}
	return d, nil
}

// stillRunning is called in a call. It panics, as wazero wants it, to end that. An interrupted run
// does not end a call that asks for the first time: it may return at once.
func (d *watchdog) stillRunning() {
	d.asked++
	if d.asked >= mostAsked || d.asked > 1 && d.ctx.Err() != nil {
		panic(errEndless)
	}
}

// begin notes that a call begins.
func (d *watchdog) begin() {
	if d != nil {
		d.asked = 0
	}
}
