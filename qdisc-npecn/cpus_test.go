// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	commandline "flag"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"
)

// cpusFor is how long each case of TestSeveralCPUs sends: seconds in make test, minutes in make
// test-cpus.
var cpusFor = commandline.Duration("cpus-for", 3*time.Second,
	"how long each case of TestSeveralCPUs sends")

// Ports of one node work on several CPUs at once, by the clock, and tell one peer of bytes and
// credits. Nothing may be lost: no packet, no RESUME, no credit.
func TestSeveralCPUs(t *testing.T) {
	if runtime.NumCPU() < severalCPUs {
		t.Skipf("needs %d CPUs: TestMain runs it in a microVM of its own", severalCPUs)
	}
	for _, test := range []struct {
		name   string
		change func(p *Port)
	}{
		{"PFC", func(p *Port) { p.PFC = PFC{XOFFBytes: 6_000, XONOffsetBytes: 2_000} }},
		{"CBFC", func(p *Port) { p.CBFC = CBFC{BufferBytes: 6_000, PeriodNs: 1_000} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := star(severalCPUs, func(name string, p *Port) {
				p.PFC = PFC{XOFFBytes: 1}
				if name[0] == 's' { // hosts take all that comes, and lend nothing
					test.change(p)
				}
			})
			l.options = rounded.options()
			l.buffers = map[string]uint64{"s": 1 << 30}
			n := newNetwork(t, l)
			sent := n.blast(*cpusFor)
			n.waitEmpty()
			n.checkConserved(sent)
		})
	}
}

// blast sends from each host on a CPU of its own to all others in turn, for so long, and returns
// how many packets that were. They are some thousands, also if the microVM itself stood still.
func (n *network) blast(span time.Duration) uint64 {
	n.t.Helper()
	const most = 200   // packets that wait, so that no ring is full
	const least = 2000 // packets of a host
	var wg sync.WaitGroup
	counts := make([]uint64, len(n.hosts))
	errs := make([]error, len(n.hosts))
	for host := range n.hosts {
		fd := n.openSender(host, dataClass)
		wg.Go(func() {
			runtime.LockOSThread()
			var cpu unix.CPUSet
			cpu.Set(host)
			if errs[host] = unix.SchedSetaffinity(0, &cpu); errs[host] != nil {
				return
			}
			for end := time.Now().Add(span); time.Now().Before(end) || counts[host] < least; {
				s, err := n.q.Stats(n.hostPort(host))
				if err != nil {
					errs[host] = err
					return
				}
				for range most - int(min(most, s.QueuedPackets+s.WirePackets)) {
					to := (host + 1 + int(counts[host])%(len(n.hosts)-1)) % len(n.hosts)
					p := packet{from: host, to: to, class: dataClass, size: frame1K}
					if errs[host] = n.sendFrame(fd, host, p); errs[host] != nil {
						return
					}
					counts[host]++
				}
			}
		})
	}
	wg.Wait()
	var total uint64
	for host, err := range errs {
		n.check(err)
		total += counts[host]
	}
	return total
}

// hostPort is the one port of a host.
func (n *network) hostPort(host int) uint32 {
	for id := uint32(1); id < n.portsMax(); id++ {
		if node, _ := n.ends(id); node == host {
			return id
		}
	}
	panic("no port")
}

// checkConserved checks an empty network that took so many packets of its hosts.
func (n *network) checkConserved(sent uint64) {
	n.t.Helper()
	var left, arrived, told uint64
	for id := uint32(1); id < n.portsMax(); id++ {
		s := n.stats(id)
		peer := n.stats(n.config.Ports[id].Peer)
		about := qt.Commentf("port %s: %+v", n.config.Ports[id].Name, s)
		if node, _ := n.ends(id); n.isHost(node) {
			left += s.DeliveredPackets
		} else {
			arrived += s.DeliveredPackets
		}
		told += s.PauseReceived + s.PausedNs
		qt.Check(n.t, qt.Equals(s.EnqueuedPackets, s.DeliveredPackets), about)
		qt.Check(n.t, qt.Equals(s.Dropped(), 0), about)
		qt.Check(n.t, qt.Equals(s.PFCOverflow, 0), about)
		qt.Check(n.t, qt.Equals(s.PauseSent, s.ResumeSent), about)
		// events that are still to come, at an empty queue, come in pairs
		qt.Check(n.t, qt.IsTrue(s.PauseReceived <= peer.PauseSent), about)
		qt.Check(n.t, qt.Equals(s.FreeCreditBlocks, s.CreditBlocks), about)
		state, err := n.q.ClassState(id, dataClass)
		n.check(err)
		qt.Check(n.t, qt.IsFalse(state.Pausing || state.Paused), about)
	}
	qt.Check(n.t, qt.Equals(left, sent))
	qt.Check(n.t, qt.Equals(arrived, sent))
	buffer, ingress := n.accounts()
	qt.Check(n.t, qt.Equals(buffer, 0))
	for _, bytes := range ingress {
		qt.Check(n.t, qt.Equals(bytes, 0))
	}
	n.t.Logf("%d packets; PAUSE received and time without leave to send, summed: %d", sent, told)
	qt.Check(n.t, qt.IsTrue(told > 0), qt.Commentf("nothing was ever stopped"))
}
