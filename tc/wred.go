// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"fmt"

	"github.com/vishvananda/netns"
)

// WREDOptions holds the thresholds of a switch's queue. The queue is the root qdisc of the device.
type WREDOptions struct {
	// RED marks ECN-capable packets: with probability 0 up to KMinBytes, rising to PMax at
	// KMaxBytes, and 1 above.
	KMinBytes, KMaxBytes uint64
	PMax                 float64 // 0 to 1; 0 marks none
	// WREDBytes is K: from this queue length on, packets that are not ECN-capable are dropped; 0
	// drops none.
	WREDBytes uint64
	// FixedProbability, for tests, is the marking probability at any queue length; with 0 RED
	// decides.
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

// WRED marks and drops at a device as a switch does (tc/bpf/wred.bpf.c).
type WRED struct{ object }

// LoadWRED loads the program; it fails for thresholds that are out of range.
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

// fraction converts a share to the fixed-point number of bpf/algo/fixed.h.
func fraction(f float64) uint32 { return uint32(f*(1<<24) + 0.5) }

// Attach attaches it last at the device's egress, after programs that change ECN fields.
func (w *WRED) Attach(h netns.NsHandle, ifindex int) error {
	return w.attachAll(h, ifindex, w.Places())
}

// Counts reads the packets by verdict: struct wred_counts of tc/bpf/wred.bpf.c.
func (w *WRED) Counts() (Counts, error) { return w.readCounts(wredCounts) }
