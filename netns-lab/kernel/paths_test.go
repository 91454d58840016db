// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

// closYAML is the fabric of PCN, section 7.4.
const closYAML = `
name: clos
topology: {kind: clos, rate: 10Gbps, leaf_links: {rate: 40Gbps, parallel: 2}, spine_links: {rate: 40Gbps}}
schemes: [pfc]
duration: 1ms
flows: [{name: f, from: H0, to: H511}]
`

func TestMaxPaths(t *testing.T) { qt.Assert(t, qt.Equals(network.LinuxPaths, tc.PathsMax)) }

// TestPlanOfClos: a device a port, with a name that no other of the node has, and routes out of the
// node's own ports.
func TestPlanOfClos(t *testing.T) {
	p := planOf(t, closYAML)
	routes := p.routes()
	qt.Assert(t, qt.HasLen(p.nodes, 568))
	qt.Assert(t, qt.HasLen(p.ports, 1+2*768))
	for _, n := range p.nodes {
		devices := map[string]bool{}
		for _, id := range n.ports {
			devices[p.device(id)] = true
			qt.Assert(t, qt.IsTrue(len(p.device(id)) < unix.IFNAMSIZ))
			qt.Assert(t, qt.Equals(p.ports[id].name, n.name+"->"+p.device(id)))
		}
		qt.Assert(t, qt.HasLen(devices, len(n.ports)))
	}
	for n, to := range routes {
		for h, ports := range to {
			qt.Assert(t, qt.IsTrue(len(ports) >= 1 && len(ports) <= tc.PathsMax))
			for _, id := range ports {
				qt.Assert(t, qt.Equals(p.ports[id].node, n))
				qt.Assert(t, qt.IsTrue(p.ports[id].peer == h || !p.fromHost(id)))
			}
		}
	}
	qt.Check(t, qt.Equals(p.rttNs, 60_000))
}

// mix and flowHash are those of tc/bpf/fabric.bpf.c.
func mix(h, v uint32) uint32 {
	v *= 0xcc9e2d51
	v = bits.RotateLeft32(v, 15)
	v *= 0x1b873593
	h ^= v
	h = bits.RotateLeft32(h, 13)
	return h*5 + 0xe6546b64
}

