// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/gate"
)

// gates has senders wait for data that others receive. Streams are numbered as the experiment's
// flows.
type gates struct {
	waits []experiment.Wait
	clock clock
	wg    *sync.WaitGroup
	lowat int // of readers

	mu      sync.Mutex
	account *gate.Gates
	opened  []chan struct{} // by stream: its sender may look again
}

func newGates(e *experiment.Experiment, c clock, wg *sync.WaitGroup) *gates {
	g := &gates{
		waits: e.Waits, clock: c, wg: wg, lowat: buffersFor(len(e.Flows)).lowat,
		account: gate.New(e), opened: make([]chan struct{}, len(e.Flows)),
	}
	for i := range g.opened {
		g.opened[i] = make(chan struct{}, 1)
	}
	return g
}

// messageBytes returns the length of the stream's messages.
func (s *stream) messageBytes() uint64 {
	if s.Message != 0 {
		return uint64(s.Message)
	}
	return uint64(s.Size)
}

// await returns how many bytes of a stream may have been sent in all, once that is more than so
// many; waited is whether it had to wait.
func (g *gates) await(ctx context.Context, s *stream, sent uint64) (
	allowed uint64, waited bool, err error,
) {
	for {
		g.mu.Lock()
		allowed = uint64(g.account.Passed(int(s.id))) * s.messageBytes()
		g.mu.Unlock()
		if allowed > sent {
			return allowed, waited, nil
		}
		waited = true
		select {
		case <-ctx.Done():
			return 0, waited, ctx.Err()
		case <-g.opened[s.id]:
		}
	}
}

// nextBytes returns how many bytes of a stream must have arrived for others to go on; 0: none.
func (g *gates) nextBytes(s *stream) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return uint64(g.account.Next(int(s.id))) * s.messageBytes()
}

// arrived notes that so many bytes of a stream have arrived in all.
func (g *gates) arrived(ctx context.Context, s *stream, bytes uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.account.Arrived(int(s.id), int(bytes/s.messageBytes()), func(wait int) {
		delay := g.waits[wait].Delay
		if delay == 0 {
			g.release(wait)
			return
		}
		atNs := g.clock.nowNs() + uint64(delay)
		g.wg.Go(func() {
			if g.clock.sleepUntil(ctx, atNs) == nil { // else the run has ended
				g.mu.Lock()
				defer g.mu.Unlock()
				g.release(wait)
			}
		})
	})
}

// release wakes the senders of what a wait held back. The caller holds the lock.
func (g *gates) release(wait int) {
	for _, p := range g.account.Release(wait) {
		select {
		case g.opened[p.Flow] <- struct{}{}:
		default: // it has yet to look
		}
	}
}

// receive reads a stream to its end without copying, and tells of what others wait for.
func (g *gates) receive(ctx context.Context, s *stream) error {
	if g.nextBytes(s) == 0 {
		return discard(s.receive, func(int, int) error { return nil })
	}
	var received uint64
	return discard(s.receive, func(fd, n int) error {
		received += uint64(n)
		bytes := received - min(received, s.primed)
		next := g.nextBytes(s)
		if next != 0 && bytes >= next {
			g.arrived(ctx, s, bytes)
			next = g.nextBytes(s)
		}
		// the kernel wakes the reader when that much is there: not late, and not often
		lowat := g.lowat
		if next > bytes {
			lowat = int(min(uint64(lowat), next-bytes))
		}
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, lowat)
	})
}
