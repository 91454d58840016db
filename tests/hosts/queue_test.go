// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/socket"
)

// optionECN is TCPI_OPT_ECN of tcp_info.
const optionECN = 8

// Connections that open while the queue is so long that the switch drops what is not ECN-capable
// have ECN: otherwise they would have TCP's window for life, and take the others' share.
func TestConnectionsOpenIntoAFullQueue(t *testing.T) {
	for _, control := range []string{"pcn", "ldcp", "pcn_dctcp"} {
		for _, connections := range []int{16, 64} {
			t.Run(fmt.Sprintf("%s/%d", control, connections), func(t *testing.T) {
				mostOf(t, control, 1, func() (jain float64, ok, busy bool) {
					t.Run("try", func(t *testing.T) {
						jain, busy = openIntoAFullQueue(t, control, connections)
					})
					return jain, jain >= 0.95, busy
				})
			})
		}
	}
}

// openIntoAFullQueue returns how fairly connections share that opened so, and whether the machine
// was so busy that there was no queue then, or that the link was not full later.
func openIntoAFullQueue(t *testing.T, control string, connections int) (jain float64, busy bool) {
	t.Helper()
	const shareMbps = 2.5 // of each connection: PCN's least rate is 1
	m, err := parseMeasurement(fmt.Sprintf("offloads=none senders=2 rate=%gMbps t=5ms",
		shareMbps*float64(connections)))
	qt.Assert(t, qt.IsNil(err))
	m.Drop = 1 // whatever waits, the queue is as good as full
	b := New(t, m.Options)
	b.Control(control, m.network(), m.parameters())
	b.PlainSYNs()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var received atomic.Uint64
	others := []Connection{b.Connect(0, control), b.Connect(1, control)}
	for _, c := range others {
		running.Go(func() { fill(ctx, c) })
		running.Go(func() { drain(c, &received) })
	}
	wait(ctx, 500*time.Millisecond)
	var conns []Connection
	for i := range connections {
		conns = append(conns, b.Connect(i%m.Senders, control))
	}
	counts, err := b.wred.Counts()
	qt.Assert(t, qt.IsNil(err))
	for _, c := range conns {
		info, err := socket.Info(c.Sender)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(info.Options&optionECN != 0))
	}
	cancel()
	for _, c := range others {
		c.Sender.Close()
		c.Receiver.Close()
	}
	running.Wait()
	if counts["spared"] == 0 {
		t.Logf("no connection met a queue: %v", counts)
		return 0, true
	}
	// A rate wanders: of 64 flows, which have few packets each, it takes longer to see the mean.
	rates := b.Fill(conns, time.Second, time.Duration(connections)*time.Second/6)
	t.Logf("Jain %.3f: %s; spared %d", Jain(rates), mbps(rates), counts["spared"])
	return Jain(rates), sum(rates) < 0.9*float64(m.RateBps)
}
