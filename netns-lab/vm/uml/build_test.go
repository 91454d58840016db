// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"os"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

// TestBuildForReal builds from the package that PCN_LINUX_SOURCE names: minutes.
func TestBuildForReal(t *testing.T) {
	file := os.Getenv("PCN_LINUX_SOURCE")
	if file == "" {
		t.Skip("PCN_LINUX_SOURCE names no package of Linux's source")
	}
	data, err := os.ReadFile(file)
	qt.Assert(t, qt.IsNil(err))
	began := time.Now()
	qt.Assert(t, qt.IsNil(Build(t.Context(), os.Getenv("PCN_CACHE"), data, func(done float64) {
		if int(done*1000)%100 == 0 {
			t.Log(time.Since(began), done)
		}
	})))
}
