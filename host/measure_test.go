// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/host"
)

// The line rate is that of the interfaces, whatever link modes the kernel knows, and nothing is
// said on stdout, which may be read by a program.
func TestLineRateOfInterfaces(t *testing.T) {
	wire(t)
	r, w, err := os.Pipe()
	qt.Assert(t, qt.IsNil(err))
	defer r.Close()
	stdout := os.Stdout
	os.Stdout = w
	up(t, strings.Replace(points, "line_rate", "# line_rate", 1))
	os.Stdout = stdout
	w.Close()
	said, err := io.ReadAll(r)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(said), ""))
	rates := slices.DeleteFunc(settingsOf(t, "control_pcn"),
		func(s host.Setting) bool { return s.Key != "line_rate" })
	qt.Check(t, qt.DeepEquals(rates, []host.Setting{{Key: "line_rate", Value: "10Gbps"}}))
}
