// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/pcn-linux/pcn/config/lazy"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/loader/ns"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
	"github.com/pcn-linux/pcn/tc"
)

// An NP-ECN port is a veth pair in front of an interface (tc/bpf/port.bpf.c). One of its ends has
// the qdisc, and the program behind the other marks. A change of parameters makes a second pair,
// leads the interface's packets there, and removes the first. So pairs, kinds of qdisc and pins
// have a generation: a or b, or c behind a change that was killed.

// Settings of an NP-ECN port that tell where it is.
const (
	portKey  = "port"
	qdiscKey = "qdisc"
)

const (
	portsMap    = "ports" // of the qdisc
	portMTU     = 65535   // the interface's own decides
	returnEnd   = "r"     // the other end's name ends so
	qdiscPin    = "qdisc_"
	returnPin   = "from_port_"
	generations = "abc"
)

// portName matches the end with the qdisc: the index of the interface, and the generation.
var portName = lazy.Regexp(`^pcnsw[0-9]+[abc]$`)

// errNoQdisc says what a kernel lacks, and what to do instead.
var errNoQdisc = fmt.Errorf("NP-ECN needs a kernel with CONFIG_NET_SCH_BPF (6.16+), which this "+
	"one lacks: --min 0B over HTB or TBF marks nearly the same packets, those that find others "+
	"waiting: %w", loader.ErrNotSupported)

func (h *Host) applyNPECN(
	t *transaction, s *survey, name string, p *SwitchPort,
) (what string, err error) {
	out, err := interfaceIndex(p.Interface)
	if err != nil {
		return "", err
	}
	c := component{name: name, settings: p.npecnSettings()}
	f := h.folder(c.folderIn(s.here))
	old, err := f.open()
	if err != nil {
		return "", err
	}
	defer old.close()
	now, err := f.state()
	if err != nil {
		return "", err
	}
	fingerprint, err := portFingerprint()
	if err != nil {
		return "", err
	}
	ours, err := ourLinks(h.root)
	if err != nil {
		return "", err
	}
	want := state{c.settings, fingerprint, []Namespace{s.here}, nil}
	if now != nil && portIsWhole(old, now, out, ours) && withoutPlace(now).runs(want) {
		return Kept, nil
	}
	g := freeGeneration(old)
	pair := vethPair{fmt.Sprintf("pcnsw%d%s", out, g)}
	single, err := loadPortQdisc(p.NPECN, s.here, out, g)
	if err != nil {
		return "", err
	}
	t.after = append(t.after, func() { single.Close() })
	o, err := t.preparePort(single, pair, p.Interface, out, g)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	o.fingerprint = fingerprint
	want.Settings = append(want.Settings, Setting{portKey, pair.name},
		Setting{qdiscKey, single.Kind()})
	what = Changed
	if now == nil && len(old.links) == 0 {
		what = Added
	}
	return what, t.apply(f, c, o, want)
}

// freeGeneration returns a generation of which nothing is pinned.
func freeGeneration(p *pinned) string {
	for _, g := range generations {
		if p.links[qdiscPin+string(g)] == nil {
			return string(g)
		}
	}
	return generations[:1] // not reached: a change leaves at most two
}

func (p *SwitchPort) npecnSettings() []Setting {
	return []Setting{
		{"interfaces", p.Interface}, {"marking", "npecn"}, {"rate", p.NPECN.Rate.String()},
		{"buffer", p.NPECN.Buffer.String()},
	}
}

// withoutPlace returns the state without what tells where the port is.
func withoutPlace(s *state) state {
	isPlace := func(s Setting) bool { return s.Key == portKey || s.Key == qdiscKey }
	return state{slices.DeleteFunc(slices.Clone(s.Settings), isPlace), s.Fingerprint, s.Namespaces,
		s.Types}
}

// portFingerprint returns a hash of all programs of a port.
func portFingerprint() (string, error) {
	qdisc, err := npecn.SingleFingerprint()
	if err != nil {
		return "", err
	}
	programs, err := tc.PortFingerprint()
	return qdisc + " with " + programs, err
}

// portIsWhole reports whether all parts of a running port are there, and lead packets from the
// interface with this index to it.
func portIsWhole(p *pinned, s *state, out int, ours linkIDs) bool {
	const links = 3 // the qdisc's kind, to_port and from_port
	if len(p.links) != links {
		return false
	}
	for pin, l := range p.links {
		a := attachment{}
		if whereOf(pin) != "" {
			a.device = out
		}
		if isDetached(l) || !a.isAt(l, ours) {
			return false
		}
	}
	q, err := rootQdisc(s.setting(portKey))
	return err == nil && q.Type() == s.setting(qdiscKey)
}

// loadPortQdisc loads the qdisc under a kind that no other port of the machine has: qdiscs have one
// list for all network namespaces.
func loadPortQdisc(n *NPECN, in Namespace, out int, g string) (*npecn.Single, error) {
	single, err := npecn.LoadSingle(npecn.SingleOptions{
		Kind:    fmt.Sprintf("pcn%x_%d%s", in.Cookie&0xffff, out, g),
		RateBps: uint64(n.Rate), BufferBytes: uint64(n.Buffer),
	})
	if errors.Is(err, loader.ErrNotSupported) && loader.HaveQdisc() != nil {
		return nil, errNoQdisc
	}
	return single, err
}

