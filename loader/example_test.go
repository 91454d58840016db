// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"fmt"
	"log"
	"net/netip"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/loader/ns/nstest"
)

// Register PCN for as long as the program runs, and read what its flows do.
func ExampleRegisterPCN() {
	control, err := loader.RegisterPCN(loader.PCNOptions{LineRateBps: 10e9, WMin: 1.0 / 128, WMax: 0.5})
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
		fmt.Printf("%s sends at %d bit/s, %d packets were marked\n", f.FlowKey, f.SendRateBps, f.MarkedPackets)
	}
}

func ExampleFlowKey() {
	k := loader.FlowKey{Src: netip.MustParseAddrPort("10.0.0.1:40112"), Dst: netip.MustParseAddrPort("10.0.0.2:5001"), Protocol: 6}
	fmt.Println(k)
	// Output: 10.0.0.1:40112->10.0.0.2:5001
}

// The examples that need root run here; a failure ends the test's process.
func TestExampleRegisterPCN(t *testing.T) {
	nstest.RequireRoot(t)
	nstest.Eventually(t, "no other process has the name", func() bool { return !available(t, "pcn") })
	ExampleRegisterPCN()
	qt.Assert(t, qt.IsFalse(available(t, "pcn")))
}
