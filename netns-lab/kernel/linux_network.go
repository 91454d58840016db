// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/tc"
)

// linuxNetwork is what of a fabric is Linux's own: switches that are routers, and qdiscs before
// ports of switches. Both stop packets' ideal time, so they need a clock that stands still while
// CPUs work.
type linuxNetwork struct {
	routers map[int]bool      // by node
	qdiscs  map[uint32]string // by port: as tc takes them
	// stages are where packets for a port with such a qdisc go in, by port: a device's index
	stages map[uint32]int
}

// newLinuxNetwork finds out what of a plan is Linux's own.
func newLinuxNetwork(p *plan) (linuxNetwork, error) {
	l := linuxNetwork{
		routers: map[int]bool{}, qdiscs: map[uint32]string{}, stages: map[uint32]int{},
	}
	for _, node := range p.routers {
		l.routers[node] = true
	}
	qdiscs := p.exp.Qdiscs()
	for id := 1; id < len(p.ports); id++ {
		if q := qdiscs[p.ports[id].name]; q != "" {
			l.qdiscs[uint32(id)] = q
		}
	}
	if len(p.exp.NFT)+len(l.qdiscs) > 0 && !p.virtualTime {
		return l, errors.New("nft and qdisc need User Mode Linux: run pcn setup, and pcn without " +
			"--native and --kernel")
	}
	return l, nil
}

// exempt reports whether a switch may take in other packets than it sends: Linux makes and drops
// some.
func (f *fabric) exempt(node int) bool {
	return f.linux.routers[node] || slices.ContainsFunc(f.plan.nodes[node].ports,
		func(id uint32) bool { return f.linux.qdiscs[id] != "" })
}

// Names of the devices of a port's stage, with the port's id behind.
const (
	stageDevice = "qdisc" // packets go in
	wireDevice  = "wire"  // and come out
)

// stageQdisc is the handle of the port's qdisc there, below the shaper.
const stageQdisc = "2:"

// createStages makes a pair of veths for each port with a qdisc of Linux, in the switch's
// namespace.
func (f *fabric) createStages() (err error) {
	if len(f.linux.routers)+len(f.linux.qdiscs) == 0 {
		return nil
	}
	if f.router, err = tc.LoadRouter(uint32(len(f.plan.ports))); err != nil {
		return err
	}
	for _, id := range f.linuxPorts() {
		err := f.router.AddPort(tc.RouterPort{
			ID: id, Node: uint32(f.plan.ports[id].node), Ifindex: f.links.ifindex[id],
		})
		if err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.linux.qdiscs)) {
		if err := f.createStage(id); err != nil {
			return fmt.Errorf("port %s: %w", f.plan.ports[id].name, err)
		}
	}
	return nil
}

// linuxPorts returns the ports of routers and those with qdiscs of Linux.
func (f *fabric) linuxPorts() []uint32 {
	var ids []uint32
	for id := uint32(1); id < uint32(len(f.plan.ports)); id++ {
		if f.linux.routers[f.plan.ports[id].node] || f.linux.qdiscs[id] != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

func (f *fabric) createStage(id uint32) error {
	n := f.links.node(id)
	in, out := fmt.Sprint(stageDevice, id), fmt.Sprint(wireDevice, id)
	mtu := int(f.plan.exp.Frame) - ethHeader
	err := n.nl.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: in, MTU: mtu, HardwareAddr: hostMAC},
		PeerName:  out, PeerMTU: uint32(mtu), PeerHardwareAddr: hostMAC,
	})
	if err != nil {
		return fmt.Errorf("make devices for its qdisc: %w", err)
	}
	indexes := [2]int{}
	for i, name := range []string{in, out} {
		if indexes[i], err = f.links.setUp(id, name); err != nil {
			return fmt.Errorf("device %s: %w", name, err)
		}
	}
	f.linux.stages[id] = indexes[0]
	return n.do(func() error { return f.router.AttachRelay(netns.None(), indexes[1]) })
}

// out returns the device through which a switch sends to a port.
func (f *fabric) out(id uint32) int {
	if stage, ok := f.linux.stages[id]; ok {
		return stage
	}
	return f.links.ifindex[id]
}

