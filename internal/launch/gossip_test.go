// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// gossipNetwork cuts two of five nodes off for 20 s.
const gossipNetwork = `name: gossip
topology: {kind: star, hosts: 4, rate: 100Mbps, delay: 500us}
schemes: [cubic]
frame: 1514B
switch: {pfc: {off: true}, port_buffer: 500KB}
duration: 100s
warmup: 0ms
sample: 1s
captures: [H0]
partitions: [{hosts: [H0, H1], at: 5s, until: 25s}]
programs:
  - {name: end, host: R0, at: 60s, command: [echo]}
`

// deathOf returns when a node first heard that one of the others died, in seconds of the run, and
// the number of nodes that it knew alive in the end.
func deathOf(t *testing.T, said, others string) (firstS float64, alive string) {
	t.Helper()
	const clockS = 2 // what the clock of hosts has past the minute at the start
	lines := strings.Split(strings.TrimSpace(said), "\n")
	died := regexp.MustCompile(`^ *(\S+) s: (?:` + others + `) died, `)
	i := slices.IndexFunc(lines, died.MatchString)
	qt.Assert(t, qt.IsTrue(i >= 0), qt.Commentf("%s", said))
	firstS, err := strconv.ParseFloat(died.FindStringSubmatch(lines[i])[1], 64)
	qt.Assert(t, qt.IsNil(err))
	_, alive, _ = strings.Cut(lines[len(lines)-1], ", ")
	return firstS - clockS, alive
}

// Five nodes of memberlist are parted and find together again. None is held for dead before its
// suspicion times out, by the formula of the library's paper (Lifeguard, section IV.B): the fewer
// agree, the later. Of three, two others agree; of two, one.
func TestGossipThroughAPartition(t *testing.T) {
	program := buildModule(t, "gossip")
	text := gossipNetwork
	for _, host := range []string{"H0", "H1", "H2", "H3", "R0"} {
		text += fmt.Sprintf("  - {name: n%[1]s, host: %[1]s, server: true, command: [%[2]s, "+
			"%[1]s, H0]}\n", host, program)
	}
	e, err := experiment.Parse("gossip.yaml", []byte(text))
	qt.Assert(t, qt.IsNil(err))
	first := sameThrice(t, e, "cubic")

	const cutS, healedS, probeS, minS, maxS, expected = 5, 25, 1, 4, 24, 2
	for _, p := range first.Programs[1:] {
		others, agree := "H0|H1", 2.0
		if strings.Contains(others, p.Host) {
			others, agree = "H2|H3|R0", 1
		}
		timeoutS := maxS - math.Log(agree+1)/math.Log(expected+1)*(maxS-minS)
		said := string(p.Files[result.StdoutFile])
		died, alive := deathOf(t, said, others)
		qt.Check(t, qt.IsTrue(died > cutS+timeoutS && died < healedS), qt.Commentf("%s", said))
		// each probes one a second, and asks for a second
		qt.Check(t, qt.IsTrue(died < cutS+timeoutS+5*probeS), qt.Commentf("%s", said))
		qt.Check(t, qt.Equals(alive, "5 alive"), qt.Commentf("%s: %s", p.Name, said))
	}
}
