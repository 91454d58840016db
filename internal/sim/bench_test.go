// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"testing"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// newTestWorld lays out hol with a scheme.
func newTestWorld(tb testing.TB, scheme string) *world {
	tb.Helper()
	e, err := experiments.Load("hol")
	if err != nil {
		tb.Fatal(err)
	}
	return worldOf(tb, e, scheme)
}

// worldOf lays out an experiment with a scheme.
func worldOf(tb testing.TB, e *experiment.Experiment, scheme string) *world {
	tb.Helper()
	w, err := tryWorld(tb, e, scheme)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// tryWorld does what worldOf does, if it can be done.
func tryWorld(tb testing.TB, e *experiment.Experiment, scheme string) (*world, error) {
	tb.Helper()
	ctx := context.Background()
	r := newRuntime(ctx, newCache())
	tb.Cleanup(func() { _ = r.Close(ctx) })
	return newWorld(ctx, r, e, scheme)
}

// switchPort returns a port whose data is marked.
func (w *world) switchPort() (*port, *queue) {
	for id := range w.ports {
		p := &w.ports[id]
		if q := &p.queues[experiment.DataClass(0)]; q.marked {
			return p, q
		}
	}
	return nil, nil
}

// BenchmarkMark is the cost of asking what becomes of a departing packet.
func BenchmarkMark(b *testing.B) {
	for _, scheme := range []string{"pcn", "dcqcn", "qcn"} {
		b.Run(scheme, func(b *testing.B) {
			w := newTestWorld(b, scheme)
			p, q := w.switchPort()
			k := &packet{size: 1000, ecn: ecnECT}
			for i := 0; b.Loop(); i++ {
				w.core.judge(int64(i)*200, p, q, k, false, false)
			}
		})
	}
}

// BenchmarkACK is the cost of an ACK in a control.
func BenchmarkACK(b *testing.B) {
	for _, scheme := range []string{"pcn", "dcqcn", "timely", "ldcp"} {
		b.Run(scheme, func(b *testing.B) {
			w := newTestWorld(b, scheme)
			f, c := &w.transport.flows[0], w.transport.control
			if err := c.establish(w.now, f, f.mss, true, f.lineRate); err != nil {
				b.Fatal(err)
			}
			for i := 0; b.Loop(); i++ {
				f.una, f.nxt = uint32(i), uint32(i)+10
				f.delivered, f.segments = f.una, f.nxt
				c.ack(w.now+int64(i)*200, f, 1, 10, 30_000)
			}
		})
	}
}

// BenchmarkNotify is the cost of a data packet at a notification point.
func BenchmarkNotify(b *testing.B) {
	w := newTestWorld(b, "pcn")
	for i := 0; b.Loop(); i++ {
		w.transport.notifier.receive(w.now+int64(i)*200, &w.transport.flows[0], 1000, ecnCE)
	}
}

// BenchmarkRun is 6 ms of hol.
func BenchmarkRun(b *testing.B) {
	e, err := experiments.Load("hol")
	if err != nil {
		b.Fatal(err)
	}
	d := 5 * experiment.Millisecond
	if e, err = e.With(experiment.Changes{Duration: &d}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := simulator.Run(b.Context(), e, "pcn", func(float64) {}); err != nil {
			b.Fatal(err)
		}
	}
}
