// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/guest"
	"github.com/pcn-linux/pcn/internal/vm/vmtest"
)

// TestMain runs the tests where CPUs take no time, and those that need slow ones in QEMU.
func TestMain(m *testing.M) {
	code := vmtest.RunTests(m, vmtest.Extra{})
	if code == 0 && !guest.Inside() {
		code = vmtest.RunTests(m, vmtest.Extra{QEMU: true,
			Flags: []string{"-test.run=^(TestSlowHostsAreInvalid|TestInvalidRuns)$"}})
	}
	os.Exit(code)
}

func virtualTime(t *testing.T) bool {
	t.Helper()
	is, err := inVirtualTime()
	qt.Assert(t, qt.IsNil(err))
	return is
}

// needsSlowCPUs skips a test where CPUs take no time.
func needsSlowCPUs(t *testing.T) {
	t.Helper()
	if virtualTime(t) {
		t.Skip("CPUs take no time here: TestMain runs this in QEMU, too")
	}
}
