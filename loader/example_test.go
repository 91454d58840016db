// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"fmt"
	"log"
	"net/netip"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

// Register PCN for as long as the program runs, and read what its flows do.
func ExampleRegister() {
	pcn, err := scheme.Builtin().Lookup("pcn")
	if err != nil {
		log.Fatal(err)
	}
	control, err := loader.Register(loader.Registration{
		Scheme:  pcn,
		Network: scheme.Network{LineRateBps: 10e9},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer control.Close()

	// Sockets select it by setsockopt(TCP_CONGESTION), as pcn.
	flows, err := control.Flows()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range flows {
		fmt.Printf("%s sends at %d bit/s, %d packets were marked\n", f.FlowKey, f.SendRateBps,
			f.MarkedPackets)
	}
}

func ExampleFlowKey() {
	k := loader.FlowKey{Src: netip.MustParseAddrPort("10.0.0.1:40112"),
		Dst: netip.MustParseAddrPort("10.0.0.2:5001"), Protocol: 6}
	fmt.Println(k)
	// Output: 10.0.0.1:40112->10.0.0.2:5001
}

// The examples that need root run here; a failure ends the test's process.
func TestExampleRegister(t *testing.T) {
	nstest.RequireRoot(t)
	nstest.Turn(t)
	nstest.Eventually(t, "the name of the control is free",
		func() bool { return !available(t, "pcn") })
	ExampleRegister()
	qt.Assert(t, qt.IsFalse(available(t, "pcn")))
}
