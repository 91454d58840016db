// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"math"
	"testing"

	"github.com/go-quicktest/qt"

	"pcn/loader"
	"pcn/netns-lab/experiment"
)

// The default table is that of IBM's simulator: a gap of CCTI^2 * 3300 / 6889 ns behind packets of 2 KB at 32 Gbit/s. 14
// and 2 bits tell an eighth of a packet's time.
func TestCCT(t *testing.T) {
	table := cct(experiment.IBCC{Limit: 127, Delay: 15, Exponent: 2})
	qt.Assert(t, qt.HasLen(table, 128))
	for i, e := range table {
		want := float64(i*i) * 3300 / 6889 / 512
		qt.Check(t, qt.IsTrue(math.Abs(e.Delay()-want) < 0.01*want+1./16), qt.Commentf("entry %d: %g, want %g", i, e.Delay(), want))
	}
	qt.Check(t, qt.DeepEquals(cct(experiment.IBCC{Limit: 2, Delay: 3, Exponent: 1}), []loader.CCTEntry{{Shift: 3}, {Multiplier: 12, Shift: 3}, {Multiplier: 24, Shift: 3}}))
}
