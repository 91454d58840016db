// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"maps"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"
)

// nonZero are the counters that counted anything, for tests to name.
func nonZero(t *testing.T, c Counts, err error) Counts {
	t.Helper()
	qt.Assert(t, qt.IsNil(err))
	maps.DeleteFunc(c, func(_ string, n uint64) bool { return n == 0 })
	return c
}

func (n *NP) counts(t *testing.T) Counts {
	t.Helper()
	c, err := n.Counts()
	return nonZero(t, c, err)
}

func (r *RP) counts(t *testing.T) Counts {
	t.Helper()
	c, err := r.Counts()
	return nonZero(t, c, err)
}

// total is how many packets were counted.
func (c Counts) total() (n uint64) {
	for _, v := range c {
		n += v
	}
	return n
}

// Every counter is shown by the name of its member in C, also of a map that another process loaded.
func TestCountsHaveTheNamesInC(t *testing.T) {
	n := loadMarked(t, markedOptions{})
	for _, c := range []struct {
		of    interface{ Counts() (Counts, error) }
		names []string
	}{
		{n, []string{
			"busy", "cnp_decrease", "cnp_hold", "cnp_increase", "ended", "extensions", "forged",
			"idle", "no_clone", "no_flow", "no_timer",
		}},
		{newRP(t), []string{
			"bad_icrc", "bad_tag", "cnp_ce_lost", "cnp_decrease", "cnp_hold", "cnp_increase",
			"cnp_udp", "elsewhere", "interface",
			"malformed", "no_flow", "no_key", "prefix", "rate_limited", "replayed",
			"rise_limited", "stale",
			"unseen", "unsigned",
		}},
	} {
		counts, err := c.of.Counts()
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(slices.Sorted(maps.Keys(counts)), c.names))
	}
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { m.Close() })
	_, err = ReadCounts("np_counts", m, nil)
	qt.Check(t, qt.ErrorMatches(err, "read the names of the counters in .*"))
}
