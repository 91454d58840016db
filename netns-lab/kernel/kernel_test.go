// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestSoftnetDrops(t *testing.T) {
	for _, test := range []struct {
		text string
		want uint64
		err  string
	}{
		{"", 0, ""},
		{"0000a3c1 00000000 00000001\n", 0, ""},
		{"0000a3c1 00000010 00000001\n00000001 0000000f\n", 31, ""},
		{"0000a3c1\n", 0, `softnet_stat: line "0000a3c1\\n" has no second column`},
		{"0000a3c1 xyz\n", 0, `softnet_stat: strconv.ParseUint: parsing "xyz": invalid syntax`},
		{"0 10000000000000000\n", 0, `softnet_stat: .*value out of range`},
	} {
		got, err := softnetDrops([]byte(test.text))
		checkError(t, err, test.err)
		qt.Check(t, qt.Equals(got, test.want), qt.Commentf("%q", test.text))
	}
}

// checkError: a pattern, or no error for "".
func checkError(t testing.TB, err error, want string) {
	t.Helper()
	if want == "" {
		qt.Check(t, qt.IsNil(err))
		return
	}
	qt.Check(t, qt.ErrorMatches(err, want))
}

func TestAddNetstat(t *testing.T) {
	for _, test := range []struct {
		text string
		want map[string]uint64
		err  string
	}{
		{"", map[string]uint64{}, ""},
		{
			"TcpExt: SyncookiesSent TCPTimeouts PruneCalled\nTcpExt: 7 2 3\nIpExt: InNoRoutes\nIpExt: 9\n",
			map[string]uint64{"tcpext TCPTimeouts": 2, "tcpext PruneCalled": 3}, "",
		},
		{
			"Tcp: MaxConn RetransSegs InErrs\nTcp: -1 5 0\nUdp: InErrors\nUdp: 1\nIp: OutNoRoutes\nIp: 4\n",
			map[string]uint64{"tcp RetransSegs": 5, "tcp InErrs": 0, "udp InErrors": 1, "ip OutNoRoutes": 4}, "",
		},
		{"Tcp: RetransSegs\n", nil, `names of \["Tcp:" "RetransSegs"\] have no values`},
		{"Tcp: RetransSegs\nTcp: 1 2\n", nil, `names \["Tcp:" "RetransSegs"\] do not fit values \["Tcp:" "1" "2"\]`},
		{"Tcp: RetransSegs\nUdp: 1\n", nil, `names .* do not fit values .*`},
		{"\n\n", nil, `names \[\] do not fit values \[\]`},
		{"Tcp: RetransSegs\nTcp: -1\n", nil, `Tcp RetransSegs: strconv.ParseUint: parsing "-1": invalid syntax`},
	} {
		got := map[string]uint64{}
		err := addNetstat(got, []byte(test.text))
		checkError(t, err, test.err)
		if err == nil {
			qt.Check(t, qt.DeepEquals(got, test.want), qt.Commentf("%q", test.text))
		}
	}
}

func TestAddNetstatAdds(t *testing.T) {
	drops := map[string]uint64{"tcp RetransSegs": 1}
	qt.Assert(t, qt.IsNil(addNetstat(drops, []byte("Tcp: RetransSegs\nTcp: 2\n"))))
	qt.Check(t, qt.DeepEquals(drops, map[string]uint64{"tcp RetransSegs": 3}))
}

const devHeader = "Inter-|   Receive                                                |  Transmit\n" +
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"

