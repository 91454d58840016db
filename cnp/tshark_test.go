// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

	args := []string{"-n", "-r", capture, "-o", "ip.check_checksum:TRUE", "-X", "lua_script:" +
		script, "-Y", filter, "-T", "fields", "-E", "separator=,"}
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
	qt.Assert(t, qt.Not(qt.StringContains(stderr.String(), "Lua")),
		qt.Commentf("the script failed"))
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// writeCapture writes a capture of a decrease, an increase, a pause of class 3,
// its end, the CNP of a NIC and a hold.
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
		{0, 90000, marshal(t, hold())},
	} {
		qt.Assert(t, qt.IsNil(c.WriteFrame(f.iface, f.atNs, f.frame)))
	}
	return saveCapture(t, c, &file)
}

// saveCapture returns the name of a file with what c wrote to file.
func saveCapture(t *testing.T, c *Capture, file *bytes.Buffer) string {
	t.Helper()
	qt.Assert(t, qt.IsNil(c.Flush()))
	path := filepath.Join(t.TempDir(), "test.pcapng")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, file.Bytes(), 0o600)))
	return path
}

// writeCNMCapture writes a capture of a TCP segment and CNMs that answer it, a
// CNP, ICMP, an IPv6 packet and nothing, and of one cut off in its PDU.
func writeCNMCapture(t *testing.T) string {
	t.Helper()
	const ipv6 = `
		020000000002 020000000001 86dd
		60000000 03d01140 fd000000000000000000000000000001 fd000000000000000000000000000002
		9c401389 03d00000 0102030405060708 090a0b0c0d0e0f10`
	const icmp = `
		020000000002 020000000001 0800
		4500001c 00014000 400125cf 0a000001 0a000102
		0800f7fe 00000001`
	answer := func(sampled []byte) []byte {
		c, err := NewCNM(sampled)
		qt.Assert(t, qt.IsNil(err))
		return marshalCNM(t, c)
	}
	segment := append(unhex(t, sampledFrame), make([]byte, 936)...)
	var file bytes.Buffer
	c := newCapture(t, &file, "S1:S0")
	for i, frame := range [][]byte{
		segment, marshalCNM(t, congested(t)), answer(marshal(t, decrease())),
		answer(unhex(t, icmp)), answer(unhex(t, ipv6)),
		marshalCNM(t, CNM{}), marshalCNM(t, congested(t))[:offMSDULen],
	} {
		qt.Assert(t, qt.IsNil(c.WriteFrame(0, int64(i), frame)))
	}
	return saveCapture(t, c, &file)
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
				"999.999987200,H0", "1000.000050000,H0", "1000.000060001,S1:S0",
				"1000.000070000,S1:S0", "1000.000080000,H0", "1000.000090000,H0",
			},
		},
		{
			name:   "CNP is RoCEv2",
			filter: "infiniband.bth.opcode == 129",
			fields: []string{"ip.src", "ip.dst", "ip.dsfield.dscp", "ip.dsfield.ecn",
				"udp.dstport"},
			want: []string{
				"10.0.1.2,10.0.0.1,48,3,4791", "10.0.1.2,10.0.0.1,48,0,4791",
				"10.0.17.1,10.0.18.1,48,2,4791",
				"10.0.1.2,10.0.0.1,48,0,4791",
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
			fields: []string{"eth.dst", "macc.cbfc.enbv", "macc.cbfc.pause_time.c2",
				"macc.cbfc.pause_time.c3"},
			want: []string{"01:80:c2:00:00:01,0x0008,0,65535", "01:80:c2:00:00:01,0x0008,0,0"},
		},
		{
			name:   "our dissector",
			filter: "pcn",
			fields: []string{"frame.number", "pcn.recrate", "pcn.srcport", "pcn.dstport",
				"_ws.col.Protocol", "_ws.col.Info"},
			want: []string{
				"1,9500,40000,5001,PCN CNP,flow 40000 -> 5001 decrease to 9500 Mbit/s",
				"2,0,40000,5001,PCN CNP,flow 40000 -> 5001 increase",
				"6,0,40000,5001,PCN CNP,flow 40000 -> 5001 hold",
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
			filter: "pcn.decrease == 0 && pcn.undetermined == 0",
			fields: []string{"frame.number"},
			want:   []string{"2"},
		},
		{
			name:   "our hold",
			filter: "pcn.undetermined == 1",
			fields: []string{"frame.number"},
			want:   []string{"6"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.DeepEquals(tshark(t, capture, tc.filter, tc.fields...), tc.want))
		})
	}
}

