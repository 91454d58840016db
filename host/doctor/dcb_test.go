// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host/doctor"
)

// app is an entry of a NIC's table: struct dcb_app of linux/dcbnl.h.
type app struct {
	selector, priority uint8
	protocol           uint16
}

func dscp(dscp uint16, priority uint8) app { return app{5, priority, dscp} }

// dcbAnswer is what the kernel answers, with attributes as another netlink library writes them.
func dcbAnswer(pfc *uint8, apps []app, dcbx *uint8) []byte {
	const header = 4 // struct dcbmsg
	ieee := nl.NewRtAttr(13, nil)
	ieee.AddRtAttr(1, make([]byte, 59)) // struct ieee_ets
	if pfc != nil {
		one := make([]byte, 136) // struct ieee_pfc: pfc_cap, pfc_en, ...
		one[0], one[1] = 8, *pfc
		ieee.AddRtAttr(2, one)
	}
	table := ieee.AddRtAttr(3, nil)
	for _, a := range apps {
		table.AddRtAttr(1, binary.NativeEndian.AppendUint16([]byte{a.selector, a.priority},
			a.protocol))
	}
	name := nl.NewRtAttr(1, nl.ZeroTerminated("eth0")).Serialize()
	answer := append(make([]byte, header), name...)
	answer = append(answer, ieee.Serialize()...)
	if dcbx != nil {
		answer = append(answer, nl.NewRtAttr(14, []byte{*dcbx}).Serialize()...)
	}
	return answer
}

// driver answers requests for DCB.
func driver(t *testing.T, answer []byte) *netlink.Conn {
	return nltest.Dial(func(requests []netlink.Message) ([]netlink.Message, error) {
		// As strace shows it of: dcb pfc show dev eth0. The length is padded.
		const getDCB, ieeeGet, ifname = 78, 21, 1
		qt.Check(t, qt.HasLen(requests, 1))
		r := requests[0]
		qt.Check(t, qt.Equals(r.Header.Type, getDCB))
		qt.Check(t, qt.Equals(r.Header.Flags&netlink.Dump, 0))
		qt.Check(t, qt.DeepEquals(r.Data, append([]byte{unix.AF_UNSPEC, ieeeGet, 0, 0},
			nl.NewRtAttr(ifname, nl.ZeroTerminated("eth0")).Serialize()...)))
		return []netlink.Message{{Header: netlink.Header{Type: getDCB,
			Sequence: r.Header.Sequence}, Data: answer}}, nil
	})
}

func TestDoctorNICClasses(t *testing.T) {
	const hostIEEE, firmware, firmwareStatic = 1 | 8, 2 | 8, 2 | 8 | 16
	const unstamped = 0
	for _, test := range []struct {
		name          string
		pfc           *uint8
		apps          []app
		dcbx          uint8
		data, control uint8
		want          map[string]string // what is; one that begins with ! is a warning
	}{
		{"as documented", new(uint8(1 << 3)), []app{dscp(26, 3), dscp(48, 6)}, hostIEEE, 26, 48,
			map[string]string{"eth0 DSCP": "priorities of DSCPs 26:3 48:6",
				"eth0 PFC": "on for priorities 3"}},
		{"other entries", new(uint8(1 << 3)),
			[]app{{1, 2, 0x8906}, dscp(48, 6), dscp(26, 1), dscp(26, 3)}, firmwareStatic, 26, 48,
			map[string]string{"eth0 DSCP": "priorities of DSCPs 26:3 48:6",
				"eth0 PFC": "on for priorities 3"}},
		{"no PFC", new(uint8(0)), nil, hostIEEE, 26, 48,
			map[string]string{"eth0 DSCP": "the NIC goes by no DSCP",
				"eth0 PFC": "off, which is right if the fabric has none"}},
		{"no DSCP", new(uint8(1<<3 | 1<<4)), nil, hostIEEE, 26, 48, map[string]string{
			"eth0 DSCP": "!the NIC goes by no DSCP: data (DSCP 26) and CNPs and ACKs (DSCP 48) " +
				"share priority 0",
			"eth0 PFC": "!on for priorities 3, 4, but data (DSCP 26) has priority 0"}},
		{"PFC for all", new(uint8(0xff)), []app{dscp(10, 3)}, hostIEEE, 10, 0, map[string]string{
			"eth0 DSCP": "priorities of DSCPs 10:3",
			"eth0 PFC": "!on for priorities 0, 1, 2, 3, 4, 5, 6, 7, and CNPs and ACKs (DSCP 0) " +
				"have priority 0: they stop when data does"}},
		{"no classes", new(uint8(1 << 3)), nil, firmware, unstamped, unstamped, map[string]string{
			"eth0 DSCP": "the NIC goes by no DSCP", "eth0 PFC": "on for priorities 3"}},
		{"firmware", nil, []app{dscp(26, 3)}, firmware, 26, 48, map[string]string{
			"eth0 DSCP": "priorities of DSCPs 26:3", "eth0 PFC": "not reported by the driver",
			"eth0 DCBX": "!the NIC's firmware negotiates with the switch, and may change PFC and " +
				"DSCP at any time"}},
		{"a DSCP that is none", new(uint8(0)), []app{dscp(64, 0)}, hostIEEE, 26, 48,
			map[string]string{"eth0 PFC and DSCP": "!DSCP 64 of priority 0: want a DSCP below 64 " +
				"and a priority below 8"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stamped []uint8
			if test.data+test.control != unstamped {
				stamped = []uint8{test.data, test.control}
			}
			conn := driver(t, dcbAnswer(test.pfc, test.apps, &test.dcbx))
			got := map[string]string{}
			for _, c := range doctor.CheckDCB(conn, "eth0", stamped...) {
				qt.Check(t, qt.Equals(c.Level == doctor.OK, c.Want == ""))
				got[c.Name] = map[doctor.Level]string{doctor.Warn: "!"}[c.Level] + c.Is
			}
			qt.Check(t, qt.DeepEquals(got, test.want))
		})
	}
}

