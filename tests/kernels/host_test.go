// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/vm/guest"
	"github.com/pcn-linux/pcn/loader"
)

// pcnInGuest is the path of the command line in a guest that has it.
const pcnInGuest = "/usr/bin/pcn"

// TestGuestHost runs the command line on this kernel: up, a transfer to a peer whose notification
// point answers marks, flows, status, down. Then nothing may be left.
func TestGuestHost(t *testing.T) {
	if !guest.Inside() {
		t.Skip("TestARM64 runs it")
	}
	home, err := netns.Get()
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { home.Close() })
	here, peer := nstest.Veth(t, home, nstest.New(t),
		netip.MustParsePrefix("10.7.0.1/24"), netip.MustParsePrefix("10.7.0.2/24"))
	p := path{end{here}, end{peer}}
	marker := nstest.NewMarker(t, peer)
	np, err := hostNP()
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { np.Close() })
	qt.Assert(t, qt.IsNil(np.Attach(peer.NS, peer.Index())))
	before := nstest.KernelObjects(t)

	pcn(t, "host", "up", "--control", "pcn", "--on", here.Link.Attrs().Name, "--rtt", "1ms",
		"--line-rate", "1Gbps")
	c := p.connect(t, "pcn", "reno")
	marker.Mark(t, true)
	c.transfer(t, 256<<10)
	cut := onlyFlow(t)
	qt.Check(t, qt.IsTrue(cut.ECN))
	qt.Check(t, qt.IsTrue(cut.CNPDecrease > 0), qt.Commentf("%+v", cut))
	qt.Check(t, qt.IsTrue(cut.SendRateBps > 0 && cut.SendRateBps < lineRateBps),
		qt.Commentf("%+v", cut))
	marker.Mark(t, false)
	c.transfer(t, 256<<10)
	raised := onlyFlow(t)
	qt.Check(t, qt.IsTrue(raised.CNPIncrease > 0), qt.Commentf("%+v", raised))
	qt.Check(t, qt.IsTrue(raised.SendRateBps > cut.SendRateBps), qt.Commentf("%+v", raised))
	t.Logf("marks: %d CNPs, %d bit/s; then %d more and %d bit/s", cut.CNPDecrease,
		cut.SendRateBps, raised.CNPIncrease, raised.SendRateBps)
	pcn(t, "host", "status")

	pcn(t, "host", "down")
	c.transfer(t, 64<<10) // it lives on with what it has
	c.client.Close()
	c.server.Close()
	_, err = os.Stat(host.DefaultRoot)
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
	nstest.Eventually(t, "the kernel has what it had",
		func() bool { return slices.Equal(nstest.KernelObjects(t), before) })
}

// pcn runs the command line, which must succeed, and returns what it printed.
func pcn(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), pcnInGuest, args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("pcn %v: %v\n%s%s", args, err, out, failed.Stderr)
	}
	qt.Assert(t, qt.IsNil(err))
	t.Logf("pcn %v\n%s", args, out)
	return out
}

// onlyFlow is the one flow that pcn flows shows.
func onlyFlow(t *testing.T) loader.Flow {
	t.Helper()
	var flows []loader.Flow
	qt.Assert(t, qt.IsNil(json.Unmarshal(pcn(t, "flows", "--json"), &flows)))
	qt.Assert(t, qt.HasLen(flows, 1))
	return flows[0]
}