// Tags are shown, of CNPs over IPv4 and IPv6; and the flow's protocol.
func TestTsharkTag(t *testing.T) {
	var file bytes.Buffer
	capture := newCapture(t, &file, "H0")
	at := time.Unix(1000, 0)
	var want []string
	for i, c := range []CNP{decrease(), decreaseIPv6()} {
		c.UDP = i == 1
		c.Sign(testKey(), i, at)
		qt.Assert(t, qt.IsNil(capture.WriteFrame(0, 0, marshal(t, c))))
		want = append(want, fmt.Sprintf("9500,%d,%d,0x%x,%s", i, Stamp(at), c.Tag[4:],
			map[bool]string{true: "1"}[c.UDP]))
	}
	qt.Assert(t, qt.IsNil(capture.WriteFrame(0, 0, marshal(t, decrease()))))
	got := tshark(t, saveCapture(t, capture, &file), "pcn.decrease == 1 && pcn.tag",
		"pcn.recrate", "pcn.tag.slot", "pcn.tag.stamp", "pcn.tag.mac", "pcn.udp")
	qt.Assert(t, qt.DeepEquals(got, want))
}

func TestTsharkCNM(t *testing.T) {
	capture := writeCNMCapture(t)
	for _, tc := range []struct {
		name   string
		filter string
		fields []string
		want   []string
	}{
		{
			name:   "EtherType and addresses",
			filter: "eth.type == 0x22e7 && frame.len == 102",
			fields: []string{"frame.number", "eth.dst", "eth.src"},
			want: []string{"2,02:00:00:00:00:01,02:00:00:00:00:02",
				"5,02:00:00:00:00:01,02:00:00:00:00:02"},
		},
		{
			name:   "nothing is malformed",
			filter: "_ws.malformed || _ws.expert.severity >= 0x600000",
			fields: []string{"frame.number"},
		},
		{
			name:   "our dissector",
			filter: "cnm",
			fields: []string{"frame.number", "cnm.msdu_len", "_ws.col.Protocol", "_ws.col.Info"},
			want: []string{
				"2,64,QCN CNM,flow 40000 -> 5001 QntzFb 63, Qoff +25984 bytes, Qdelta -64 bytes",
				"3,60,QCN CNM,flow 53193 -> 4791 QntzFb 0, Qoff +0 bytes, Qdelta +0 bytes",
				"4,28,QCN CNM,10.0.0.1 -> 10.0.1.2 QntzFb 0, Qoff +0 bytes, Qdelta +0 bytes",
				"5,64,QCN CNM,QntzFb 0, Qoff +0 bytes, Qdelta +0 bytes",
				"6,0,QCN CNM,QntzFb 0, Qoff +0 bytes, Qdelta +0 bytes",
			},
		},
		{
			name:   "fields",
			filter: "cnm.qntzfb == 63",
			fields: []string{"cnm.version", "cnm.reserved", "cnm.cpid", "cnm.qoffset", "cnm.qdelta",
				"cnm.priority", "cnm.dst", "cnm.msdu"},
			want: []string{"0,0x0000,0x0102030405060708,406,-1,3,02:00:00:00:00:02," +
				"450003e8000140004006220d0a0000010a000102" +
				"9c40138900000001000000015010ffff00000000" +
				"0102030405060708090a0b0c0d0e0f101112131415161718"},
		},
		{
			name:   "flow",
			filter: "cnm.srcport == 40000",
			fields: []string{"cnm.ip.src", "cnm.ip.dst", "cnm.ip.proto", "cnm.srcport",
				"cnm.dstport"},
			want: []string{"10.0.0.1,10.0.1.2,6,40000,5001"},
		},
		{
			name:   "a CNM is no packet of its flow",
			filter: "tcp || pcn",
			fields: []string{"frame.number"},
			want:   []string{"1"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.DeepEquals(tshark(t, capture, tc.filter, tc.fields...), tc.want))
		})
	}
}