// attachRouterPort attaches the programs of a router's port in the thread's namespace.
func (f *fabric) attachRouterPort(id uint32) error {
	here := netns.None()
	return errors.Join(f.router.AttachEnter(here, f.links.ifindex[id]),
		f.router.AttachLeave(here, f.out(id)))
}

// configureRouters makes Linux forward at routers: each has an address, and a route to every other.
func (f *fabric) configureRouters() error {
	for _, node := range f.plan.routers {
		if err := f.configureRouter(node); err != nil {
			return fmt.Errorf("configure router %s: %w", f.plan.nodes[node].name, err)
		}
	}
	return nil
}

func (f *fabric) configureRouter(node int) error {
	n, addr := f.nodes[node], f.plan.nodes[node].addr
	err := n.do(func() error {
		return writeSetting("/proc/sys/net/ipv4/ip_forward", "1")
	})
	if err != nil {
		return fmt.Errorf("forward: %w", err)
	}
	lo := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: loopback}}
	if err := n.nl.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	for _, id := range f.plan.nodes[node].ports {
		if err := f.configureRouterPort(n, id, addr); err != nil {
			return fmt.Errorf("port %s: %w", f.plan.ports[id].name, err)
		}
	}
	for to, ports := range f.plan.routesFrom(node, f.plan.paths) {
		if len(ports) == 0 {
			continue // itself, or cut off
		}
		if err := f.addRoutes(n, addr, f.plan.target(to), f.out(ports[0])); err != nil {
			return err
		}
	}
	return nil
}

// configureRouterPort gives the devices of a router's port its address: rules of masquerading take
// that of the device that packets leave by.
func (f *fabric) configureRouterPort(n namespace, id uint32, addr netip.Addr) error {
	devices := map[int]string{f.links.ifindex[id]: f.plan.device(id)}
	if stage, ok := f.linux.stages[id]; ok {
		devices[stage] = fmt.Sprint(stageDevice, id)
	}
	for index, name := range devices {
		dev := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}
		if err := addAddr(n, dev, addr); err != nil {
			return err
		}
		if !f.plan.ipv6() {
			continue
		}
		if err := n.do(func() error { return enableIPv6(name, true) }); err != nil {
			return err
		}
		if err := addAddr(n, dev, network.IPv6Addr(addr)); err != nil {
			return err
		}
	}
	return nil
}

// addRoutes adds a router's routes to one address, of IPv6 too.
func (f *fabric) addRoutes(n namespace, own, to netip.Addr, ifindex int) error {
	pairs := [][2]netip.Addr{{own, to}}
	if f.plan.ipv6() {
		pairs = append(pairs, [2]netip.Addr{network.IPv6Addr(own), network.IPv6Addr(to)})
	}
	for _, p := range pairs {
		err := n.nl.RouteAdd(&netlink.Route{
			LinkIndex: ifindex, Scope: netlink.SCOPE_LINK, Src: p[0].AsSlice(), Dst: single(p[1]),
		})
		if err != nil {
			return fmt.Errorf("add route to %s: %w", p[1], err)
		}
	}
	return nil
}

// single is the network of one address.
func single(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}

// addAddr gives a device an address, which it has at once: one of IPv6 is not looked for first.
func addAddr(n namespace, dev netlink.Link, a netip.Addr) error {
	own := &netlink.Addr{IPNet: single(a)}
	if a.Is6() {
		own.Flags = unix.IFA_F_NODAD
	}
	if err := n.nl.AddrAdd(dev, own); err != nil {
		return fmt.Errorf("add address %s: %w", a, err)
	}
	return nil
}

