// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// congested is a star whose port s->h2 is slow, so that h0 and h1 are paused, with packets queued
// everywhere and one on every wire.
func congested(t testing.TB) *network {
	t.Helper()
	l := star(3, func(name string, p *Port) {
		p.PFC = PFC{XOFFBytes: 10_000, XONOffsetBytes: 2000}
		if name == "s->h2" {
			p.RateBps = gbit8 / 100
		}
	})
	l.options = rounded.options()
	l.buffers = map[string]uint64{"s": 1 << 20}
	return newNetwork(t, l)
}

// fill congests it: 20 packets from each of h0 and h1 are at s or still at their hosts.
func (n *network) fill() []packet {
	n.t.Helper()
	packets := append(backToBack(0, 2, dataClass, 30, 0), backToBack(1, 2, dataClass, 30, 0)...)
	n.send(packets)
	n.waitUntil("h0 and h1 are paused, s->h2 has a packet on the wire, and the lag has passed for "+
		"all others", func() bool {
		s := n.stats(n.id("s->h2"))
		return n.stats(1).PauseReceived == 1 && n.stats(3).PauseReceived == 1 &&
			s.WirePackets > 0 && s.QueuedBytes == frame1K*s.QueuedPackets
	})
	return packets
}

// All ports together hold what they hold one by one.
func TestHeldPackets(t *testing.T) {
	n := congested(t)
	n.fill()
	most := n.held() // the hosts are paused: packets only leave
	held, err := n.q.HeldPackets()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(n.held() <= held && held <= most), qt.Commentf("%d of %d", held, most))
	qt.Check(t, qt.IsTrue(held > 0))
	n.waitEmpty()
	held, err = n.q.HeldPackets()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(held, 0))
}

// device is that of a port.
func (n *network) device(port string) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: n.ifindex[n.id(port)]}}
}

// accounts are what a switch's ports hold, as PFC and the shared buffer see it.
func (n *network) accounts() (buffer uint64, ingress []uint64) {
	n.t.Helper()
	node, err := n.q.nodeStats(uint32(n.node("s")))
	n.check(err)
	for id := uint32(2); id < n.portsMax(); id += 2 {
		p, err := n.q.port(id)
		n.check(err)
		ingress = append(ingress, p.Classes[dataClass].Rx.Bytes)
	}
	return node.UsedBytes, ingress
}

// TestQdiscDeleted: what it held is freed and leaves all accounts, and who was paused for it goes
// on.
func TestQdiscDeleted(t *testing.T) {
	for _, test := range []struct {
		name string
		lose func(n *network)
		back bool // the port can be used again
	}{
		{"qdisc", func(n *network) { n.check(detach(n.nl[3], n.ifindex[n.id("s->h2")])) }, true},
		{"device down", func(n *network) {
			n.check(n.nl[3].LinkSetDown(n.device("s->h2")))
		}, false},
		{"device", func(n *network) {
			n.check(n.nl[3].LinkDel(n.device("s->h2")))
		}, false},
		{"namespace of the peer", func(n *network) {
			n.nl[2].Close()
			n.check(n.ns[2].Close())
			n.waitUntil("the port's device is gone", func() bool {
				_, err := n.nl[3].LinkByIndex(n.ifindex[n.id("s->h2")])
				return err != nil
			})
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := congested(t)
			n.fill()
			lost := n.stats(n.id("s->h2"))
			buffer, ingress := n.accounts()
			qt.Assert(t, qt.Equals(buffer, lost.QueuedBytes))
			qt.Assert(t, qt.DeepEquals(ingress, []uint64{buffer / 2, buffer / 2, 0}))

			test.lose(n)
			n.waitEmpty()
			s := n.stats(n.id("s->h2"))
			qt.Check(t, qt.IsTrue(s.Drops[DropReset] >= lost.QueuedPackets+lost.WirePackets))
			buffer, ingress = n.accounts()
			qt.Check(t, qt.Equals(buffer, 0))
			qt.Check(t, qt.DeepEquals(ingress, []uint64{0, 0, 0}))
			for _, id := range []uint32{1, 3} { // all that the hosts had left
				s := n.stats(id)
				qt.Check(t, qt.Equals(s.DeliveredPackets, 30))
				qt.Check(t, qt.Equals(s.PauseReceived, s.ResumeReceived))
			}
			n.checkCounters()

			// the other ports work on, and so does this one, if it gets a qdisc again
			packets := []packet{{0, 1, dataClass, frame1K, 0}}
			if test.back {
				n.check(Attach(n.nl[3], n.ifindex[n.id("s->h2")]))
				packets = append(packets, packet{0, 2, dataClass, frame1K, 100_000})
			}
			for i, d := range n.run(packets) {
				qt.Check(t, qt.IsFalse(d.lost), qt.Commentf("packet %d", i))
			}
		})
	}
}

