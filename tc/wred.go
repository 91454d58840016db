// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"fmt"

	"github.com/vishvananda/netns"
)

// WREDOptions are what a switch does at one of its queues. The queue is the root qdisc of the
// device.
type WREDOptions struct {
	// RED, of packets that are ECN-capable: marked with probability 0 up to KMinBytes, PMax at
	// KMaxBytes, 1 above.
	KMinBytes, KMaxBytes uint64
	PMax                 float64 // 0 to 1; 0: none is marked
	// WREDBytes is K: a queue that is so long drops packets that are not ECN-capable; 0: never.
	WREDBytes uint64
	// FixedProbability is for tests: of marking, whatever the queue; 0: RED decides.
	FixedProbability float64
}

func (o WREDOptions) check() error {
	if o.KMinBytes > o.KMaxBytes || o.KMaxBytes >= 1<<40 || !(o.PMax >= 0 && o.PMax <= 1) {
		return fmt.Errorf("%d to %d bytes, p_max %g: want k_min <= k_max < 2^40, 0 <= p_max <= 1",
			o.KMinBytes, o.KMaxBytes, o.PMax)
	}
	if !(o.FixedProbability >= 0 && o.FixedProbability <= 1) {
		return fmt.Errorf("fixed probability %g: want 0 to 1", o.FixedProbability)
	}
	return nil
}

// WRED plays the switch at a device (tc/bpf/wred.bpf.c).
type WRED struct{ object }

// LoadWRED loads it.
func LoadWRED(o WREDOptions, options ...Option) (*WRED, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("wred: %w", err)
	}
	spec, err := loadWred()
	if err != nil {
		return nil, err
	}
	obj, err := load("wred", spec, map[string]any{
		wredVarRed: wredRedParams{
			KminBytes: o.KMinBytes, KmaxBytes: o.KMaxBytes, Pmax: fraction(o.PMax),
		},
		wredVarWredBytes:        o.WREDBytes,
		wredVarFixedProbability: fraction(o.FixedProbability),
	}, nil, options...)
	if err != nil {
		return nil, err
	}
	return &WRED{obj}, nil
}

// fraction is a share as bpf/algo/fixed.h has it.
func fraction(f float64) uint32 { return uint32(f*(1<<24) + 0.5) }

// Attach puts it last at the device's egress, after what changes ECN fields.
func (w *WRED) Attach(h netns.NsHandle, ifindex int) error {
	return w.attachAll(h, ifindex, w.Places())
}

// Counts reads the packets by verdict: struct wred_counts of tc/bpf/wred.bpf.c.
func (w *WRED) Counts() (Counts, error) { return w.readCounts(wredCounts) }