// startLinux puts rules and qdiscs into the kernel, by this machine's programs.
func (f *fabric) startLinux() error {
	for _, id := range slices.Sorted(maps.Keys(f.linux.qdiscs)) {
		if err := f.startQdisc(id); err != nil {
			return fmt.Errorf("qdisc %q of port %s: %w", f.linux.qdiscs[id], f.plan.ports[id].name,
				err)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(f.plan.exp.NFT)) {
		rules, _ := f.plan.exp.Ruleset(node)
		if _, err := f.machineProgram(node, rules, "nft", "-f", "-"); err != nil {
			return fmt.Errorf("rules of %s: %w", node, err)
		}
	}
	return nil
}

// startQdisc puts the port's qdisc below one that lets through what the link takes: a bucket of one
// frame, so that at most one frame waits in the port itself and the link is never idle while the
// qdisc has packets.
func (f *fabric) startQdisc(id uint32) error {
	port, dev := f.plan.ports[id], fmt.Sprint(stageDevice, id)
	frame := uint64(f.plan.exp.Frame)
	commands := fmt.Sprintf("qdisc add dev %s root handle 1: tbf rate %dbit burst %d limit %d\n"+
		"qdisc add dev %s parent 1:1 handle %s %s\n",
		dev, port.rateBps, frame, frame, dev, stageQdisc, f.linux.qdiscs[id])
	_, err := f.machineProgram(f.plan.nodes[port.node].name, commands, "tc", "-batch", "-")
	return err
}

// packagesOf are Debian's packages of programs of this machine that the lab calls.
var packagesOf = map[string]string{"nft": "nftables", "tc": "iproute2"}

// machineProgram runs a program of this machine at a node, and returns what it prints.
func (f *fabric) machineProgram(node, input string, command ...string) ([]byte, error) {
	const notFound = 127 // as shells have it
	root, err := f.roots.of(node, nil)
	if err != nil {
		return nil, err
	}
	var out, complaints bytes.Buffer
	cmd := root.command("/", command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &complaints
	if err := root.do(cmd.Start); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	err = cmd.Wait()
	switch {
	case err != nil && exitCode(cmd.ProcessState) == notFound:
		return nil, fmt.Errorf("this machine has no program %s: install %s", command[0],
			packagesOf[command[0]])
	case err != nil:
		return nil, fmt.Errorf("%s: %s", command[0], bytes.TrimSpace(complaints.Bytes()))
	}
	return out.Bytes(), nil
}

// readLinux returns what rules and qdiscs have counted, by file.
func (f *fabric) readLinux() (map[string][]byte, error) {
	files := map[string][]byte{}
	var err error
	for node := range f.plan.exp.NFT {
		files[node+".nft"], err = f.machineProgram(node, "", "nft", "list", "ruleset")
		if err != nil {
			return nil, fmt.Errorf("counters of %s's rules: %w", node, err)
		}
	}
	for id := range f.linux.qdiscs {
		node := f.plan.nodes[f.plan.ports[id].node].name
		name := filepath.Base(node + "-" + f.plan.device(id) + ".json")
		files[name], err = f.machineProgram(node, "", "tc", "-s", "-j", "qdisc", "show", "dev",
			fmt.Sprint(stageDevice, id))
		if err != nil {
			return nil, fmt.Errorf("counters of port %s's qdisc: %w", f.plan.ports[id].name, err)
		}
	}
	return files, nil
}

// enableIPv6 lets a device of the thread's namespace have IPv6 addresses, and nothing else that
// IPv6 does by itself: no address of the link, no question for routers. Devices have no neighbours
// to look for (IFF_NOARP), so no address is ever looked for twice either. A router's device
// forwards, but does not join the routers' group, which it would have to tell.
func enableIPv6(device string, forward bool) error {
	settings := [][2]string{
		{"addr_gen_mode", "1"}, {"accept_ra", "0"}, {"router_solicitations", "0"},
		{"disable_ipv6", "0"},
	}
	if forward {
		settings = append(settings, [2]string{"force_forwarding", "1"})
	}
	for _, s := range settings {
		file := filepath.Join("/proc/sys/net/ipv6/conf", device, s[0])
		if err := writeSetting(file, s[1]); err != nil {
			return fmt.Errorf("set up IPv6: %w", err)
		}
	}
	return nil
}

// ipv6 reports whether hosts have IPv6 addresses: where programs could use them, and frames are
// long enough for IPv6.
func (p *plan) ipv6() bool {
	const leastMTU = 1280
	return p.virtualTime && p.exp.OnlyPrograms() && p.exp.Frame >= leastMTU+ethHeader
}

// hasPrograms reports whether hosts send what programs like, fragments among it.
func (p *plan) hasPrograms() bool { return len(p.exp.Programs) > 0 || p.exp.OnlyPrograms() }
