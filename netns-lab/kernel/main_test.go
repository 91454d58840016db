// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/vmtest"
)

// TestMain runs the tests where CPUs take no time, and those that need slow ones in QEMU.
func TestMain(m *testing.M) {
	os.Exit(vmtest.RunTests(m, vmtest.Extra{
		OnDebian: []string{"TestSlowHostsAreInvalid", "TestInvalidRuns"},
	}))
}

func virtualTime(t *testing.T) bool {
	t.Helper()
	is, err := inVirtualTime()
	qt.Assert(t, qt.IsNil(err))
	return is
}
