// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

// SwitchPort is an interface of this host that marks what it sends, as a switch port does. It has
// either WRED or NPECN.
type SwitchPort struct {
	Interface string
	// WRED marks by the queue of the interface's root qdisc. Its Interfaces are not used.
	WRED *WRED
	// NPECN marks by a queue of its own.
	NPECN *NPECN
}

// NPECN is a port that marks a packet if it leaves others behind (NSDI'20, Fig. 7). It has no PFC.
type NPECN struct {
	// Rate is the rate at which the port sends. It should be a little below the interface's. 1Mbps
	// to 800Gbps. Required.
	Rate config.Rate
	// Buffer is the longest queue. 10KB to 1GB, default 1MB.
	Buffer config.Bytes
}

const (
	minPortBuffer     = config.Bytes(10e3)
	defaultPortBuffer = config.Bytes(1e6)
)

// check fails for a port that can't be set up.
func (p *SwitchPort) check() error {
	switch {
	case (p.WRED == nil) == (p.NPECN == nil):
		return fmt.Errorf("switch port %s: want either WRED or NP-ECN", p.Interface)
	case p.NPECN != nil:
		return p.NPECN.check()
	default:
		return p.WRED.check()
	}
}

func (n *NPECN) check() error {
	if n.Rate < loader.MinSendRateBps || n.Rate > loader.MaxRateBps {
		return fmt.Errorf("rate %s: want %s to %s, a little below the interface's", n.Rate,
			config.Rate(loader.MinSendRateBps), config.Rate(loader.MaxRateBps))
	}
	if n.Buffer < minPortBuffer || n.Buffer > maxQueue {
		return fmt.Errorf("buffer %s: want %s to %s", n.Buffer, minPortBuffer, maxQueue)
	}
	return nil
}

// switchPrefix begins the names of the components that are switch ports. The interface follows;
// a name in the BPF file system has no dot, and an interface's has no colon.
const switchPrefix = "switch_"

func switchComponent(name string) string {
	return switchPrefix + strings.ReplaceAll(name, ".", ":")
}

func isSwitchPort(component string) bool { return strings.HasPrefix(component, switchPrefix) }

// commandOf returns the command that has ups and downs of the component.
func commandOf(component string) string {
	if isSwitchPort(component) {
		return "pcn host switch"
	}
	return "pcn host"
}

// afterRename says what to do when the interface of a component has another name.
func afterRename(component, old, now string) string {
	if isSwitchPort(component) {
		return fmt.Sprintf("run pcn host switch down %s, and up %s", old, now)
	}
	return "change the configuration, and run pcn host up"
}

// SwitchUp makes interfaces of this host switch ports, or changes the parameters of those that are.
// They are those of the calling thread's network namespace. Other ports, and what Up has set up,
// stay. If it fails, the host is as it was.
func (h *Host) SwitchUp(ctx context.Context, ports []SwitchPort) (changes []Change, err error) {
	for i := range ports {
		if n := ports[i].NPECN; n != nil {
			n.Buffer = cmp.Or(n.Buffer, defaultPortBuffer)
		}
		if err := ports[i].check(); err != nil {
			return nil, err
		}
	}
	unlock, err := lock(ctx, h.root)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := HaveKernel(); err != nil {
		return nil, err
	}
	s, err := h.survey()
	if err != nil {
		return nil, err
	}
	var t transaction
	defer func() {
		if err = t.end(err); err == nil {
			err = h.removeUnusedPorts(s.here)
		}
	}()
	if err := t.makeFolder(folder{h.root}); err != nil {
		return nil, fmt.Errorf("make %s: %w", h.root, err)
	}
	for i := range ports {
		name := switchComponent(ports[i].Interface)
		what, err := h.applyPort(&t, s, name, &ports[i])
		if err != nil {
			return nil, err
		}
		changes = append(changes, Change{Component: name, What: what})
	}
	return changes, nil
}

func (h *Host) applyPort(
	t *transaction, s *survey, name string, p *SwitchPort,
) (what string, err error) {
	if p.NPECN != nil {
		return h.applyNPECN(t, s, name, p)
	}
	c, err := wredPort(name, p)
	if err != nil {
		return "", err
	}
	objects, err := h.load(t, s, []component{*c})
	if err != nil {
		return "", err
	}
	change, err := h.applyComponent(t, s, *c, objects[0])
	return change.What, err
}

// SwitchDown makes interfaces of the calling thread's network namespace ordinary ones again: all of
// them if none is named. It fails for an interface that is no switch port.
func (h *Host) SwitchDown(ctx context.Context, interfaces ...string) (changes []Change, err error) {
	unlock, err := lock(ctx, h.root)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := h.survey()
	if err != nil {
		return nil, err
	}
	remove, err := portFolders(s.folders, s.here, interfaces)
	if err != nil {
		return nil, err
	}
	var t transaction
	defer func() {
		if err = t.end(err); err == nil {
			err = h.removeUnusedPorts(s.here)
		}
	}()
	if changes, err = h.removeAll(&t, s, remove); err != nil {
		return nil, err
	}
	return changes, h.removeRoot()
}

