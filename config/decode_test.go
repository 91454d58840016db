// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/go-quicktest/qt"
)

func TestSuggestIsTheClosest(t *testing.T) {
	qt.Assert(t, qt.Equals(Suggest("hold", []string{"hole", "holds", "cold"}),
		`did you mean "hole"?`))
	qt.Assert(t, qt.Equals(Suggest("a", []string{"b"}), `one of b`))
	qt.Assert(t, qt.Equals(editDistance("kitten", "sitting"), 3))
	qt.Assert(t, qt.Equals(editDistance("", "abc"), 3))
}
