// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/go-quicktest/qt"
)

// markedBy is a star whose port s->h2 has the own marker of a header in testdata.
func markedBy(t *testing.T, marker string, k timekeeping, params []byte) *layout {
	t.Helper()
	object, err := os.ReadFile(objectOf(marker))
	qt.Assert(t, qt.IsNil(err))
	l := star(3, func(name string, p *Port) {
		if name == "s->h2" {
			p.Marker, p.OwnMarkerParams, p.Seed = OwnMarker, params, someSeed
		}
	})
	l.options = k.options()
	l.options.Object = object
	return l
}

// TestOwnMarkerInTime: a threshold in time. The packet that leaves as number j, from 0 on, started
// j us after the first; with j = 2 i it came i us after the first, with j = 2 i + 1 that and 1 ns.
func TestOwnMarkerInTime(t *testing.T) {
	for _, test := range []struct {
		timekeeping
		thresholdNs uint64
		want        []int
	}{
		// of 10 exactly 5000 ns, of 9 4999
		{exact, 5000, []int{11, 12, 13, 14, 15, 16, 17, 18, 19}},
		{rounded, 8999, []int{18, 19}}, // of 17 exactly 8999 ns
	} {
		t.Run(test.timekeeping.String(), func(t *testing.T) {
			params := binary.NativeEndian.AppendUint64(nil, test.thresholdNs)
			n := newNetwork(t, markedBy(t, "late_marker.h", test.timekeeping, params))
			got := n.run(converging(dataClass))
			for i, d := range got {
				qt.Check(t, qt.Equals(d.atNs, uint64(i+1)*1000+1000+2*delayNs))
			}
			qt.Check(t, qt.DeepEquals(markedOf(got), test.want))
			qt.Check(t, qt.Equals(n.stats(n.id("s->h2")).MarkedPackets, uint64(len(test.want))))
			n.checkCounters()
		})
	}
}

// TestOwnMarkerEvent: what the marker hears of a packet beside how long it waited, and that its
// state is that of a class.
func TestOwnMarkerEvent(t *testing.T) {
	const queue, size, rate, random = 0, 1, 2, 3
	all := make([]int, 20)
	for i := range all {
		all[i] = i
	}
	for _, test := range []struct {
		name      string
		field     uint32
		threshold uint64
		most      uint32
		want      []int
	}{
		{"queue", queue, 5000, 100, []int{6, 7, 8, 9, 10, 11, 12, 13}}, // as in TestRED
		{"state", queue, 5000, 3, []int{6, 7, 8}},
		{"length", size, frame1K - 1, 100, all},
		{"rate", rate, gbit8 - 1, 100, all},
		{"no random number of 32 bits", random, 1<<32 - 1, 100, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			params := binary.NativeEndian.AppendUint64(nil, test.threshold)
			params = binary.NativeEndian.AppendUint32(params, test.field)
			params = binary.NativeEndian.AppendUint32(params, test.most)
			n := newNetwork(t, markedBy(t, "field_marker.h", rounded, params))
			qt.Check(t, qt.DeepEquals(markedOf(n.run(converging(dataClass))), test.want))
			if test.name == "state" { // of another class it is new
				qt.Check(t, qt.DeepEquals(markedOf(n.run(converging(dataClass+1))), test.want))
			}
			n.checkCounters()
		})
	}
}

// TestOwnMarkerRandom: half of the packets have a random number over one half, by the seed.
func TestOwnMarkerRandom(t *testing.T) {
	params := binary.NativeEndian.AppendUint64(nil, 1<<31)
	params = binary.NativeEndian.AppendUint32(params, 3)
	params = binary.NativeEndian.AppendUint32(params, 1000)
	var marks [2][]int
	for i := range marks {
		t.Run("", func(t *testing.T) {
			n := newNetwork(t, markedBy(t, "field_marker.h", rounded, params))
			marks[i] = markedOf(n.run(backToBack(0, 2, dataClass, 100, 0)))
		})
	}
	qt.Check(t, qt.IsTrue(len(marks[0]) > 30 && len(marks[0]) < 70), qt.Commentf("%v", marks[0]))
	qt.Check(t, qt.DeepEquals(marks[1], marks[0]))
}

func TestOwnMarkerRefusals(t *testing.T) {
	object, err := os.ReadFile(objectOf("late_marker.h"))
	qt.Assert(t, qt.IsNil(err))
	for _, test := range []struct {
		object, params []byte
		want           string
	}{
		{nil, nil, `qdisc npecn: port 2 .* has an own marker, and the object has none: .*`},
		{_NpecnBytes, nil, `qdisc npecn: port 2 .* has an own marker, and the object has none: .*`},
		{object, nil, `qdisc npecn: port 2 .*: parameters of the own marker of 0 bytes: want 8`},
		{object, make([]byte, 9), `.*: parameters of the own marker of 9 bytes: want 8`},
		{[]byte("no ELF"), nil, `qdisc npecn: read the object with an own marker: .*`},
	} {
		o := validOptions()
		o.Object, o.Ports[2].Marker, o.Ports[2].OwnMarkerParams = test.object, OwnMarker,
			test.params
		_, err := Load(o)
		qt.Check(t, qt.ErrorMatches(err, test.want))
	}
}

// TestOwnMarkerOfOtherSources: an object whose struct port is another can't be configured.
func TestOwnMarkerOfOtherSources(t *testing.T) {
	spec, err := loadNpecn()
	qt.Assert(t, qt.IsNil(err))
	spec.Maps[npecnMapPorts].ValueSize += 8
	_, err = findOwnMarker(spec)
	qt.Check(t, qt.ErrorMatches(err, `the object's struct port is of \d+ bytes, .*: want \d+; .*`))
	spec.Maps[npecnMapPorts].Value = nil
	_, err = findOwnMarker(spec)
	qt.Check(t, qt.ErrorMatches(err, `the object has no BTF of struct port: compile it with -g`))
}