func flowHash(k loader.FlowKey, seed uint32) uint32 {
	word := func(a netip.Addr) uint32 { b := a.As4(); return binary.NativeEndian.Uint32(b[:]) }
	var ports [4]byte
	binary.BigEndian.PutUint16(ports[:], k.Src.Port())
	binary.BigEndian.PutUint16(ports[2:], k.Dst.Port())
	h := mix(mix(mix(seed, word(k.Src.Addr())), word(k.Dst.Addr())), uint32(k.Protocol))
	h = mix(h, binary.NativeEndian.Uint32(ports[:]))
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// wayOf is the ports that a flow takes through the switches.
func (p *plan) wayOf(routes map[int][][]uint32, k loader.FlowKey, from, to int, seed func(node int) uint32) []uint32 {
	var way []uint32
	for at := p.ports[p.nodes[from].ports[0]].peer; at != to; {
		ports := routes[at][to]
		id := ports[uint64(flowHash(k, seed(at)))*uint64(len(ports))>>32]
		way = append(way, id)
		at = p.ports[id].peer
	}
	return way
}

// unevenness is the largest chi-square, over its degrees of freedom, of what a switch hands on to
// each of several ports: about 1 if flows are spread at random, whatever the switches before it
// chose.
func unevenness(p *plan, seed func(node int) uint32) float64 {
	routes := p.routes()
	sent := map[string][]float64{} // by the way so far and the node
	for i := range 40_000 {
		from, to := i%16, 448+i%64
		k := loader.FlowKey{
			Src:      netip.AddrPortFrom(p.nodes[from].addr, flowSrcPorts.first+uint16(i%10000)),
			Dst:      netip.AddrPortFrom(p.nodes[to].addr, flowDstPorts.first+uint16(i%40000)),
			Protocol: unix.IPPROTO_TCP,
		}
		at := p.ports[p.nodes[from].ports[0]].peer
		before := ""
		for _, id := range p.wayOf(routes, k, from, to, seed) {
			if ports := routes[at][to]; len(ports) > 1 && strings.Count(before, " ") < 3 { // further on flows are too few
				where := before + p.nodes[at].name
				if sent[where] == nil {
					sent[where] = make([]float64, len(ports))
				}
				sent[where][slices.Index(ports, id)]++
			}
			before += p.ports[id].name + " "
			at = p.ports[id].peer
		}
	}
	worst := 0.0
	for _, counts := range sent {
		total := 0.0
		for _, n := range counts {
			total += n
		}
		chi2, expected := 0.0, total/float64(len(counts))
		for _, n := range counts {
			chi2 += (n - expected) * (n - expected) / expected
		}
		worst = max(worst, chi2/float64(len(counts)-1))
	}
	return worst
}

// TestNoPolarisation: given what the ToR chose, leaves spread flows evenly over spines, and spines
// over leaves. With the same hash in all switches they would not.
func TestNoPolarisation(t *testing.T) {
	p := planOf(t, closYAML)
	worst := unevenness(p, hashSeed)
	qt.Check(t, qt.IsTrue(worst < 16), qt.Commentf("%g", worst)) // of 37 choices
	same := unevenness(p, func(int) uint32 { return 1 })
	qt.Check(t, qt.IsTrue(same > 100), qt.Commentf("%g", same))
}

// TestFlowsGoWhereTheHashSays holds the switches' program against flowHash, over parallel links and
// around a failed one.
func TestFlowsGoWhereTheHashSays(t *testing.T) {
	const yaml = `
name: ways
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2, rate: 10Gbps, spine_links: {rate: 40Gbps, parallel: 2}, failed: [L0-S1.1]}
schemes: [pfc]
warmup: 0.1ms
duration: 0.3ms
sample: 50us
bursts: [{name: b, from: H0..H1, to: H3, flows: 24, size: 1KB}]
`
	run := runShort(t, yaml, "pfc")
	qt.Assert(t, qt.Equals(run.Manifest.Verdict, result.Valid), qt.Commentf("%s", run.Manifest.Reasons))
	p := planOf(t, yaml)
	routes := p.routes()
	want := map[string]uint64{}
	for _, f := range run.Flows {
		k := loader.FlowKey{
			Src:      netip.AddrPortFrom(netip.MustParseAddr(f.SrcAddr), f.SrcPort),
			Dst:      netip.AddrPortFrom(netip.MustParseAddr(f.DstAddr), f.DstPort),
			Protocol: unix.IPPROTO_UDP,
		}
		for _, id := range p.wayOf(routes, k, p.host(f.Src), p.host(f.Dst), hashSeed) {
			want[p.ports[id].name] += f.Packets
		}
	}
	for _, name := range []string{"L0->S0.0", "L0->S0.1", "L0->S1.0", "S0->L1.0", "S0->L1.1", "S1->L1.0", "S1->L1.1"} {
		qt.Check(t, qt.IsTrue(want[name] > 0), qt.Commentf(name)) // all are taken
	}
	for _, port := range run.Ports {
		if node, _, _ := network.SplitPort(port.Name); !strings.HasPrefix(node, "H") {
			qt.Check(t, qt.Equals(port.SentPackets, want[port.Name]), qt.Commentf(port.Name))
		}
	}
}

// TestParallelPFC: PAUSE stops the one of several links that its packets came by.
func TestParallelPFC(t *testing.T) {
	const yaml = `
name: pause
topology: {kind: leaf-spine, leaves: 2, spines: 1, hosts: 6, rate: 10Gbps, spine_links: {rate: 40Gbps, parallel: 2}}
switch: {pfc: {xoff: 20KB}}
schemes: [pfc]
warmup: 0.1ms
duration: 0.5ms
sample: 50us
bursts: [{name: b, from: H0..H5, to: H6, flows: 4, size: 16KB}]
`
	run := runShort(t, yaml, "pfc")
	qt.Assert(t, qt.Equals(run.Manifest.Verdict, result.Valid), qt.Commentf("%s", run.Manifest.Reasons))
	for _, port := range run.Ports { // the verdict says that what ports count is what the log has
		if node, _, _ := network.SplitPort(port.Name); node == "S0" && port.Peer == "L1" {
			qt.Check(t, qt.IsTrue(port.PausedNs > 0), qt.Commentf(port.Name))
			qt.Check(t, qt.IsTrue(len(run.PausedIntervals(reversePort(port.Name))) > 0), qt.Commentf(port.Name))
		}
	}
}

// reversePort returns the name of the port at the other end of a link: S1->S0.1 for S0->S1.1.
func reversePort(name string) string {
	node, peer, _ := network.SplitPort(name)
	_, suffix, ok := strings.Cut(name, ".")
	if ok {
		node += "." + suffix
	}
	return network.PortName(peer, node)
}
