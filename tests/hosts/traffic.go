// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pcn-linux/pcn/internal/socket"
)

// Fill sends as much as the connections take, for a while, and returns the goodput of each in
// bit/s. What arrives in the first part, settle, does not count.
func (b *Bed) Fill(conns []Connection, settle, measure time.Duration) []float64 {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	received := make([]atomic.Uint64, len(conns))
	var running sync.WaitGroup
	for i, c := range conns {
		running.Go(func() { fill(ctx, c) })
		running.Go(func() { drain(c, &received[i]) })
	}
	wait(ctx, settle)
	before, began := load(received), time.Now()
	b.inFlight = b.watch(ctx, conns[0], measure)
	after, took := load(received), time.Since(began)
	cancel()
	for _, c := range conns {
		info, err := socket.Info(c.Sender)
		b.ok(err)
		b.retransmitted += uint64(info.Total_retrans)
		c.Sender.Close()
		c.Receiver.Close()
	}
	running.Wait()
	goodput := make([]float64, len(conns))
	for i := range conns {
		goodput[i] = 8 * float64(after[i]-before[i]) / took.Seconds()
	}
	return goodput
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// watch returns the mean of what a connection has in flight, in bytes.
func (b *Bed) watch(ctx context.Context, c Connection, d time.Duration) float64 {
	b.t.Helper()
	const interval = 10 * time.Millisecond
	total, samples := 0.0, 0
	for end := time.Now().Add(d); time.Now().Before(end); samples++ {
		wait(ctx, min(interval, time.Until(end)))
		info, err := socket.Info(c.Sender)
		b.ok(err)
		total += float64(info.Unacked) * float64(info.Snd_mss)
	}
	return total / float64(samples)
}

func load(counts []atomic.Uint64) []uint64 {
	all := make([]uint64, len(counts))
	for i := range counts {
		all[i] = counts[i].Load()
	}
	return all
}

const chunk = 64 << 10

func fill(ctx context.Context, c Connection) {
	buf := make([]byte, chunk)
	for ctx.Err() == nil {
		if _, err := c.Sender.Write(buf); err != nil {
			return
		}
	}
}

func drain(c Connection, received *atomic.Uint64) {
	buf := make([]byte, 4*chunk)
	for {
		n, err := c.Receiver.Read(buf)
		received.Add(uint64(n))
		if err != nil && err != io.ErrShortBuffer {
			return
		}
	}
}

// Jain returns Jain's index of fairness: 1 if all are the same, 1/n if one has all.
func Jain(rates []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, r := range rates {
		sum += r
		squares += r * r
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(rates)) * squares)
}
