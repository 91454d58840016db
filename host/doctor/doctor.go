// SPDX-License-Identifier: Apache-2.0

// Package doctor finds what keeps a host from running PCN well, and says what to do: on the host
// itself, on the path to a peer, and by a self-test between namespaces of its own.
//
// What needs a kernel of its own is tested in package host, whose tests have one.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/host/internal/bpffs"
	"github.com/pcn-linux/pcn/host/internal/rights"
	"github.com/pcn-linux/pcn/host/internal/tcpecn"
	"github.com/pcn-linux/pcn/loader"
)

// Run checks whether the host can run PCN, and whether what runs works: the kernel, rights,
// interfaces, namespaces and flows. c is the configuration; without one it may be nil, and what
// runs is checked. It changes nothing.
func Run(ctx context.Context, h *host.Host, c *host.Config) []Check {
	var found checks
	checkKernel(&found)
	checkRights(h, &found)
	s := checkComponents(ctx, h, &found, c)
	checkWallClock(&found, c, s)
	checkTCPECN(&found)
	checkFallback(&found)
	for _, name := range checkedInterfaces(c, s) {
		checkInterface(&found, name, stampedAt(name, c, s))
	}
	checkNamespaces(h, &found)
	checkFlows(h, &found)
	return found.all
}

func checkKernel(found *checks) {
	for _, feature := range []struct {
		name, does string
		have       func() error
		needed     bool
	}{
		{"kernel types", "BTF", loader.HaveBTF, true},
		{"congestion controls in BPF", "struct_ops", loader.HaveTCPStructOps, true},
		{"registrations that can be pinned", "struct_ops links", loader.HaveStructOpsLink, true},
		{"tc programs that can be pinned", "tcx", loader.HaveTCX, true},
		{"wred", "bpf_cast_to_kern_ctx", loader.HaveKernelContext, false},
	} {
		if err := feature.have(); err == nil {
			found.ok(feature.name, "%s", feature.does)
		} else if feature.needed {
			found.bad(Fail, feature.name, err.Error(), "Linux 6.6 or later with BTF",
				"boot such a kernel: see pcn docs kernels")
		} else {
			found.bad(Warn, feature.name, err.Error(), "Linux 6.2 or later, for wred only",
				"do without wred, or boot such a kernel")
		}
	}
	checkFile(found, "BPF compiler", "/proc/sys/net/core/bpf_jit_enable",
		func(v string) bool { return v != "0" }, "1", "sysctl -w net.core.bpf_jit_enable=1")
	slow := []string{"acpi_pm", "hpet", "jiffies", "pit"}
	checkFile(found, "clock source",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource",
		func(v string) bool { return !slices.Contains(slow, v) },
		"tsc, kvm-clock or another that is read fast and is exact: it is read for each packet",
		"see why the kernel left the tsc: dmesg | grep -i clocksource")
}

// checkFile compares the value of a file of the kernel; a file that is missing is not checked.
func checkFile(found *checks, name, path string, isGood func(string) bool, want, do string) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	value := strings.TrimSpace(string(text))
	switch {
	case err != nil:
		found.bad(Warn, name, err.Error(), "a file that can be read", "run pcn host doctor as root")
	case isGood(value):
		found.ok(name, "%s", value)
	default:
		found.bad(Warn, name, value, want, do)
	}
}

