// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// tshark returns the lines tshark prints for the packets of a capture that
// match filter: the named fields, separated by commas.
func tshark(t *testing.T, capture, filter string, fields ...string) []string {
	t.Helper()
	path, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed: apt-get install tshark")
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "pcn.lua")
	qt.Assert(t, qt.IsNil(os.WriteFile(script, []byte(Dissector), 0o600)))

	args := []string{"-n", "-r", capture, "-o", "ip.check_checksum:TRUE", "-X", "lua_script:" + script, "-Y", filter, "-T", "fields", "-E", "separator=,"}
	for _, field := range fields {
		args = append(args, "-e", field)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	// The settings of whoever runs the test must not count.
	cmd.Env = append(os.Environ(), "WIRESHARK_CONFIG_DIR="+dir, "LC_ALL=C")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", &stderr))
	qt.Assert(t, qt.Not(qt.StringContains(stderr.String(), "Lua")), qt.Commentf("the script failed"))
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// writeCapture writes a capture of a decrease, an increase, a pause of class 3,
// its end and the CNP of a NIC.
func writeCapture(t *testing.T) string {
	t.Helper()
	var file bytes.Buffer
	c := newCapture(t, &file, "H0", "S1:S0")
	for _, f := range []struct {
		iface int
		atNs  int64
		frame []byte
	}{
		{0, -12800, marshal(t, decrease())},
		{0, 50000, marshal(t, increase())},
		{1, 60001, marshalPFC(t, pause(t, 3))},
		{1, 70000, marshalPFC(t, resume(t, 3))},
		{0, 80000, unhex(t, nicCNP)},
	} {
		qt.Assert(t, qt.IsNil(c.WriteFrame(f.iface, f.atNs, f.frame)))
	}
	qt.Assert(t, qt.IsNil(c.Flush()))
	path := filepath.Join(t.TempDir(), "pfc.pcapng")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, file.Bytes(), 0o600)))
	return path
}

func TestTshark(t *testing.T) {
	capture := writeCapture(t)
	for _, tc := range []struct {
		name   string
		filter string
		fields []string
		want   []string
	}{
		{
			name:   "run clock and interfaces",
			filter: "frame",
			fields: []string{"frame.time_epoch", "frame.interface_name"},
			want: []string{
				"999.999987200,H0", "1000.000050000,H0", "1000.000060001,S1:S0", "1000.000070000,S1:S0", "1000.000080000,H0",
			},
		},
		{
			name:   "CNP is RoCEv2",
			filter: "infiniband.bth.opcode == 129",
			fields: []string{"ip.src", "ip.dst", "ip.dsfield.dscp", "ip.dsfield.ecn", "udp.dstport"},
			want: []string{
				"10.0.1.2,10.0.0.1,48,3,4791", "10.0.1.2,10.0.0.1,48,0,4791", "10.0.17.1,10.0.18.1,48,2,4791",
			},
		},
		{
			name:   "nothing is malformed",
			filter: "_ws.malformed || _ws.expert.severity >= 0x600000 || ip.checksum.status == 0",
			fields: []string{"frame.number"},
		},
		{
			name:   "PFC",
			filter: "macc.opcode == 0x0101 && macc.cbfc.enbv.c3 == 1 && macc.cbfc.enbv.c2 == 0",
			fields: []string{"eth.dst", "macc.cbfc.enbv", "macc.cbfc.pause_time.c2", "macc.cbfc.pause_time.c3"},
			want:   []string{"01:80:c2:00:00:01,0x0008,0,65535", "01:80:c2:00:00:01,0x0008,0,0"},
		},
		{
			name:   "our dissector",
			filter: "pcn",
			fields: []string{"frame.number", "pcn.recrate", "pcn.srcport", "pcn.dstport", "_ws.col.Protocol", "_ws.col.Info"},
			want: []string{
				"1,9500,40000,5001,PCN CNP,flow 40000 -> 5001 decrease to 9500 Mbit/s",
				"2,0,40000,5001,PCN CNP,flow 40000 -> 5001 increase",
			},
		},
		{
			name:   "our decrease",
			filter: "pcn.decrease == 1 && pcn.recrate > 9000",
			fields: []string{"frame.number"},
			want:   []string{"1"},
		},
		{
			name:   "our increase",
			filter: "pcn.decrease == 0",
			fields: []string{"frame.number"},
			want:   []string{"2"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.DeepEquals(tshark(t, capture, tc.filter, tc.fields...), tc.want))
		})
	}
}