// preparePort makes all of a port but the links.
func (t *transaction) preparePort(
	single *npecn.Single, pair vethPair, device string, out int, g string,
) (*object, error) {
	registered, err := single.Register()
	if err != nil {
		return nil, err
	}
	t.after = append(t.after, func() { registered.Close() })
	if err := pair.remove(); err != nil { // what a killed change left
		return nil, err
	}
	if err := t.do(pair.add, pair.remove); err != nil {
		return nil, err
	}
	port, back, err := pair.setUp(single.Kind())
	if err != nil {
		return nil, err
	}
	programs, err := tc.LoadPort(tc.PortOptions{Port: port, Out: out})
	if err != nil {
		return nil, err
	}
	to := programs.ToPort()
	o := &object{
		programs: programs.Programs(), maps: maps.Clone(programs.Maps()), close: programs.Close,
	}
	maps.Copy(o.maps, single.Maps())
	t.after = append(t.after, func() { programs.Close() })
	o.attachments = []attachment{
		{
			pin:    qdiscPin + g,
			attach: func(linkIDs) (link.Link, error) { return registered, nil },
		},
		tcAttachment(returnPin+g, programs, back, programs.FromPort()),
		// last: from now on the interface's packets go there
		tcAttachment(pinAt(device, to.Program), programs, out, to),
	}
	return o, nil
}

// vethPair is named by its end with the qdisc.
type vethPair struct{ name string }

func (v vethPair) add() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Group = v.name, portMTU, npecn.SinglePort
	err := netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs, PeerName: v.name + returnEnd, PeerMTU: portMTU,
	})
	if err != nil {
		return fmt.Errorf("add veth %s: %w", v.name, err)
	}
	return nil
}

func (v vethPair) remove() error {
	l, err := netlink.LinkByName(v.name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(l)
	}
	if err != nil {
		return fmt.Errorf("remove veth %s: %w", v.name, err)
	}
	return nil
}

// setUp makes the pair a port with a qdisc of this kind, which keeps packets in order and sends
// none of its own. It returns the indexes of the end with the qdisc and of the other.
func (v vethPair) setUp(kind string) (port, back int, err error) {
	var indexes [2]int
	for i, name := range []string{v.name, v.name + returnEnd} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return 0, 0, fmt.Errorf("interface %s: %w", name, err)
		}
		indexes[i] = l.Attrs().Index
		const silent = "1"
		file := "/proc/sys/net/ipv6/conf/" + name + "/disable_ipv6"
		if err := os.WriteFile(file, []byte(silent), 0); err != nil && !os.IsNotExist(err) {
			return 0, 0, fmt.Errorf("keep IPv6 off %s: %w", name, err)
		}
		if err := errors.Join(netlink.LinkSetARPOff(l), netlink.LinkSetUp(l)); err != nil {
			return 0, 0, fmt.Errorf("set up %s: %w", name, err)
		}
	}
	if err := ns.ReceiveOnOneCPU(v.name + returnEnd); err != nil {
		return 0, 0, err
	}
	err = netlink.QdiscAdd(&netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: indexes[0], Parent: netlink.HANDLE_ROOT},
		QdiscType:  kind,
	})
	if err != nil {
		return 0, 0, fmt.Errorf("make %s the root qdisc of %s: %w", kind, v.name, err)
	}
	return indexes[0], indexes[1], nil
}

// removeUnusedPorts removes the veth pairs of this namespace that no component names: those of a
// port that was removed or changed, also by a process that was killed.
func (h *Host) removeUnusedPorts(here Namespace) error {
	names, err := h.components()
	if err != nil {
		return err
	}
	var used []string
	for _, name := range names {
		if _, cookie := splitFolder(name); !isSwitchPort(name) || cookie != here.Cookie {
			continue
		}
		s, err := h.folder(name).state()
		if err != nil {
			return err
		}
		if s != nil {
			used = append(used, s.setting(portKey))
		}
	}
	return removePortsBut(used...)
}

// removePorts removes all veth pairs of this namespace.
func removePorts() error { return removePortsBut() }

// removeAllPorts removes the veth pairs of all namespaces that can be entered.
func removeAllPorts() error {
	all, _, err := allNamespaces()
	if err != nil {
		return err
	}
	for _, n := range all {
		err := inNamespaceOf(n.path, removePorts)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // some end meanwhile
			return fmt.Errorf("network namespace %s: %w", n, err)
		}
	}
	return nil
}

func removePortsBut(keep ...string) error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	for _, l := range links {
		name := l.Attrs().Name
		if l.Type() == "veth" && portName().MatchString(name) && !slices.Contains(keep, name) {
			if err := (vethPair{name}).remove(); err != nil {
				return err
			}
		}
	}
	return nil
}

// readPort adds what the qdisc counted.
func readPort(ports *ebpf.Map, into map[string]uint64) error {
	s, err := npecn.ReadSingle(ports)
	if err != nil {
		return err
	}
	into["dropped"] = s.DroppedPackets
	return nil
}