// Answers that say nothing, or something else, are told as such.
func TestDoctorNICRefuses(t *testing.T) {
	level := func(answer netlink.Message, err error) doctor.Level {
		t.Helper()
		found := doctor.CheckDCB(nltest.Dial(
			func([]netlink.Message) ([]netlink.Message, error) {
				return []netlink.Message{answer}, err
			}), "eth0")
		qt.Assert(t, qt.HasLen(found, 1))
		qt.Check(t, qt.Equals(found[0].Name, "eth0 PFC and DSCP"))
		return found[0].Level
	}
	refuse := func(errno unix.Errno) netlink.Message {
		return netlink.Message{Header: netlink.Header{Type: netlink.Error},
			Data: binary.NativeEndian.AppendUint32(nil, uint32(-int32(errno)))}
	}
	qt.Check(t, qt.Equals(level(refuse(unix.EOPNOTSUPP), nil), doctor.OK))
	qt.Check(t, qt.Equals(level(refuse(unix.ENODEV), nil), doctor.Warn))
	qt.Check(t, qt.Equals(level(netlink.Message{}, nil), doctor.Warn))
	qt.Check(t, qt.Equals(level(netlink.Message{Header: netlink.Header{Type: unix.RTM_GETDCB}},
		nil), doctor.Warn))
	qt.Check(t, qt.Equals(level(netlink.Message{}, unix.ENOBUFS), doctor.Warn))
}

// What another library encodes is read as it was meant.
func FuzzParseDCB(f *testing.F) {
	f.Add(uint8(8), true, uint8(9), []byte{5, 3, 26, 0, 5, 6, 48, 0})
	f.Add(uint8(0), false, uint8(0), []byte{1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, pfc uint8, hasPFC bool, dcbx uint8, table []byte) {
		var reported *uint8
		if hasPFC {
			reported = &pfc
		}
		var apps []app
		want, isRight := map[uint8]uint8{}, true
		for one := range slices.Chunk(table, 4) {
			if len(one) < 4 {
				break
			}
			a := app{one[0], one[1], binary.NativeEndian.Uint16(one[2:])}
			apps = append(apps, a)
			if a.selector == 5 {
				isRight = isRight && a.protocol < 64 && a.priority < 8
				want[uint8(a.protocol)] = max(want[uint8(a.protocol)], a.priority)
			}
		}
		gotPFC, priorities, gotDCBX, err := doctor.ParseDCB(dcbAnswer(reported, apps, &dcbx))
		if !isRight {
			qt.Assert(t, qt.IsNotNil(err))
			return
		}
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(gotPFC, reported))
		qt.Check(t, qt.DeepEquals(priorities, want))
		qt.Check(t, qt.Equals(gotDCBX, dcbx))
	})
}

// No answer makes the parser read beyond it.
func FuzzParseAnyDCB(f *testing.F) {
	whole := dcbAnswer(new(uint8(8)), []app{dscp(26, 3)}, new(uint8(9)))
	for n := range whole {
		f.Add(whole[:n])
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		before := bytes.Clone(answer)
		doctor.ParseDCB(answer)
		qt.Check(t, qt.DeepEquals(answer, before))
	})
}