// TestPausedPortDeleted: a port that is deleted while paused starts anew, and obeys the RESUME that
// is on its way.
func TestPausedPortDeleted(t *testing.T) {
	n := congested(t)
	n.fill()
	n.check(detach(n.nl[0], n.ifindex[1]))
	qt.Check(t, qt.Equals(n.stats(1).QueuedPackets, 0))
	n.waitEmpty()
	n.check(Attach(n.nl[0], n.ifindex[1]))
	got := n.run([]packet{{0, 1, dataClass, frame1K, 0}})
	qt.Check(t, qt.Equals(got[0].atNs, 2000+2*delayNs))
	n.checkCounters()
}

// TestClose: ports keep the qdisc, and what is under way arrives at its time.
func TestClose(t *testing.T) {
	n := congested(t)
	packets := n.fill()
	n.check(n.q.Close())
	port := n.id("s->h2")
	n.waitUntil("the kernel has handed over all packets", func() bool {
		s := n.kernelStats("s->h2")
		return s.SentPackets == uint64(len(packets)) && s.QueuedPackets == 0
	})
	for i, d := range n.deliveries(packets) {
		qt.Check(t, qt.IsFalse(d.lost), qt.Commentf("packet %d", i))
	}

	// the name is free, and the device takes the new qdisc
	q, err := Load(n.config)
	n.check(err)
	n.q = q
	for id := uint32(1); id < n.portsMax(); id++ {
		node, _ := n.ends(id)
		n.check(Attach(n.nl[node], n.ifindex[id]))
	}
	qt.Check(t, qt.Equals(n.stats(port).EnqueuedPackets, 0))
	for i, d := range n.run([]packet{{0, 2, dataClass, frame1K, 0},
		{1, 0, dataClass, frame1K, 0}}) {
		qt.Check(t, qt.IsFalse(d.lost), qt.Commentf("packet %d", i))
	}
	n.checkCounters()
}

// childEnv makes the test binary the child of TestLoaderKilled.
const childEnv = "PCN_TEST_LOADER_CHILD"

// loaderChild is the process that is killed: it says which namespaces and devices it made, and
// waits.
func loaderChild(t *testing.T) {
	n := congested(t)
	n.fill()
	for id := uint32(1); id < n.portsMax(); id++ {
		node, _ := n.ends(id)
		fmt.Println("port", id, int(n.ns[node]), n.ifindex[id])
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// orphan is a port whose loader was killed.
type orphan struct {
	id      int
	ns      netns.NsHandle
	ifindex int
}

// TestLoaderKilled kills the process that loaded the qdisc. While the namespaces live on, the qdisc
// does its work without it; when they go, everything goes.
func TestLoaderKilled(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		loaderChild(t)
		return
	}
	for _, keep := range []bool{true, false} {
		t.Run(fmt.Sprintf("namespaces kept %v", keep), func(t *testing.T) {
			orphans := killLoader(t)
			if !keep {
				for _, o := range orphans {
					qt.Assert(t, qt.IsNil(o.ns.Close()))
				}
			}
			n := congested(t) // the name is free
			packets := n.fill()
			n.waitEmpty()
			for i, d := range n.deliveries(packets) {
				qt.Check(t, qt.IsFalse(d.lost), qt.Commentf("packet %d", i))
			}
			if keep {
				adopt(t, n, orphans)
			}
		})
	}
}

// killLoader starts the child and kills it when packets are under way. Handles keep its namespaces.
func killLoader(t *testing.T) []orphan {
	t.Helper()
	child := exec.Command("/proc/self/exe", "-test.run=^TestLoaderKilled$")
	child.Env = append(os.Environ(), childEnv+"=1")
	child.Stderr = os.Stderr
	_, err := child.StdinPipe() // never ends
	qt.Assert(t, qt.IsNil(err))
	out, err := child.StdoutPipe()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(child.Start()))
	t.Cleanup(func() { _ = child.Process.Kill() })

	var orphans []orphan
	for lines := bufio.NewScanner(out); len(orphans) < 6 && lines.Scan(); {
		var o orphan
		var fd int
		if n, _ := fmt.Sscanf(lines.Text(), "port %d %d %d", &o.id, &fd, &o.ifindex); n != 3 {
			continue
		}
		o.ns, err = netns.GetFromPath(fmt.Sprintf("/proc/%d/fd/%d", child.Process.Pid, fd))
		qt.Assert(t, qt.IsNil(err))
		t.Cleanup(func() { o.ns.Close() })
		orphans = append(orphans, o)
	}
	qt.Assert(t, qt.HasLen(orphans, 6), qt.Commentf("the child did not get ready"))
	qt.Assert(t, qt.IsNil(child.Process.Kill()))
	qt.Assert(t, qt.ErrorMatches(child.Wait(), "signal: killed"))
	return orphans
}

