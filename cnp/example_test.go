// SPDX-License-Identifier: Apache-2.0

package cnp_test

import (
	"bytes"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/pcn-linux/pcn/cnp"
)

// slowDown tells the sender 10.0.0.1 of a flow from port 40112 to port 5001 to slow down.
var slowDown = cnp.CNP{
	Src: netip.MustParseAddr("10.0.0.2"), Dst: netip.MustParseAddr("10.0.0.1"),
	Decrease: true, RecRateMbps: 1200, FlowSrcPort: 40112, FlowDstPort: 5001,
}

// Make the frame of a CNP.
func ExampleCNP_MarshalBinary() {
	frame, err := slowDown.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(frame) == cnp.FrameLen)
	// Output: true
}

// Read a frame from the wire.
func ExampleParse() {
	frame, err := slowDown.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	c, err := cnp.Parse(frame)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Src, c.Decrease, c.RecRateMbps)
	// Output: 10.0.0.2 true 1200
}

// A damaged frame is refused, and the error says which bytes are wrong.
func ExampleErrBadICRC() {
	frame, err := slowDown.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	frame[len(frame)-1] ^= 1
	_, err = cnp.Parse(frame)
	fmt.Println(err != nil)
	// Output: true
}

// Hosts that share a key obey no CNPs of others.
func ExampleCNP_Sign() {
	key, other := cnp.Key{1, 2, 3}, cnp.Key{4, 5, 6}
	c := slowDown
	c.Sign(key, 0, time.Unix(1_700_000_000, 0))
	fmt.Println(c.Verify(key), c.Verify(other))
	c.RecRateMbps = 1
	fmt.Println(c.Verify(key))
	// Output:
	// true false
	// false
}

// Pause priority 3 of a link, and read it back.
func ExamplePause() {
	pause, err := cnp.Pause([6]byte{2, 0, 0, 0, 0, 1}, 3)
	if err != nil {
		log.Fatal(err)
	}
	frame, err := pause.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	got, err := cnp.ParsePFC(frame)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%08b %d\n", got.Classes, got.Quanta[3])
	// Output: 00001000 65535
}

// Answer a sampled frame with QCN's message.
func ExampleNewCNM() {
	sampled, err := slowDown.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	m, err := cnp.NewCNM(sampled)
	if err != nil {
		log.Fatal(err)
	}
	m.QntzFb = 20
	m.CnmQOffset = cnp.CNMQueueUnits(64_000)
	frame, err := m.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	got, err := cnp.ParseCNM(frame)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.QntzFb, got.CnmQOffset)
	// Output: 20 1000
}

// Write CNPs to a file for Wireshark.
func ExampleCapture() {
	frame, err := slowDown.MarshalBinary()
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	c, err := cnp.NewCapture(&file, "eth0")
	if err != nil {
		log.Fatal(err)
	}
	if err := c.WriteFrame(0, 12_800, frame); err != nil {
		log.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("% x\n", file.Bytes()[:4]) // pcapng begins with it
	// Output: 0a 0d 0d 0a
}
