// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
)

// scriptedDelayNs is the delay of each link of the scripted network.
const scriptedDelayNs = 2000

// scriptedNetwork has three senders and two receivers behind two switches, so that each packet
// leaves by three ports. The link to one receiver is slow: its switch pauses the other.
const scriptedNetwork = `7 2 6
5 6
0 5 10Gbps 0.002ms 0
1 5 10Gbps 0.002ms 0
2 5 10Gbps 0.002ms 0
5 6 10Gbps 0.002ms 0
6 3 3Gbps 0.002ms 0
6 4 10Gbps 0.002ms 0
`

// scriptedRuns are what the two engines must agree in. A ns lasts 66 us on the kernel's clock, so
// that ports do all that is due in it.
var scriptedRuns = []struct{ scheme, network, parameters string }{
	{"pcn", "pfc: {xoff: 6KB, xon: 4KB}", ""},
	{"pcn", "pfc: {xoff: 6KB, xon: 5KB}", "noise: {moderation: 7us}"},
	{"dcqcn", "pfc: {dynamic: {alpha: 1/4, xon_offset: 1KB}}, buffer: 60KB",
		"dcqcn: {marking: {kmin: 2KB, kmax: 20KB, pmax: 50%}}"},
	{"dcqcn+tcd", "pfc: {xoff: 6KB, xon: 4KB}", "dcqcn: {marking: {kmin: 2KB, kmax: 2KB}}"},
	{"dcqcn+tcd", "flow_control: cbfc, cbfc: {buffer: 10KB, period: 2us}",
		"dcqcn: {marking: {kmin: 2KB, kmax: 2KB}}"},
}

// scripted is an experiment in which each of 256 packets is a burst of its own, of one packet, with
// its own departure, size, priority and receiver. No host decides anything.
func scripted(scheme, network, parameters string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `name: scripted
topology: {file: network.txt}
switch: {%s, detectors: true}
schemes: [%s]
%s
warmup: 0ms
duration: 700us
dilation: 16
bursts:
`, network, scheme, parameters)
	add := func(i, to, atNs, size, priority int) {
		fmt.Fprintf(&b, "  - {name: P%d, from: H%d, to: H%d, at: %dns, size: %dB, priority: %d, "+
			"rate: 10Gbps}\n", i, i%3, to, atNs, size, priority)
	}
	for i := range 250 {
		add(i, 3+i%5%2, 151*i+i*i%97, 22+7919*i%900, i%7%2)
	}
	for i := 250; i < 256; i++ { // Linux's ports look for PAUSE when they have something to send
		add(i, 4, 400_000+1000*i, 100, i/3%2)
	}
	return b.String()
}

// TestScripted: packets that leave their hosts at fixed times reach their receivers at the same ns,
// with the same mark, on Linux and in the simulator. So do PAUSE and RESUME, and ports count the
// same.
func TestScripted(t *testing.T) {
	t.Parallel()
	for i, test := range scriptedRuns {
		t.Run(fmt.Sprintf("%s %s", test.scheme, test.network), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{
				"network.txt":   scriptedNetwork,
				"scripted.yaml": scripted(test.scheme, test.network, test.parameters),
			} {
				qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)))
			}
			out := filepath.Join(dir, fmt.Sprint(i))
			stdout, stderr, code := run(t, "run", filepath.Join(dir, "scripted.yaml"),
				"--engine", "kernel,sim", "--out", out)
			qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
			linux, err := result.Read(filepath.Join(out, "kernel", test.scheme))
			qt.Assert(t, qt.IsNil(err))
			simulated, err := result.Read(filepath.Join(out, "sim", test.scheme))
			qt.Assert(t, qt.IsNil(err))
			sameScript(t, linux, simulated)
		})
	}
}

func sameScript(t *testing.T, linux, simulated *result.Run) {
	t.Helper()
	qt.Assert(t, qt.HasLen(simulated.Flows, len(linux.Flows)))
	for i, f := range linux.Flows { // of one packet
		qt.Assert(t, qt.IsNotNil(f.EndNs))
		qt.Assert(t, qt.DeepEquals(simulated.Flows[i], f))
	}
	qt.Assert(t, qt.DeepEquals(pauses(simulated, 0), pauses(linux, scriptedDelayNs)))
	qt.Assert(t, qt.HasLen(simulated.Ports, len(linux.Ports)))
	for i, p := range portsOf(linux) {
		qt.Check(t, qt.DeepEquals(portsOf(simulated)[i], p))
	}
	said := detected(linux)
	qt.Check(t, qt.DeepEquals(detected(simulated), said))
	t.Logf("%d PAUSE and RESUME frames; %+v", len(linux.PFC), said)
}

// pauses returns the frames of PFC in the order of time. On Linux the delay of a host's link is
// behind the switch, so the clock of switches is a delay behind that of hosts.
func pauses(r *result.Run, behindNs int64) []result.PFCEvent {
	events := slices.Clone(r.PFC)
	for i := range events {
		e := &events[i]
		e.SentNs += behindNs
		if e.To[0] != 'H' {
			e.EffectNs += behindNs
		}
	}
	slices.SortFunc(events, func(a, b result.PFCEvent) int {
		return cmp.Or(cmp.Compare(a.SentNs, b.SentNs), cmp.Compare(a.From+a.To, b.From+b.To),
			cmp.Compare(a.Class, b.Class))
	})
	return events
}

// portsOf returns what ports counted, without what the engines mean to do differently: Linux has a
// host's packets in its port before they are due, and may be late; the delay of a host's link is
// behind the switch.
func portsOf(r *result.Run) []result.Port {
	ports := slices.Clone(r.Ports)
	for i := range ports {
		p := &ports[i]
		p.DelayNs, p.LatenessP50Ns, p.LatenessP99Ns, p.LatenessMaxNs = 0, 0, 0, 0
		if p.Tier == "host" {
			p.QueueMaxBytes = 0
		}
	}
	return ports
}

// detected sums up what detectors said of each port's packets. How long a port was OFF is capped by
// bins there, which are not the same on the two clocks; ports count it too.
func detected(r *result.Run) map[string]result.State {
	sums := map[string]result.State{}
	for _, s := range r.States {
		sum := sums[s.Port]
		sum.SentPackets += s.SentPackets
		sum.NPECNPackets += s.NPECNPackets
		sum.ECNPackets += s.ECNPackets
		sum.FECNPackets += s.FECNPackets
		sum.TCDCEPackets += s.TCDCEPackets
		sum.TCDUEPackets += s.TCDUEPackets
		sums[s.Port] = sum
	}
	return sums
}