func checkRights(h *host.Host, found *checks) {
	const asRoot = "run pcn as root, or see Rights in pcn docs host"
	if missing, err := rights.Missing(rights.Needed...); err != nil || len(missing) > 0 {
		is := "this process lacks " + strings.Join(missing, ", ")
		if err != nil {
			is = err.Error()
		}
		found.bad(Fail, "rights", is, "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON", asRoot)
	} else if err := loader.HavePermission(); err != nil {
		found.bad(Fail, "rights", err.Error(), "the right to load BPF programs", asRoot)
	} else {
		found.ok("rights", "this process may load and attach programs")
	}
	elsewhere, err := rights.Missing(rights.Entering...)
	if err == nil && len(elsewhere) > 0 {
		found.bad(Warn, "rights in other network namespaces",
			"this process lacks "+strings.Join(elsewhere, ", "),
			"root with all capabilities, to look into other network namespaces",
			"run pcn host doctor as root in a shell, not in a service")
	}
	dir := filepath.Dir(h.Root())
	var fsinfo unix.Statfs_t
	mount := bpffs.MountCommand(dir)
	if err := bpffs.CheckMount(h.Root()); err != nil {
		found.bad(Fail, "BPF file system", err.Error(), "that of process 1", "use --netns NAME")
	} else if err := unix.Statfs(dir, &fsinfo); err != nil {
		found.bad(Fail, "BPF file system", fmt.Sprintf("%s: %v", dir, err), dir, mount)
	} else if fsinfo.Type != unix.BPF_FS_MAGIC {
		found.bad(Warn, "BPF file system", "none at "+dir, "one that is mounted at boot", mount)
	} else if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o077 != 0 {
		is := fmt.Sprintf("%s has mode %04o, so that other users may keep pcn host waiting for "+
			"its lock", dir, info.Mode().Perm())
		found.bad(Warn, "BPF file system", is, "mode 0700", "chmod 700 "+dir)
	} else {
		found.ok("BPF file system", "%s", dir)
	}
}

// checkComponents returns what runs, as far as it could be read.
func checkComponents(
	ctx context.Context, h *host.Host, found *checks, c *host.Config,
) *host.Status {
	s, err := h.Status(ctx, c)
	if err != nil {
		found.bad(Fail, "components", err.Error(), "state that can be read", "pcn host status")
		return &host.Status{}
	}
	if len(s.Components) == 0 {
		found.bad(Warn, "components", "nothing runs", "a control, and NP and RP", "pcn host up")
	}
	for _, one := range s.Components {
		if len(one.Problems) == 0 {
			found.ok(one.Name, "%s", strings.Join(append([]string{"runs"}, one.Where...), " "))
		}
		for _, p := range one.Problems {
			found.bad(Fail, one.Name, p, "a whole component", "pcn host up")
		}
	}
	for _, d := range s.Differences {
		found.bad(Fail, "configuration", d, "what the configuration says", "pcn host up")
	}
	checkPoints(found, s)
	return s
}

// checkPoints says what senders and receivers of CNPs lack.
func checkPoints(found *checks, s *host.Status) {
	runs := func(name string) bool {
		return slices.ContainsFunc(s.Components,
			func(c host.ComponentStatus) bool { return c.Name == name })
	}
	if !runs(host.ControlPrefix + "pcn") {
		return
	}
	for name, lacks := range map[string]string{
		host.RPName: "this host's flows of pcn hear no CNPs",
		host.NPName: "this host sends no CNPs, so pcn at its peers hears none",
	} {
		if !runs(name) {
			found.bad(Warn, name, "does not run: "+lacks, name+" at the interfaces to the fabric",
				"pcn host up --control pcn --on IFACE, or "+name+": in the configuration")
		}
	}
}

func checkTCPECN(found *checks) {
	value, err := tcpecn.Get()
	switch {
	case err != nil:
		found.bad(Warn, "net.ipv4.tcp_ecn", err.Error(), "1", "run pcn host doctor as root")
	case tcpecn.AsksForECN(value):
		found.ok("net.ipv4.tcp_ecn", "%s", value)
	default:
		found.bad(Warn, "net.ipv4.tcp_ecn", value+": programs that choose a control after they "+
			"have connected, such as iperf3 -C pcn, get no ECN, and so TCP's window",
			"1, or choose the control by cgroup or by sysctl", "sysctl -w net.ipv4.tcp_ecn=1")
	}
}

