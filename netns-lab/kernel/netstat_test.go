// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

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
