// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"math"
)

// LateShare is the largest 99th percentile of lateness in a valid run, as a share of the base RTT.
const LateShare = 0.05

func (m *Manifest) lateLimitNs() int64 { return int64(LateShare * float64(m.BaseRTTNs)) }

// late is what is bounded.
type late struct {
	what  string
	p99Ns int64
}

func (m *Manifest) lateness() []late {
	return []late{
		{"of packets were", m.LatenessP99Ns},
		{"of flows sent their first packet", m.HostLateness.Starts.P99Ns},
		{"of ACKs left their host", m.HostLateness.ACKs.P99Ns},
		{"of data packets left their host", m.HostLateness.Data.P99Ns},
	}
}

// Late returns where the kernel was too slow to keep the ideal times, each as a reason why the run
// is invalid. A higher dilation helps.
func (m *Manifest) Late() []string {
	var reasons []string
	for _, l := range m.lateness() {
		if l.p99Ns > m.lateLimitNs() {
			reasons = append(reasons, fmt.Sprintf(
				"99%% %s up to %d ns late, over 5%% of the base RTT (%d ns): raise `dilation`",
				l.what, l.p99Ns, m.lateLimitNs()))
		}
	}
	if m.CausalityViolations > 0 {
		reasons = append(reasons, fmt.Sprintf(
			"%d packets came after their ideal time had been decided: raise `dilation`",
			m.CausalityViolations))
	}
	return reasons
}

// LateBy returns by how much to raise the dilation of a run that was late, 1 to 3: the work takes
// the machine so much longer than the bound allows. More than that is a guess.
func (m *Manifest) LateBy() uint {
	worst := 1.0
	for _, l := range m.lateness() {
		worst = max(worst, float64(l.p99Ns)/float64(max(m.lateLimitNs(), 1)))
	}
	return uint(min(max(math.Ceil(math.Log2(worst)), 1), 3))
}
