// SPDX-License-Identifier: Apache-2.0

package fig2

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// The baseline is kept while only the scheme changes, and nothing else is.
func TestBaselineIsKept(t *testing.T) {
	var s Simulator
	small := Choice{Scheme: "timely", BurstKB: 8, Seed: 2}
	first, err := s.Pictures(t.Context(), small)
	qt.Assert(t, qt.IsNil(err))
	kept := s.kept
	small.Scheme = "dcqcn"
	_, err = s.Pictures(t.Context(), small)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(s.kept, kept))
	small.Seed, small.Scheme = 3, "timely"
	other, err := s.Pictures(t.Context(), small)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Not(qt.Equals(s.kept, kept)))
	small.Seed = 2
	again, err := s.Pictures(t.Context(), small)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(again, first))
	qt.Check(t, qt.Not(qt.DeepEquals(again, other)))
	qt.Assert(t, qt.HasLen(first, 2))
	qt.Check(t, qt.StringContains(first[0].Heading, "TIMELY"))
	qt.Check(t, qt.IsTrue(strings.HasPrefix(first[0].SVG, "<svg ")))
}

func TestUnknownScheme(t *testing.T) {
	var s Simulator
	_, err := s.Pictures(t.Context(), Choice{Scheme: "pnc", BurstKB: 8, Seed: 1})
	qt.Check(t, qt.ErrorMatches(err, `.*"?pnc"?.*`))
}