func TestAddDevices(t *testing.T) {
	for _, test := range []struct {
		text       string
		receive    uint64
		transmit   uint64
		err        string
		noCounters bool
	}{
		{devHeader, 0, 0, "", true},
		{devHeader + "    lo:    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n", 3, 11, "", false},
		{devHeader + "    lo: 0 0 0 3 0 0 0 0 0 0 0 0 0 0 0 0\n S0:0 0 0 4 0 0 0 0 0 0 0 1 0 0 0 0\n", 7, 1, "", false},
		{devHeader + "lo: 0 0 0\n", 0, 0, "device lo: 3 columns", true},
		{devHeader + "lo: 0 0 0 x 0 0 0 0 0 0 0 0 0 0 0 0\n", 0, 0, `device lo: strconv.*`, true},
	} {
		got := map[string]uint64{}
		err := addDevices(got, []byte(test.text))
		checkError(t, err, test.err)
		if err == nil && !test.noCounters {
			qt.Check(t, qt.DeepEquals(got, map[string]uint64{"device receive": test.receive, "device transmit": test.transmit}))
		}
	}
}

func TestParseCPU(t *testing.T) {
	for _, test := range []struct {
		text        string
		busy, total uint64
		err         string
	}{
		{"cpu  1 2 4 8 16 32 64 128 0 0\ncpu0 9 9 9 9 9 9 9 9 0 0\n", 231, 255, ""},
		{"cpu 0 0 0 5 0 0 0 0", 0, 5, ""},
		{"", 0, 0, `/proc/stat begins with ""`},
		{"cpu 1 2 3\n", 0, 0, `/proc/stat begins with "cpu 1 2 3"`},
		{"intr 1 2 3 4 5 6 7 8 9\n", 0, 0, `/proc/stat begins with "intr .*"`},
		{"cpu 1 2 3 4 5 6 7 x\n", 0, 0, `/proc/stat: strconv.*`},
	} {
		busy, total, err := parseCPU([]byte(test.text))
		checkError(t, err, test.err)
		if err == nil {
			qt.Check(t, qt.Equals(busy, test.busy))
			qt.Check(t, qt.Equals(total, test.total))
		}
	}
}

// TestParsersOnThisKernel: the files have the form that the parsers expect, and every counter is there.
func TestParsersOnThisKernel(t *testing.T) {
	drops := map[string]uint64{}
	qt.Assert(t, qt.IsNil(namespaceDrops(drops)))
	for proto, names := range netstatDrops {
		for _, name := range names {
			_, ok := drops[strings.ToLower(proto)+" "+name]
			qt.Check(t, qt.IsTrue(ok), qt.Commentf("%s %s", proto, name))
		}
	}
	busy, total, err := cpuTimes()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(busy > 0 && busy <= total))
	release, err := kernelRelease()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Matches(release, `\d+\.\d+.*`))
}

func FuzzSoftnetDrops(f *testing.F) {
	f.Add([]byte("0000a3c1 00000010 00000001\n"))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := softnetDrops(b); err != nil {
			qt.Check(t, qt.Equals(n, 0))
		}
	})
}

func FuzzAddNetstat(f *testing.F) {
	f.Add([]byte("Tcp: RetransSegs\nTcp: 1\n"))
	f.Add([]byte("TcpExt: A\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		drops := map[string]uint64{}
		_ = addNetstat(drops, b)
		for name := range drops {
			qt.Check(t, qt.IsTrue(known(name)), qt.Commentf("%q", name))
		}
	})
}

// known says whether it is one of the counters that are looked for.
func known(counter string) bool {
	for proto, names := range netstatDrops {
		for _, name := range names {
			if counter == strings.ToLower(proto)+" "+name {
				return true
			}
		}
	}
	return false
}

func FuzzAddDevices(f *testing.F) {
	f.Add([]byte(devHeader + "lo: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n"))
	f.Add([]byte("lo:"))
	f.Fuzz(func(t *testing.T, b []byte) {
		drops := map[string]uint64{}
		_ = addDevices(drops, b)
		qt.Check(t, qt.IsTrue(len(drops) <= 2))
	})
}

func FuzzParseCPU(f *testing.F) {
	f.Add([]byte("cpu  1 2 4 8 16 32 64 128 0 0\n"))
	f.Add([]byte("cpu"))
	f.Fuzz(func(t *testing.T, b []byte) {
		busy, total, err := parseCPU(b)
		if err != nil {
			qt.Check(t, qt.Equals(busy+total, 0))
		}
	})
}
