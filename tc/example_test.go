// SPDX-License-Identifier: Apache-2.0

package tc_test

import (
	"fmt"
	"log"
	"net"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/tc"
)

// Answer the marked packets that an interface gets with CNPs, for as long as the program runs.
func ExampleLoadHostNP() {
	np, err := tc.LoadHostNP(tc.HostNPOptions{TNs: 50_000, CongestedShare: 0.95})
	if err != nil {
		log.Fatal(err)
	}
	defer np.Close()
	here, err := netns.Get()
	if err != nil {
		log.Fatal(err)
	}
	defer here.Close()
	device, err := net.InterfaceByName("lo")
	if err != nil {
		log.Fatal(err)
	}
	if err := np.Attach(here, device.Index); err != nil {
		log.Fatal(err)
	}
	counts, err := np.Counts()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(counts["cnp_decrease"], "CNPs")
}

// Stamp an interface's packets with their class.
func ExampleLoadStamp() {
	s, err := tc.LoadStamp(tc.StampOptions{DataDSCP: 26, ControlDSCP: 48})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	here, err := netns.Get()
	if err != nil {
		log.Fatal(err)
	}
	defer here.Close()
	device, err := net.InterfaceByName("lo")
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Attach(here, device.Index); err != nil {
		log.Fatal(err)
	}
}

// The examples need root and an interface: they run here. A failure ends the test's process.
func TestExamples(t *testing.T) {
	nstest.RequireRoot(t)
	nstest.Do(t, nstest.New(t), func() error {
		_, err := net.InterfaceByName("lo")
		qt.Check(t, qt.IsNil(err))
		ExampleLoadHostNP()
		ExampleLoadStamp()
		return nil
	})
}
