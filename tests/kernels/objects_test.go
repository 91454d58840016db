// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

// hostRows are the other objects of the package. They configure the machine, which is the
// microVM's, by package host as pcn host does.
var hostRows = []row{
	{"arrive", true, loads(func() (closer, error) { return tc.LoadArrive(tc.ArriveOptions{}) })},
	{"`pcn host up` with a cgroup: its connections have the control", true, inCgroup},
	{"`pcn host adopt`: a connection changes its control, and has its own back", true, adopted},
	{"`pcn trace`: events of a flow", true, traced},
	{"`pcn host switch up`: packets pass", true, switched(host.SwitchPort{WRED: &host.WRED{
		KMin: 30e3, KMax: 90e3, PMax: 0.2, K: 45e3}})},
	{"`pcn host switch up --npecn`: packets pass, and are counted", false,
		switched(host.SwitchPort{NPECN: &host.NPECN{Rate: 500e6}})},
}

// newHost is a path whose client is this machine, which has nothing of ours at the end.
func newHost(t *testing.T) path {
	t.Helper()
	home, err := netns.Get()
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() {
		_, err := host.New().Down(context.Background())
		qt.Check(t, qt.IsNil(err))
		_, err = os.Stat(host.DefaultRoot)
		qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
		nstest.Eventually(t, "the control is gone", func() bool { return !available(t, "pcn") })
		home.Close()
	})
	here, peer := nstest.Veth(t, home, nstest.New(t),
		netip.MustParsePrefix("10.7.0.1/24"), netip.MustParsePrefix("10.7.0.2/24"))
	return path{end{here}, end{peer}}
}

func hostUp(t *testing.T, text string) {
	t.Helper()
	c, err := host.Parse("host.yaml", []byte(text))
	qt.Assert(t, qt.IsNil(err))
	_, err = host.New().Up(t.Context(), c)
	qt.Assert(t, qt.IsNil(err))
}

const pcnOnly = "line_rate: 1Gbps\ncontrols: {pcn: {}}\n"

func controlOf(t *testing.T, c *net.TCPConn) string {
	t.Helper()
	name, err := socket.Control(c)
	qt.Assert(t, qt.IsNil(err))
	return name
}

func inCgroup(t *testing.T) string {
	const root = "/sys/fs/cgroup"
	group, err := os.MkdirTemp(root, "pcn")
	qt.Assert(t, qt.IsNil(err))
	enter := func(group string) {
		qt.Check(t, qt.IsNil(os.WriteFile(group+"/cgroup.procs", []byte("0"), 0)))
	}
	t.Cleanup(func() {
		enter(root)
		nstest.Eventually(t, "the cgroup goes", func() bool { return os.Remove(group) == nil })
	})
	p := newHost(t)
	hostUp(t, pcnOnly+"cgroups: [{path: "+group+", control: pcn}]\n")
	outside := p.connect(t, "", "reno")
	enter(group)
	inside := p.connect(t, "", "reno")
	qt.Check(t, qt.Equals(controlOf(t, outside.client), "cubic"))
	qt.Check(t, qt.Equals(controlOf(t, inside.client), "pcn"))
	return yes
}

func adopted(t *testing.T) string {
	p := newHost(t)
	hostUp(t, pcnOnly)
	c := p.connect(t, "reno", "reno")
	port := uint16(c.client.LocalAddr().(*net.TCPAddr).Port)
	done, err := host.New().Adopt(t.Context(), host.Adoption{Control: "pcn", Ports: []uint16{port}})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(controlOf(t, c.client), "pcn"))
	c.transfer(t, 64<<10)
	back, err := host.New().GiveBack(t.Context())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(back, done))
	qt.Check(t, qt.Equals(controlOf(t, c.client), "reno"))
	return yes
}

func traced(t *testing.T) string {
	p := newHost(t)
	hostUp(t, pcnOnly)
	c := p.connect(t, "pcn", "reno")
	c.transfer(t, 64<<10)
	f, err := host.New().FindFlow(c.client.LocalAddr().String())
	qt.Assert(t, qt.IsNil(err))
	enough := errors.New("an event came")
	ended := make(chan error, 1)
	go func() {
		const everyACK = true
		ended <- host.New().Trace(t.Context(), f, everyACK,
			func(host.TraceEvent) error { return enough })
	}()
	nstest.Eventually(t, "an event comes", func() bool {
		c.transfer(t, 64<<10)
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	})
	qt.Assert(t, qt.ErrorIs(err, enough))
	return yes
}

// switched sends through a switch port at this machine's interface.
func switched(port host.SwitchPort) func(t *testing.T) string {
	return func(t *testing.T) string {
		p := newHost(t)
		t.Cleanup(func() {
			_, err := host.New().SwitchDown(context.Background())
			qt.Check(t, qt.IsNil(err))
		})
		port.Interface = p.client.Link.Attrs().Name
		nl := nstest.Netlink(t, p.client.NS)
		qt.Assert(t, qt.IsNil(nl.QdiscReplace(&netlink.GenericQdisc{
			QdiscAttrs: netlink.QdiscAttrs{
				LinkIndex: p.client.Index(), Handle: netlink.MakeHandle(1, 0),
				Parent: netlink.HANDLE_ROOT,
			},
			QdiscType: "pfifo",
		})))
		_, err := host.New().SwitchUp(t.Context(), []host.SwitchPort{port})
		if errors.Is(err, loader.ErrNotSupported) {
			t.Log(err)
			return lacks(err)
		}
		qt.Assert(t, qt.IsNil(err))
		p.connect(t, "cubic", "reno").transfer(t, 256<<10)
		status, err := host.New().SwitchStatus(port.Interface)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.HasLen(status, 1))
		t.Log(status[0].Qdisc, status[0].Counts)
		return yes
	}
}
