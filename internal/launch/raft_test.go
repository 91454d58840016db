// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// raftNetwork cuts two of five nodes off, three times, each time others.
const raftNetwork = `name: raft
topology: {kind: star, hosts: 4, rate: 100Mbps, delay: 500us}
schemes: [cubic]
switch: {pfc: {off: true}, port_buffer: 500KB}
duration: 20s
warmup: 0ms
sample: 100ms
seed: %d
captures: [H0]
partitions:
  - {hosts: [H0, H1], at: 2s, until: 3s}
  - {hosts: [H2, H3], at: 4s, until: 5s}
  - {hosts: [R0, H0], at: 6s, until: 7s}
programs:
`

// raftOf returns the experiment with a seed and further arguments of the nodes.
func raftOf(t *testing.T, program string, seed int, more string) *experiment.Experiment {
	t.Helper()
	text := fmt.Sprintf(raftNetwork, seed)
	for _, host := range []string{"H0", "H1", "H2", "H3", "R0"} {
		text += fmt.Sprintf("  - {name: n%[1]s, host: %[1]s, server: true, command: [%[2]s, node, "+
			"%[1]s, H0, H1, H2, H3, R0%[3]s]}\n", host, program, more)
	}
	text += fmt.Sprintf("  - {name: judge, host: R0, at: 9s, command: [%s, judge, H0, H1, H2, H3, "+
		"R0]}\nexpect: [{what: one leader at a time, program: judge, exit: 0}]\n", program)
	e, err := experiment.Parse("raft.yaml", []byte(text))
	qt.Assert(t, qt.IsNil(err))
	return e
}

func runRaft(t *testing.T, e *experiment.Experiment) (run *result.Run, held bool) {
	t.Helper()
	run = runAtOnce(t, e, "cubic", 1)[0]
	return run, !result.Judge(e, []*result.Run{run}).Fails()
}

// Five nodes of etcd's Raft are parted and come together again. As they are, one leader at a time
// holds a lease. If leases outlast the timeout of elections, some seed has two; which one is up to
// the nodes' random timeouts. Each seed does the same again.
func TestRaftThroughPartitions(t *testing.T) {
	program := buildModule(t, "raft")
	const mostSeeds = 30 // about half of the seeds find it
	for seed := 1; ; seed++ {
		qt.Assert(t, qt.IsTrue(seed <= mostSeeds), qt.Commentf("no seed finds the bug"))
		right, held := runRaft(t, raftOf(t, program, seed, ""))
		judge := right.Programs[len(right.Programs)-1].Files[result.StdoutFile]
		qt.Assert(t, qt.IsTrue(held), qt.Commentf("seed %d: %s", seed, judge))
		planted := raftOf(t, program, seed, `, -lease, "30"`)
		run, held := runRaft(t, planted)
		if held {
			continue
		}
		judge = run.Programs[len(run.Programs)-1].Files[result.StdoutFile]
		qt.Check(t, qt.Matches(string(judge), `(?s).*nodes \d and \d hold leases at .*`))
		t.Logf("seed %d: %s", seed, judge)
		for _, again := range runAtOnce(t, planted, "cubic", 2) { // each beside a busy CPU
			qt.Check(t, qt.HasLen(result.Diff(run, again), 0))
		}
		return
	}
}
