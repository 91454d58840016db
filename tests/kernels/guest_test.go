// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
	"github.com/pcn-linux/pcn/tc/tctest"
)

// What a cell begins with; after no comes what the kernel lacks.
const (
	yes     = "yes"
	no      = "no"
	untried = "untried"
	failed  = no + ": failed"
)

// row is what is tried on each kernel.
type row struct {
	name       string
	everywhere bool // no kernel of the matrix may lack it
	try        func(t *testing.T) string
}

const lineRateBps = 1e9

var rows = slices.Concat([]row{
	{"registered by", true, func(*testing.T) string {
		if loader.HaveStructOpsLink() != nil {
			return "map"
		}
		return "link"
	}},
	{"arguments of `cong_control`", true, congControlArguments},
}, transfers(), []row{
	{"tc programs attached through", true, attachedThrough},
	{"NP, RP: marks cut the rate, their absence raises it", true, notified(labNP, labRP)},
	{"NP, RP for hosts: the same", true, notified(hostNP, hostRP)},
	{"stamp", true, loads(func() (closer, error) { return tc.LoadStamp(tc.StampOptions{DataDSCP: 1, ControlDSCP: 2}) })},
	{"DCQCN's NP", true, loads(func() (closer, error) { return tctest.LoadMarked(50e3, false) })},
	{"LDCP's first_rtt", true, loads(loadFirstRTT)},
	{"ECN with a plain server, `tcp_ecn=1`", true, plainServer("1", true)},
	{"ECN with a plain server, `tcp_ecn=2`", true, plainServer("2", true)},
	{"the same without syn", false, plainServer("2", false)},
	{"server refuses ECN, `tcp_ecn=0`: CUBIC's window, no more", true, refused},
	{"iperf3, with the statistics of `ss -ti`", true, iperf3},
	{"curl, with the statistics of `ss -ti`", true, curl},
	{"wred", false, loads(func() (closer, error) { return tc.LoadWRED(tc.WREDOptions{}) })},
	{"the lab's switches, `--native`", false, loads(loadSwitch)},
})

// transfers are a row for each scheme that comes along.
func transfers() []row {
	var list []row
	for _, s := range scheme.Builtin().OnLinux() {
		list = append(list, row{"`" + s.Control + "`", true, transferWith(func() (*loader.Control, error) {
			return register(s.Name, lineRateBps, quick[s.Name])
		})})
	}
	return list
}

// quick are parameters with which a transfer is quick on a slow machine. The others have their defaults.
var quick = map[string]map[string]string{
	"dcqcn":  {"min_rate": "100Mbps"},
	"qcn":    {"min_rate": "100Mbps"},
	"timely": {"min_rate": "100Mbps", "t_low": "50ms", "t_high": "500ms", "min_rtt": "1ms"},
}

// register registers the control of a scheme that comes along.
func register(
	name string, lineRateBps uint64, given map[string]string, options ...loader.Option,
) (*loader.Control, error) {
	s, err := scheme.Builtin().Lookup(name)
	if err != nil {
		return nil, err
	}
	settings := scheme.Settings{Given: map[string]scheme.Value{}}
	for key, text := range given {
		if settings.Given[key], err = s.Object.Param(key).Parse(text); err != nil {
			return nil, err
		}
	}
	return loader.Register(loader.Registration{
		Scheme: s, Settings: settings,
		Network: scheme.Network{LineRateBps: lineRateBps, BaseRTTNs: 1e6, FrameBytes: frameBytes},
	}, options...)
}

func registerPCN() (*loader.Control, error) { return register("pcn", lineRateBps, nil) }

// TestGuest fills this kernel's column. TestKernels runs it.
func TestGuest(t *testing.T) {
	dir := os.Getenv(resultDirEnv)
	if dir == "" {
		t.Skip("TestKernels runs it, on each kernel")
	}
	tried := rows
	if os.Getenv(hostRowsEnv) != "" {
		tried = allRows
	}
	c := column{}
	for _, r := range tried {
		c[r.name] = failed
		t.Run(strings.ReplaceAll(r.name, "`", ""), func(t *testing.T) {
			c[r.name] = r.try(t)
			t.Log(c[r.name])
		})
	}
	qt.Assert(t, qt.IsNil(c.write(dir)))
}

