// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"

	"github.com/pcn-linux/pcn/internal/experiment"
)

const writePackets = 64 // of a write: others that have to write wait for it

// senders are the goroutines that send and receive the data of TCP flows.
type senders struct {
	clock  clock
	pacing pacing
	gates  *gates
	rng    *rand.Rand
	data   []byte // what flows send, again and again
	// duration is that of the measured time.
	duration experiment.Duration
	wg       *sync.WaitGroup
	errs     chan error
}

func newSenders(f *fabric, flows int) senders {
	wg := &sync.WaitGroup{}
	return senders{
		clock: f.clock, pacing: newPacing(f), rng: f.plan.rng(),
		duration: f.plan.exp.Duration, gates: newGates(f.plan.exp, f.clock, wg),
		data: make([]byte, writePackets*(f.plan.exp.Frame-ethHeader-tcpIPHeader)),
		wg:   wg, errs: make(chan error, 2*flows+1),
	}
}

// start starts the flows, each at its time after t = 0. One with a jitter starts later, by
// the seed.
func (t *senders) start(ctx context.Context, streams []*stream, t0Ns uint64) {
	for _, s := range streams {
		s.startNs = uint64(int64(t0Ns) + int64(s.Start))
		if s.StartJitter > 0 {
			s.startNs += t.rng.Uint64N(uint64(s.StartJitter))
		}
		t.wg.Add(2)
		endNs := t0Ns + uint64(t.duration)
		go t.run(s.Name+": send", func() error { return t.send(ctx, s, endNs) })
		go t.run(s.Name+": receive", func() error { return t.gates.receive(ctx, s) })
	}
}

func (t *senders) run(what string, fn func() error) {
	defer t.wg.Done()
	err := fn()
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, context.Canceled) {
		t.errs <- fmt.Errorf("flow %s: %w", what, err)
	}
}

// err returns the first error of a goroutine so far, or nil.
func (t *senders) err() error {
	select {
	case err := <-t.errs:
		return err
	default:
		return nil
	}
}

// wait returns when all goroutines have ended, with their errors. Their connections must be closed.
func (t *senders) wait() error {
	t.wg.Wait()
	close(t.errs)
	var errs []error
	for err := range t.errs {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// send writes the flow's data: Size bytes, or without end. A flow that has ended stays open: a bare
// FIN is of the control class, and could overtake data that waits for it.
func (t *senders) send(ctx context.Context, s *stream, endNs uint64) error {
	if err := t.clock.sleepUntil(ctx, s.startNs); err != nil {
		return err
	}
	var written uint64
	for first := true; s.Size == 0 || written < uint64(s.Size); first = false {
		n := uint64(len(t.data))
		if s.Size != 0 {
			allowed, err := t.await(ctx, s, written, endNs)
			if err != nil {
				return err
			}
			n = min(n, allowed-written)
		}
		if first {
			if err := t.pacing.begin(s); err != nil {
				return err
			}
		}
		if first && s.primed > 0 {
			// TCP halves the gap behind the first packet after a pause, to catch up: that of a byte
			n = 1
		}
		if s.Size != 0 && written+n == uint64(s.Size) {
			if err := s.stampCompletion(); err != nil {
				return err
			}
		}
		sent, err := s.send.Write(t.data[:n])
		if err != nil {
			return err
		}
		written += uint64(sent)
		if first {
			if err := t.pacing.started(s); err != nil {
				return err
			}
		}
		runtime.Gosched() // flows that start meanwhile are not to wait until the buffer is full
	}
	return nil
}

// await waits until a flow may send more than it has, and returns up to where. One that waits with
// its first byte starts then; one that waits to the end of the run starts at the end.
func (t *senders) await(ctx context.Context, s *stream, written, endNs uint64) (uint64, error) {
	allowed, waited, err := t.gates.await(ctx, s, written)
	if waited && written == 0 {
		s.startNs = endNs
		if err == nil {
			s.startNs = t.clock.nowNs()
		}
	}
	return allowed, err
}
