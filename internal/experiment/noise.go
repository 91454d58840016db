// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"math"

	"github.com/pcn-linux/pcn/config"
)

// Noise is what real hosts do with what arrives, and ideal ones do not: they look at it late, and
// at several packets together. What stops a host's NIC, PAUSE, is not late.
type Noise struct {
	// Moderation is that of interrupts: a host looks at what has arrived when this has passed since
	// the first packet that it has not seen. 0, the default, to 1ms.
	Moderation Duration `yaml:"moderation"`
	// Scheduling is the mean of a random delay that each such look has besides, exponentially
	// distributed. What arrives meanwhile is looked at too. 0, the default, to 1ms.
	Scheduling Duration `yaml:"scheduling"`
	// GRO has a receiver acknowledge once what it sees of a flow at one look, up to 64 KB, as
	// Linux's generic receive offload does. Default false. Only the simulator has it.
	GRO bool `yaml:"gro"`
}

const maxNoise = Millisecond

func (d *decoder) validateNoise(e *Experiment) {
	config.InRange(d.Decoder, "noise.moderation", e.Noise.Moderation, 0, maxNoise)
	config.InRange(d.Decoder, "noise.scheduling", e.Noise.Scheduling, 0, maxNoise)
	if e.Noise.GRO {
		d.needsSim(e, "noise.gro")
	}
}

// Late reports whether hosts see packets later than they arrive.
func (n Noise) Late() bool { return n.Moderation > 0 || n.Scheduling > 0 }

// NoiseDelays is how many values the distribution of [Noise.DelaysNs] has.
const NoiseDelays = 256

// DelaysNs are equally likely delays from an arrival to the look that is due then: moderation, and
// the quantiles of the exponential distribution in the middle of each of so many equal shares. So
// engines that draw numbers otherwise draw from one distribution, and its longest delay is known:
// moderation and 6.2 times the mean of scheduling.
func (n Noise) DelaysNs() [NoiseDelays]uint64 {
	var delays [NoiseDelays]uint64
	for i := range delays {
		quantile := -math.Log(1 - (float64(i)+0.5)/NoiseDelays)
		delays[i] = uint64(n.Moderation) + uint64(math.Round(float64(n.Scheduling)*quantile))
	}
	return delays
}