// congControlArguments is which of the two programs is loaded, by the kernel's types.
func congControlArguments(t *testing.T) string {
	kernel, err := btf.LoadKernelSpec()
	qt.Assert(t, qt.IsNil(err))
	var ops *btf.Struct
	qt.Assert(t, qt.IsNil(kernel.TypeByName("tcp_congestion_ops", &ops)))
	for _, m := range ops.Members {
		if m.Name == "cong_control" {
			return fmt.Sprint(len(m.Type.(*btf.Pointer).Target.(*btf.FuncProto).Params))
		}
	}
	t.Fatal("tcp_congestion_ops has no cong_control")
	return ""
}

// transferWith registers the control, sends through it, and checks what it counted.
func transferWith(register func() (*loader.Control, error)) func(t *testing.T) string {
	return func(t *testing.T) string {
		control := registered(t, register)
		p := newPath(t)
		c := p.connect(t, control.Name(), control.Name())
		const bytes = 1 << 20
		c.transfer(t, bytes)
		if control.FlowTable() == nil { // pcn_line
			return yes
		}
		f := c.flow(t, control)
		qt.Check(t, qt.IsTrue(f.Packets >= bytes/payloadBytes), qt.Commentf("%d packets", f.Packets))
		qt.Check(t, qt.Equals(f.Losses, 0))
		qt.Check(t, qt.IsTrue(f.SRTT > 0))
		info := tcpInfo(t, c.client)
		qt.Check(t, qt.Equals(f.ECN, info.Options&tcpiOptECN != 0))
		return yes
	}
}

type closer interface{ Close() error }

// loads says whether the programs load, and what the kernel lacks if not.
func loads(load func() (closer, error)) func(t *testing.T) string {
	return func(t *testing.T) string {
		nstest.RequireRoot(t)
		c, err := load()
		if errors.Is(err, loader.ErrNotSupported) {
			t.Log(err)
			return lacks(err)
		}
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsNil(c.Close()))
		return yes
	}
}

// lacks is the cell of an error that says what the kernel lacks: its last part in brackets.
func lacks(err error) string {
	_, what, ok := strings.Cut(err.Error(), "(")
	if !ok {
		return no
	}
	what, _, _ = strings.Cut(what, ")")
	return no + ": " + what
}

func loadFirstRTT() (closer, error) {
	// another process may have the name
	control, err := register("ldcp", lineRateBps, nil, loader.Unregistered())
	if err != nil {
		return nil, err
	}
	defer control.Close()
	return tc.LoadFirstRTT(control)
}

// loadSwitch is what a native lab needs: the port's qdisc and the fabric's program.
func loadSwitch() (closer, error) {
	if err := loader.HaveQdisc(); err != nil {
		return nil, err
	}
	return tc.LoadFabric(tc.FabricOptions{HostBase: netip.MustParseAddr("10.0.0.1"), Hosts: 2, Nodes: 1, Ports: 2})
}

// attachedThrough attaches at both directions of a device, and checks that Close leaves it as it was.
func attachedThrough(t *testing.T) string {
	p := newPath(t)
	before := p.server.filters(t)
	np := newNP(t, p)
	stamp, err := tc.LoadStamp(tc.StampOptions{DataDSCP: 1, ControlDSCP: 2})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(stamp.Attach(p.server.NS, p.server.Index())))
	during := p.server.filters(t)
	qt.Check(t, qt.IsNil(np.Close()))
	qt.Check(t, qt.IsNil(stamp.Close()))
	qt.Check(t, qt.Equals(p.server.filters(t), before))
	if loader.HaveTCX() == nil {
		qt.Check(t, qt.Equals(during, before))
		return "tcx"
	}
	qt.Check(t, qt.Equals(during, before+"clsact np_ingress | np_egress stamp"))
	return "clsact"
}

// attacher is an NP or RP.
type attacher interface {
	closer
	Attach(h netns.NsHandle, ifindex int) error
}

func labNP() (attacher, error) { return tctest.LoadPCN(1e6, 0.95) }

func labRP(control *loader.Control) (attacher, error) { return tc.LoadRP(control) }

func hostNP() (attacher, error) {
	return tc.LoadHostNP(tc.HostNPOptions{TNs: 1e6, CongestedShare: 0.95})
}

func hostRP(control *loader.Control) (attacher, error) {
	rp, err := tc.LoadHostRP(control, tc.HostRPOptions{})
	return anyPrefix{rp}, err
}

// anyPrefix is an RP that obeys CNPs from anywhere.
type anyPrefix struct{ *tc.RP }

func (r anyPrefix) Attach(h netns.NsHandle, ifindex int) error {
	return errors.Join(r.Allow(ifindex), r.RP.Attach(h, ifindex))
}