// adopt checks that the orphans have done their work, and takes them over.
func adopt(t *testing.T, n *network, orphans []orphan) {
	t.Helper()
	for _, o := range orphans {
		n.waitUntil("an orphan is empty", func() bool {
			s, err := readKernelStats(o.ns, o.ifindex)
			qt.Assert(t, qt.IsNil(err))
			return s.QueuedPackets == 0
		})
		id := uint32(o.id)
		node, _ := n.ends(id)
		n.check(detach(n.nl[node], n.ifindex[id])) // a port has one device
		nl, err := netlink.NewHandleAt(o.ns, unix.NETLINK_ROUTE)
		qt.Assert(t, qt.IsNil(err))
		defer nl.Close()
		qt.Check(t, qt.IsNil(Attach(nl, o.ifindex)))
	}
}

// TestNoLeaks: in 50 rounds of losing ports with packets queued and on the wire, no skb is left
// behind.
func TestNoLeaks(t *testing.T) {
	n := congested(t)
	port := n.id("s->h2")
	before := 0
	const warmUp, rounds = 5, 50 // caches fill in the first rounds
	for round := range warmUp + rounds {
		if round == warmUp {
			before = skbs(t)
		}
		n.fillAgain()
		if held := int(n.held()); round == 0 {
			qt.Assert(t, qt.IsTrue(skbs(t) >= held && held >= 20),
				qt.Commentf("%d skbs, of which %d are held", skbs(t), held))
		}
		n.check(detach(n.nl[3], n.ifindex[port]))
		n.waitEmpty()
		n.check(Attach(n.nl[3], n.ifindex[port]))
	}
	lost := n.stats(port).Drops[DropReset]
	qt.Assert(t, qt.IsTrue(lost > 10*rounds), qt.Commentf("%d", lost))
	after := skbs(t)
	began := time.Now()
	for ; after > before+rounds && time.Since(began) < time.Minute; after = skbs(t) {
		time.Sleep(100 * time.Millisecond) // for RCU
	}
	qt.Assert(t, qt.IsTrue(after <= before+rounds),
		qt.Commentf("%d skbs before, %d after losing %d", before, after, lost))
}

// fillAgain congests s->h2 until h0 is paused.
func (n *network) fillAgain() {
	n.t.Helper()
	paused := n.stats(2).PauseSent
	fd := n.openSender(0, dataClass)
	defer unix.Close(fd)
	n.t0Ns = n.nowNs() + 5_000
	for _, p := range backToBack(0, 2, dataClass, 30, 0) {
		n.check(n.sendFrame(fd, 0, p))
	}
	n.waitUntil("h0 is paused", func() bool { return n.stats(2).PauseSent > paused })
}

// skbs is how many there are, the slab allocator's per-CPU caches flushed.
func skbs(t *testing.T) int {
	t.Helper()
	total := 0
	for _, cache := range []string{"skbuff_head_cache", "skbuff_fclone_cache"} {
		qt.Assert(t, qt.IsNil(os.WriteFile("/sys/kernel/slab/"+cache+"/shrink", []byte("1"), 0)))
	}
	b, err := os.ReadFile("/proc/slabinfo")
	qt.Assert(t, qt.IsNil(err))
	for line := range strings.Lines(string(b)) {
		var active int
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[0], "skbuff_") &&
			strings.HasSuffix(f[0], "_cache") {
			_, err := fmt.Sscan(f[1], &active)
			qt.Assert(t, qt.IsNil(err))
			total += active
		}
	}
	return total
}
