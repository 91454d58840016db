// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// Several CPUs change what QEMU can't do with them, and one CPU is as it always was.
func TestSeveralCPUs(t *testing.T) {
	one := strings.Join(arguments(Config{}, counted, paths{}), " ")
	qt.Check(t, qt.StringContains(one, "-smp 1 "))
	qt.Check(t, qt.StringContains(one, "rr=record"))
	qt.Check(t, qt.StringContains(one, noLocalTimer))
	qt.Check(t, qt.IsFalse(strings.Contains(one, "-monitor")))
	qt.Check(t, qt.StringContains(one, "-cx16"))

	two := strings.Join(arguments(Config{CPUs: 2}, counted, paths{}), " ")
	qt.Check(t, qt.StringContains(two, "-smp 2 "))
	qt.Check(t, qt.StringContains(two, "-icount shift=0,sleep=off "))
	qt.Check(t, qt.StringContains(two, ",-monitor"))
	qt.Check(t, qt.IsFalse(strings.Contains(two, "cx16")))
	qt.Check(t, qt.IsFalse(strings.Contains(two, noLocalTimer)))
	qt.Check(t, qt.IsTrue(slices.Contains(clockParameters, noLocalTimer))) // not changed itself
}

// TestTick: only a microVM that asks for it keeps its tick.
func TestTick(t *testing.T) {
	for _, tick := range []bool{false, true} {
		args := strings.Join(arguments(Config{Tick: tick}, counted, paths{}), " ")
		qt.Check(t, qt.Equals(strings.Contains(args, " nohz=off "), tick))
	}
	qt.Check(t, qt.IsFalse(slices.Contains(clockParameters, "nohz=off"))) // not changed itself
}
