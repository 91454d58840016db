// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// groBytes is the most that Linux's GRO puts together.
const groBytes = 1 << 16

// noise makes hosts see late what arrives.
type noise struct {
	delaysNs [experiment.NoiseDelays]uint64
	random   *rand.Rand
	lookAt   []int64 // by port towards a host: when it looks the next time, or last did
}

// newNoise returns nil if hosts see all at once.
func newNoise(e *experiment.Experiment, ports int) *noise {
	if !e.Noise.Late() {
		return nil
	}
	return &noise{e.Noise.DelaysNs(), rand.New(rand.NewPCG(e.Seed, 4)), make([]int64, ports)}
}

// seen returns when a host sees what arrives at a time, by a port, no earlier than what was sent
// before. The first packet after a look brings the next one about.
func (n *noise) seen(port int32, at int64) int64 {
	look := &n.lookAt[port]
	if at > *look {
		*look = at + int64(n.delaysNs[n.random.IntN(len(n.delaysNs))])
	}
	return *look
}
