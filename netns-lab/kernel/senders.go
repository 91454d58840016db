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
)

const writePackets = 64 // of a write: others that have to write wait for it

// senders are the goroutines that send and receive the data of TCP flows.
type senders struct {
	clock  clock
	pacing pacing
	rng    *rand.Rand
	data   []byte // what flows send, again and again
	wg     *sync.WaitGroup
	errs   chan error
}

func newSenders(f *fabric, flows int) senders {
	return senders{
		clock: f.clock, pacing: newPacing(f), rng: f.plan.rng(),
		data: make([]byte, writePackets*(f.plan.exp.Frame-ethHeader-tcpIPHeader)),
		wg:   &sync.WaitGroup{}, errs: make(chan error, 2*flows+1),
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
		go t.run(s.Name+": send", func() error { return t.send(ctx, s) })
		go t.run(s.Name+": receive", func() error { return discard(s.receive) })
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
func (t *senders) send(ctx context.Context, s *stream) error {
	if err := t.clock.sleepUntil(ctx, s.startNs); err != nil {
		return err
	}
	if err := t.pacing.begin(s); err != nil {
		return err
	}
	left := uint64(s.Size)
	for first := true; s.Size == 0 || left > 0; first = false {
		n := uint64(len(t.data))
		if first && s.primed > 0 {
			// TCP halves the gap behind the first packet after a pause, to catch up: that of a byte
			n = 1
		}
		if s.Size != 0 && left <= n {
			n = left
			if err := s.stampCompletion(); err != nil {
				return err
			}
		}
		sent, err := s.send.Write(t.data[:n])
		if err != nil {
			return err
		}
		left -= uint64(sent)
		if first {
			if err := t.pacing.started(s); err != nil {
				return err
			}
		}
		runtime.Gosched() // flows that start meanwhile are not to wait until the buffer is full
	}
	return nil
}
