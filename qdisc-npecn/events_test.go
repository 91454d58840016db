// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// encode is the bytes of bpf/include/events.h, by the types that bpf2go made of it.
func encode(t testing.TB, event any) []byte {
	t.Helper()
	var b bytes.Buffer
	qt.Assert(t, qt.IsNil(binary.Write(&b, binary.LittleEndian, event)))
	return b.Bytes()
}

// The kinds, as the field kind has them.
const (
	kindPFC      = uint32(npecnEventKindEVENT_PFC)
	kindQueue    = uint32(npecnEventKindEVENT_QUEUE)
	kindFlow     = uint32(npecnEventKindEVENT_FLOW)
	kindOff      = uint32(npecnEventKindEVENT_OFF)
	kindDetected = uint32(npecnEventKindEVENT_DETECTED)
	kindRepeat   = uint32(npecnEventKindEVENT_REPEAT)
	kindStart    = uint32(npecnEventKindEVENT_START)
)

func TestDecode(t *testing.T) {
	var got []any
	sink := Sink{
		PFC:      func(e PFCEvent) { got = append(got, e) },
		Queue:    func(s QueueSample) { got = append(got, s) },
		Flow:     func(s FlowSample) { got = append(got, s) },
		Repeats:  func(r PauseRepeats) { got = append(got, r) },
		Start:    func(s FlowStart) { got = append(got, s) },
		Off:      func(o Off) { got = append(got, o) },
		Detected: func(d Detected) { got = append(got, d) },
	}
	for _, event := range []any{
		npecnEventPfc{Kind: kindPFC, Port: 0xffff, Class: 7, Pause: 1, SentNs: 1 << 60,
			EffectNs: 1<<60 + 5},
		npecnEventPfc{Kind: kindPFC, Port: 1, SentNs: 2, EffectNs: 3},
		npecnEventQueue{Kind: kindQueue, Port: 9, Bin: 1, SentBytes: 2, SentPackets: 3,
			MarkedPackets: 4, QueueBytes: 5, QueueMaxBytes: 6},
		npecnEventFlow{Kind: kindFlow, Flow: 1, Bin: 2, ReceivedBytes: 3, ReceivedPackets: 4,
			MarkedPackets: 5},
		npecnEventOff{Kind: kindOff, Port: 7, Class: 3, FromNs: 8, ToNs: 9},
		npecnEventDetected{Kind: kindDetected, Port: 1, Bin: 2, NpecnPackets: 3, EcnPackets: 4,
			FecnPackets: 5, TcdCePackets: 6, TcdUePackets: 7, TcdState: 2},
		npecnEventRepeat{Kind: kindRepeat, Port: 0xffff, Class: 3, Bin: 4, Frames: 5},
		npecnEventStart{Kind: kindStart, Saddr: 0x0201000a, Sport: 4000, AtNs: 6},
	} {
		qt.Assert(t, qt.IsNil(sink.decode(encode(t, event))))
	}
	qt.Assert(t, qt.CmpEquals(got, []any{
		PFCEvent{Port: 0xffff, Class: 7, Pause: true, SentNs: 1 << 60, EffectNs: 1<<60 + 5},
		PFCEvent{Port: 1, SentNs: 2, EffectNs: 3},
		QueueSample{Port: 9, Bin: 1,
			Sample: Sample{SentBytes: 2, SentPackets: 3, MarkedPackets: 4, QueueBytes: 5,
				QueueMaxBytes: 6}},
		FlowSample{Flow: 1, Bin: 2, Bytes: 3, Packets: 4, MarkedPackets: 5},
		Off{Port: 7, Class: 3, FromNs: 8, ToNs: 9},
		Detected{Port: 1, Bin: 2,
			Detections: Detections{NPECN: 3, ECN: 4, FECN: 5, TCDCE: 6, TCDUE: 7,
				State: Undetermined}},
		PauseRepeats{Port: 0xffff, Class: 3, Bin: 4, Frames: 5},
		FlowStart{Src: netip.MustParseAddrPort("10.0.1.2:4000"), AtNs: 6},
	}, cmpopts.EquateComparable(netip.AddrPort{})))
}

func TestDecodeRefuses(t *testing.T) {
	for _, test := range []struct {
		event []byte
		want  string
	}{
		{nil, "event of 0 bytes"},
		{make([]byte, 3), "event of 3 bytes"},
		{make([]byte, 24), "event of unknown kind 0 and 24 bytes"},
		{encode(t, npecnEventPfc{Kind: kindPFC})[:23], "event of unknown kind 1 and 23 bytes"},
		{append(encode(t, npecnEventQueue{Kind: kindQueue}), 0),
			"event of unknown kind 2 and 49 bytes"},
		{encode(t, npecnEventFlow{Kind: 4}), "event of unknown kind 4 and 32 bytes"},
	} {
		qt.Check(t, qt.ErrorMatches(Sink{}.decode(test.event), test.want))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(encode(f, npecnEventPfc{Kind: kindPFC, Port: 3, Class: 2, Pause: 1, SentNs: 1,
		EffectNs: 2}))
	f.Add(encode(f, npecnEventQueue{Kind: kindQueue, Port: 3}))
	f.Add(encode(f, npecnEventFlow{Kind: kindFlow}))
	f.Add(encode(f, npecnEventOff{Kind: kindOff}))
	f.Add(encode(f, npecnEventDetected{Kind: kindDetected}))
	f.Add(encode(f, npecnEventRepeat{Kind: kindRepeat}))
	f.Add(encode(f, npecnEventStart{Kind: kindStart}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var events int
		err := Sink{
			PFC: func(e PFCEvent) {
				events++
				qt.Check(t, qt.IsTrue(e.Port <= 0xffff))
			},
			Repeats:  func(PauseRepeats) { events++ },
			Queue:    func(QueueSample) { events++ },
			Flow:     func(FlowSample) { events++ },
			Start:    func(FlowStart) { events++ },
			Off:      func(Off) { events++ },
			Detected: func(Detected) { events++ },
		}.decode(b)
		// an event or an error, never both nor neither
		qt.Check(t, qt.Equals(events == 1, err == nil))
	})
}