func checkFallback(found *checks) {
	const name = "net.ipv4.tcp_ecn_fallback"
	falls, err := tcpecn.FallsBack()
	switch {
	case err != nil:
		found.bad(Warn, name, err.Error(), "0", "run pcn host doctor as root")
	case falls:
		found.bad(Warn, name, "1: "+tcpecn.FallbackMeans, "0, where all paths let ECN through",
			tcpecn.FallbackCommand)
	default:
		found.ok(name, "0")
	}
}

// checkedInterfaces returns the interfaces of the configuration, else those of what runs here.
func checkedInterfaces(c *host.Config, s *host.Status) []string {
	var names []string
	if c != nil {
		names = c.Interfaces()
	} else {
		for _, one := range s.Components {
			if !one.IsOthers {
				names = append(names, one.Where...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(slices.DeleteFunc(names,
		func(name string) bool { return strings.HasPrefix(name, "/") })) // a cgroup
}

// stampedAt returns the DSCPs that packets get at an interface by the configuration, else by what
// runs; nil if they get none.
func stampedAt(name string, c *host.Config, s *host.Status) *classes {
	if c != nil {
		if c.Stamp == nil || !slices.Contains(c.Stamp.Interfaces, name) {
			return nil
		}
		return &classes{uint8(c.Stamp.DataDSCP), uint8(c.Stamp.ControlDSCP)}
	}
	for _, one := range s.Components {
		if one.Name == host.StampName && slices.Contains(one.Where, name) {
			if data, control, ok := one.DSCPs(); ok {
				return &classes{data, control}
			}
		}
	}
	return nil
}

func checkInterface(found *checks, name string, stamped *classes) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		found.bad(Fail, name, err.Error(), "an interface of this network namespace", "ip link")
		return
	}
	attrs := link.Attrs()
	if attrs.Flags&unix.IFF_UP == 0 || attrs.OperState == netlink.OperDown {
		found.bad(Fail, name+" link", "down", "up", "ip link set "+name+" up, and see its cable")
	}
	const ipv6Minimum = 1280
	if attrs.MTU < ipv6Minimum {
		found.bad(Warn, name+" MTU", fmt.Sprint(attrs.MTU), "1500, or 9000 in the whole fabric",
			"ip link set "+name+" mtu 1500")
	} else {
		found.ok(name+" MTU", "%d", attrs.MTU)
	}
	checkQdisc(found, link)
	checkDCB(found, dialRoute, name, stamped)
	e, err := ethtool.NewEthtool()
	if err != nil {
		found.bad(Warn, name+" offloads", err.Error(), "an answer of ethtool", "ethtool -k "+name)
		return
	}
	defer e.Close()
	checkOffloads(found, e, name)
	checkRing(found, e, name)
}

func checkQdisc(found *checks, link netlink.Link) {
	name := link.Attrs().Name + " qdisc"
	all, err := netlink.QdiscList(link)
	if err != nil {
		found.bad(Warn, name, err.Error(), "an answer of tc", "tc qdisc show")
		return
	}
	kind := "noqueue"
	for _, q := range all {
		if q.Attrs().Parent == netlink.HANDLE_ROOT {
			kind = q.Type()
		}
	}
	switch kind {
	case "netem", "cake", "red", "codel", "pie":
		found.bad(Warn, name, kind+": it delays, marks or drops by rules of its own",
			"fq, mq, pfifo_fast, noqueue, or HTB or TBF with wred",
			"tc qdisc replace dev "+link.Attrs().Name+" root fq")
	default:
		found.ok(name, "%s", kind)
	}
}

func checkOffloads(found *checks, e *ethtool.Ethtool, name string) {
	features, err := e.Features(name)
	if err != nil {
		found.bad(Warn, name+" offloads", err.Error(), "an answer of ethtool", "ethtool -k "+name)
		return
	}
	// LRO forgets which of the packets that it merges were marked.
	if features["rx-lro"] {
		found.bad(Fail, name+" offloads", "LRO is on: marks of merged packets get lost",
			"LRO off, GRO instead", "ethtool -K "+name+" lro off gro on")
		return
	}
	var on []string
	for _, f := range []struct{ feature, short string }{
		{"tx-tcp-segmentation", "TSO"}, {"tx-generic-segmentation", "GSO"}, {"rx-gro", "GRO"},
		{"rx-gro-hw", "hardware GRO"},
	} {
		if features[f.feature] {
			on = append(on, f.short)
		}
	}
	if len(on) == 0 {
		on = []string{"none"}
	}
	found.ok(name+" offloads", "%s", strings.Join(on, ", "))
}

// checkRing looks for a receive ring that overflows early: drops there have no mark before them.
func checkRing(found *checks, e *ethtool.Ethtool, name string) {
	ring, err := e.GetRing(name)
	if err != nil || ring.RxMaxPending == 0 {
		return // a virtual interface has none
	}
	is := fmt.Sprintf("%d of %d receive slots", ring.RxPending, ring.RxMaxPending)
	const enough = 1024
	if ring.RxPending < min(enough, ring.RxMaxPending) {
		want := min(enough, ring.RxMaxPending)
		found.bad(Warn, name+" ring", is, fmt.Sprintf("%d or more, so that bursts are not dropped",
			want), fmt.Sprintf("ethtool -G %s rx %d", name, want))
		return
	}
	found.ok(name+" ring", "%s", is)
}

func checkNamespaces(h *host.Host, found *checks) {
	controls, err := h.Registered()
	if err != nil {
		return // checkComponents said so
	}
	registered := slices.Clone(controls)
	controls = append(controls, host.ControlNames()...)
	chosen, closed, err := host.Choices(controls)
	if err != nil {
		found.bad(Warn, "network namespaces", err.Error(), "namespaces that can be listed",
			"run pcn host doctor as root")
		return
	}
	for _, c := range chosen {
		name := "network namespace " + c.Namespace.String()
		switch {
		case slices.Contains(registered, c.Control):
			found.ok(name, "its new connections use %s", c.Control)
		case !isAvailable(c.Control):
			found.bad(Fail, name, "chose "+c.Control+", which is not registered: its new "+
				"connections use a removed control", "a control that is registered",
				"pcn host up, or "+c.Namespace.Command(
					"sysctl -w net.ipv4.tcp_congestion_control=cubic"))
		}
	}
	if closed > 0 {
		found.bad(Warn, "network namespaces", fmt.Sprintf("%d could not be entered", closed),
			"all that there are", "run pcn host doctor as root in a shell, not in a service")
	}
}

// isAvailable reports whether a control is registered, by whomever.
func isAvailable(control string) bool {
	_, err := loader.KernelControl(control)
	return err == nil
}

func checkFlows(h *host.Host, found *checks) {
	flows, err := h.Flows()
	if err != nil {
		found.bad(Warn, "flows", err.Error(), "flow tables that can be read", "pcn flows")
		return
	}
	var noECN, silent int
	for _, f := range flows {
		if host.NeedsECN(f.Control) && !f.ECN {
			noECN++
		}
		hears := f.Control == "pcn"
		if hears && f.MarkedPackets > 0 && f.CNPDecrease+f.CNPIncrease+f.CNPHold == 0 {
			silent++
		}
	}
	if noECN > 0 {
		found.bad(Warn, "flows", fmt.Sprintf("%d of %d have no ECN, and so TCP's window", noECN,
			len(flows)), "ECN for each flow of a control that needs it",
			"pcn flows shows which: choose the control before connecting, by cgroup or by sysctl; "+
				"sysctl -w net.ipv4.tcp_ecn=1; or look for ECN at the peer: pcn host doctor --peer")
	}
	if silent > 0 {
		found.bad(Warn, "CNPs", fmt.Sprintf("%d of %d flows had marked packets, and no CNP",
			silent, len(flows)), "CNPs from each peer", "pcn host up with np at the peers, or "+
			"feedback: auto here; pcn host doctor --peer HOST:PORT tries one")
	}
	if noECN+silent == 0 && len(flows) > 0 {
		found.ok("flows", "%d, all with ECN and feedback", len(flows))
	}
}
