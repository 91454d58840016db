// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
)

// A flow of 80 frames, 64 us of its link, with a window of T = 50 us. By Fig. 8's text its windows
// end 50 and 100 us after its first packet arrived: the second when no packet comes any more.
// Windows that packets close have one CNP.
func TestPeriodicWindowsEndByATimer(t *testing.T) {
	text := strings.NewReplacer("[pfc]", "[pcn]\npcn: {window: WINDOW, T: 50us}\nsample: 1us",
		"9340B", "74720B").Replace(oneFlow)
	heard := func(window string) (timesUs []int64) {
		r := simulate(t, parse(t, strings.Replace(text, "WINDOW", window, 1)), "pcn")
		cnps := uint64(0)
		for _, s := range r.Series {
			if s.Kind == result.KindSender && s.Name == "F0" && s.CNPs > cnps {
				cnps = s.CNPs
				timesUs = append(timesUs, s.TimeNs/1000)
			}
		}
		return timesUs
	}
	// The first packet is there after 3 * 800 + 15,000 ns; a CNP takes 3 * 60 + 15,000 ns and more.
	const first, back = 17, 15
	qt.Check(t, qt.DeepEquals(heard("periodic"), []int64{first + 50 + back, first + 100 + back}))
	qt.Check(t, qt.DeepEquals(heard("armed"), []int64{first + 50 + back}))
}