// notified sends through NP and RP, with marks and without.
func notified(loadNP func() (attacher, error), loadRP func(*loader.Control) (attacher, error)) func(t *testing.T) string {
	return func(t *testing.T) string {
		control := registered(t, registerPCN)
		p := newPath(t)
		marker := nstest.NewMarker(t, p.server.End)
		np, err := loadNP()
		qt.Assert(t, qt.IsNil(err))
		t.Cleanup(func() { np.Close() })
		qt.Assert(t, qt.IsNil(np.Attach(p.server.NS, p.server.Index())))
		rp, err := loadRP(control)
		qt.Assert(t, qt.IsNil(err))
		t.Cleanup(func() { rp.Close() })
		qt.Assert(t, qt.IsNil(rp.Attach(p.client.NS, p.client.Index())))
		c := p.connect(t, "pcn", "pcn")
		marker.Mark(t, true)
		c.transfer(t, 256<<10)
		cut := c.flow(t, control)
		qt.Check(t, qt.IsTrue(cut.CNPDecrease > 0))
		qt.Check(t, qt.IsTrue(cut.SendRateBps < lineRateBps))
		marker.Mark(t, false)
		c.transfer(t, 256<<10)
		raised := c.flow(t, control)
		qt.Check(t, qt.IsTrue(raised.CNPIncrease > 0))
		qt.Check(t, qt.IsTrue(raised.SendRateBps > cut.SendRateBps), qt.Commentf("%d, then %d bit/s", cut.SendRateBps, raised.SendRateBps))
		return yes
	}
}

func newNP(t *testing.T, p path) *tc.NP {
	t.Helper()
	np, err := tctest.LoadPCN(1e6, 0.95)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { np.Close() })
	qt.Assert(t, qt.IsNil(np.Attach(p.server.NS, p.server.Index())))
	return np
}

// plainServer connects to a server with the kernel's own control, with tc/bpf/syn.bpf.c and without.
func plainServer(tcpECN string, plainSYN bool) func(t *testing.T) string {
	return func(t *testing.T) string {
		control := registered(t, registerPCN)
		p := newPath(t)
		nstest.Sysctl(t, p.server.NS, "tcp_ecn", tcpECN)
		if plainSYN {
			p.client.plainSYN(t)
		}
		marker := nstest.NewMarker(t, p.server.End)
		marker.Mark(t, true)
		c := p.connect(t, "pcn", "reno")
		c.transfer(t, 128<<10)
		f := c.flow(t, control)
		for _, conn := range []*net.TCPConn{c.client, c.server} {
			qt.Check(t, qt.Equals(f.ECN, tcpInfo(t, conn).Options&tcpiOptECN != 0))
		}
		if !f.ECN {
			return no
		}
		qt.Check(t, qt.IsTrue(f.MarkedPackets > 0)) // ACKs echo what the marker did: packets were ECN-capable
		return yes
	}
}

// refused connects to a server that refuses ECN, loses packets, and holds the window against the kernel's CUBIC.
func refused(t *testing.T) string {
	control := registered(t, registerPCN)
	p := newPath(t)
	nstest.Sysctl(t, p.server.NS, "tcp_ecn", "0")
	p.client.plainSYN(t)
	dropper := nstest.NewDropper(t, p.server.End)
	meanWindow := func(c connection) float64 {
		dropper.DropEvery(t, 50)
		sum, samples := 0.0, 8
		for range samples {
			c.transfer(t, 64<<10)
			sum += float64(tcpInfo(t, c.client).Snd_cwnd)
		}
		dropper.DropEvery(t, 0)
		return sum / float64(samples)
	}
	c := p.connect(t, "pcn", "reno")
	first := c.flow(t, control)
	qt.Check(t, qt.IsFalse(first.ECN))
	qt.Check(t, qt.Equals(first.Window, 10)) // the core's initial window: not one that never binds
	ours := meanWindow(c)
	f := c.flow(t, control)
	qt.Check(t, qt.IsTrue(f.Losses > 3), qt.Commentf("%d losses", f.Losses))
	qt.Check(t, qt.Equals(f.SendRateBps, 0))
	qt.Check(t, qt.Equals(f.Window, float64(tcpInfo(t, c.client).Snd_cwnd)))
	cubic := meanWindow(p.connect(t, "cubic", "reno"))
	t.Logf("mean window %.1f packets, CUBIC's %.1f", ours, cubic)
	qt.Check(t, qt.IsTrue(ours < 1.25*cubic && ours > cubic/2),
		qt.Commentf("mean window %.1f packets, CUBIC's %.1f", ours, cubic))
	return yes
}