// portFolders returns those folders that are the switch ports of a namespace: all of them if no
// interface is named.
func portFolders(folders []string, in Namespace, interfaces []string) ([]string, error) {
	if len(interfaces) == 0 {
		return slices.DeleteFunc(slices.Clone(folders), func(name string) bool {
			component, cookie := splitFolder(name)
			return !isSwitchPort(component) || cookie != in.Cookie
		}), nil
	}
	var found []string
	for _, name := range interfaces {
		folder := in.folderOf(switchComponent(name))
		if !slices.Contains(folders, folder) {
			return nil, fmt.Errorf("%s is no switch port: see pcn host switch status", name)
		}
		found = append(found, folder)
	}
	return found, nil
}

// SwitchPortStatus describes a switch port.
type SwitchPortStatus struct {
	ComponentStatus
	Interface string `json:"interface"`
	// Qdisc is the kind of the qdisc whose queue decides. Empty if there is none.
	Qdisc string `json:"qdisc"`
	// QueueBytes is that queue now.
	QueueBytes uint64 `json:"queue_bytes"`
}

// Superpackets is the counter of packets that are several of the wire. Switch ports mark each as
// one, which distorts the marking.
const Superpackets = "superpackets"

// SwitchStatus reads the switch ports of the calling thread's network namespace: all of them if no
// interface is named.
func (h *Host) SwitchStatus(interfaces ...string) ([]SwitchPortStatus, error) {
	names, err := h.components()
	if err != nil {
		return nil, err
	}
	here, err := currentNamespace()
	if err != nil {
		return nil, err
	}
	if names, err = portFolders(names, here, interfaces); err != nil {
		return nil, err
	}
	ports := []SwitchPortStatus{}
	for _, name := range names {
		c, err := h.componentStatus(here, name)
		if err != nil {
			return nil, err
		}
		encoded := strings.TrimPrefix(c.Name, switchPrefix)
		p := SwitchPortStatus{
			ComponentStatus: *c, Interface: strings.ReplaceAll(encoded, ":", "."),
		}
		p.readQueue()
		ports = append(ports, p)
	}
	return ports, nil
}

// readQueue reads the queue that decides, and reports a problem if there is none.
func (s *SwitchPortStatus) readQueue() {
	device := s.Interface
	if port := settingIn(s.Settings, portKey); port != "" {
		device = port
	}
	q, err := rootQdisc(device)
	if err != nil {
		s.Problems = append(s.Problems, err.Error())
		return
	}
	s.Qdisc = q.Type()
	if stats := q.Attrs().Statistics; stats != nil && stats.Queue != nil {
		s.QueueBytes = uint64(stats.Queue.Backlog)
	}
	if want := settingIn(s.Settings, qdiscKey); want != "" && want != s.Qdisc {
		s.Problems = append(s.Problems, fmt.Sprintf("the root qdisc of %s is %s, not %s: "+
			"run pcn host switch up", device, s.Qdisc, want))
	} else if err := keepsQueue(device, s.Qdisc); want == "" && err != nil {
		s.Problems = append(s.Problems, err.Error())
	}
}

// OK reports whether the port marks as it should.
func (s *SwitchPortStatus) OK() bool { return len(s.Problems) == 0 }

// rootQdisc returns the root qdisc of an interface, with its statistics.
func rootQdisc(device string) (netlink.Qdisc, error) {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w: see ip link", device, err)
	}
	qdiscs, err := netlink.QdiscList(l)
	if err != nil {
		return nil, fmt.Errorf("read the qdiscs of %s: %w", device, err)
	}
	for _, q := range qdiscs {
		if q.Attrs().Parent == netlink.HANDLE_ROOT {
			return q, nil
		}
	}
	return &netlink.GenericQdisc{QdiscType: "noqueue"}, nil
}

// queueless are the kinds of root qdisc whose backlog is always 0: they keep no queue, or keep it
// in their children or by CPU.
var queueless = []string{"noqueue", "mq", "mqprio", "taprio", "pfifo_fast"}

func keepsQueue(device, kind string) error {
	if !slices.Contains(queueless, kind) {
		return nil
	}
	return fmt.Errorf("the root qdisc of %s is %s, which shows no queue to mark by: "+
		"tc qdisc replace dev %s root tbf rate RATE burst 64kb limit 1mb, "+
		"with a rate a little below the link's", device, kind, device)
}

func wredPort(name string, p *SwitchPort) (*component, error) {
	q, err := rootQdisc(p.Interface)
	if err != nil {
		return nil, err
	}
	if err := keepsQueue(p.Interface, q.Type()); err != nil {
		return nil, err
	}
	w := *p.WRED
	return tcComponent(name, []string{p.Interface}, append([]Setting{{"marking", "wred"}},
		w.settings()...), func(
		old map[string]*ebpf.Map, _ map[string]*loader.Control,
	) (tc.Object, error) {
		return w.load(old)
	})
}

// portCounts adds what the qdisc of an NP-ECN port counted.
func portCounts(p *pinned, into map[string]uint64) error {
	m := p.maps[portsMap]
	if m == nil {
		return nil
	}
	return readPort(m, into)
}

func interfaceIndex(name string) (int, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return 0, fmt.Errorf("interface %s: %w: see ip link", name, err)
	}
	return device.Index, nil
}
