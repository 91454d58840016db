// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/internal/nstest"
)

// Verdicts of tc programs, as ebpf.Program.Run returns them.
const (
	tcxNext     = 0xffffffff
	tcxDrop     = 2
	tcxRedirect = 7
)

// What ports write into cb[0], see bpf/include/port.h.
const (
	carryMagic = 0x50434e00
	carryCE    = 1
)

// skBuff is struct __sk_buff of linux/bpf.h.
type skBuff struct {
	Len, PacketType, Mark, QueueMapping, Protocol uint32
	VLANPresent, VLANTCI, VLANProto, Priority     uint32
	IngressIfindex, Ifindex, TCIndex              uint32
	CB                                            [5]uint32
	Hash, TCClassID, Data, DataEnd, NAPIID        uint32
	Family, RemoteIP4, LocalIP4                   uint32
	RemoteIP6, LocalIP6                           [4]uint32
	RemotePort, LocalPort, DataMeta               uint32
	FlowKeys, Timestamp                           uint64
	WireLen, GSOSegs                              uint32
	Socket                                        uint64
	GSOSize, TimestampType                        uint32
	HWTimestamp                                   uint64
}

// carry is what the last port wrote: the packet's ideal time, and whether to mark it.
func carry(timeNs uint64, ce bool) [5]uint32 {
	cb := [5]uint32{carryMagic, uint32(timeNs), uint32(timeNs >> 32)}
	if ce {
		cb[0] |= carryCE
	}
	return cb
}

// result is what a program did to a packet.
type result struct {
	verdict uint32
	frame   []byte
	skb     skBuff
}

// run runs a program on a packet, in the namespace whose devices it knows.
func (o *object) run(t *testing.T, h netns.NsHandle, program string, frame []byte,
	skb skBuff) result {
	t.Helper()
	r := result{}
	opts := ebpf.RunOptions{
		Data:       frame,
		DataOut:    make([]byte, len(frame)+256),
		Context:    &skb,
		ContextOut: &r.skb,
	}
	nstest.Do(t, h, func() (err error) {
		r.verdict, err = o.coll.Programs[program].Run(&opts)
		return err
	})
	r.frame = opts.DataOut
	return r
}

// here is the namespace that the test runs in.
var here = netns.None()

// passes checks that the program let the packet pass, as this frame.
func passes(t *testing.T, r result, frame []byte) {
	t.Helper()
	qt.Check(t, qt.Equals(int32(r.verdict), -1), qt.Commentf("want TCX_NEXT"))
	qt.Check(t, qt.DeepEquals(r.frame, frame))
}
