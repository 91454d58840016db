// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/internal/fabric"
	"github.com/pcn-linux/pcn/internal/network"
)

// end is one end of a link.
type end struct {
	*checker
	port string
}

func (e end) String() string { return e.name + "'s " + e.port }

// checkLinks compares the two ends of each link whose switches are both there.
func checkLinks(switches []*config) ([]fabric.Finding, error) {
	byName := map[string]*checker{}
	for _, c := range switches {
		if other := byName[c.name]; other != nil {
			return nil, fmt.Errorf("%s and %s are both of switch %q: want a file for each switch, "+
				"with DEVICE_METADATA|localhost|hostname", other.file, c.file, c.name)
		}
		byName[c.name] = newChecker(c)
	}
	for _, c := range switches {
		k := byName[c.name]
		for _, port := range c.ports {
			b, ok := k.neighbor(byName, port)
			if !ok {
				continue
			}
			if err := k.compare(end{k, port}, b); err != nil {
				return nil, err
			}
		}
	}
	var all []fabric.Finding
	for _, c := range switches {
		all = append(all, byName[c.name].done()...)
	}
	return all, nil
}

// neighbor returns the other end of a link, if its switch is there and knows the port.
func (k *checker) neighbor(byName map[string]*checker, port string) (end, bool) {
	to := byName[k.field("DEVICE_NEIGHBOR", port, "name").String()]
	if to == nil {
		return end{}, false
	}
	far := k.field("DEVICE_NEIGHBOR", port, "port").String()
	if to.row("PORT", far) == nil { // a neighbour's port may be named by its alias
		for _, p := range to.ports {
			if to.field("PORT", p, "alias").String() == far {
				far = p
			}
		}
	}
	f := finding{severity: fabric.Mistake, table: "DEVICE_NEIGHBOR", key: port, field: "port",
		show: "no packet shows it; on the switch: show lldp table"}
	if to.row("PORT", far) == nil {
		f.hint = "want a port of " + to.name
		k.find("no port "+port, port, f, "%s leads to %s of %s, which has no such port", port, far,
			to.name)
		return end{}, false
	}
	back, backPort := to.field("DEVICE_NEIGHBOR", far, "name").String(),
		to.field("DEVICE_NEIGHBOR", far, "port").String()
	if back != k.name || backPort != port && backPort != k.field("PORT", port, "alias").String() {
		f.hint = "want each end to name the other"
		k.find("other end "+port, port, f, "%s leads to %s of %s, which leads to %s of %s", port,
			far, to.name, cmp.Or(backPort, "no port"), cmp.Or(back, "no switch"))
		return end{}, false
	}
	return end{to, far}, true
}

// compare checks what must be the same, once for each link, and classes, from each end.
func (k *checker) compare(a, b end) error {
	first := a.name < b.name || a.name == b.name && a.port < b.port
	if first {
		for _, c := range []struct{ field, what, show string }{
			{"mtu", "MTU", "no experiment has two; on the switch: ping -M do -s " +
				"1500, 4000 and 8972 to the neighbour"},
			{"speed", "speed", "the link does not come up; on the switch: show interfaces status"},
			{"fec", "error correction", "the link does not come up; on the switch: show " +
				"interfaces status"},
		} {
			x, y := a.field("PORT", a.port, c.field), b.field("PORT", b.port, c.field)
			if x == nil || y == nil || x.String() == y.String() {
				continue
			}
			k.find(c.field+" "+a.port, a.port, finding{severity: fabric.Mistake, table: "PORT",
				key: a.port, field: c.field, hint: "want the same at both ends", show: c.show},
				"%s has %s %s, and %s, its other end, %s", a, c.what, x, b, y)
		}
		x, fx, err1 := a.cable(a.port)
		y, fy, err2 := b.cable(b.port)
		if err := cmp.Or(err1, err2); err != nil {
			return err
		}
		if fx != nil && fy != nil && x != y {
			k.find("cable "+a.port, a.port, finding{severity: fabric.Mistake, table: "CABLE_LENGTH",
				hint: "want the length of the cable at both ends", show: dropsShow, name: "cable",
				experiment: k.headroomExperiment(a.port, max(x, y), 0, 0)},
				"%s has a cable of %gm, and %s, its other end, %gm", a, x, b, y)
		}
	}
	return k.compareClasses(a, b, first)
}

// compareClasses checks that what b pauses, a stops.
func (k *checker) compareClasses(a, b end, first bool) error {
	sends, err := b.lossless(b.port)
	if err != nil {
		return err
	}
	obeys, err := a.lossless(a.port)
	if err != nil {
		return err
	}
	if a.table("PORT_QOS_MAP") == nil || b.table("PORT_QOS_MAP") == nil {
		return nil
	}
	f := finding{severity: fabric.Mistake, table: "PORT_QOS_MAP", key: a.port, field: "pfc_enable",
		hint: "want the same priorities at both ends", show: dropsShow, name: "pfc-at-one-end",
		experiment: k.headroomExperiment(a.port, 300, 0, 0)}
	if !slices.Equal(sends, obeys) {
		if first {
			k.find(fmt.Sprint("pfc ", obeys, b.name, sends), a.port, f,
				"%s has PFC for %v, and %s, its other end, for %v", a, obeys, b, sends)
		}
		return nil
	}
	for dscp := range 64 {
		if err := k.compareDSCP(a, b, strconv.Itoa(dscp), obeys, f); err != nil {
			return err
		}
	}
	return nil
}

// compareDSCP follows packets of a DSCP from a to b: they wait in a queue of a, and in a group of
// b, whose PAUSE must stop that queue.
func (k *checker) compareDSCP(a, b end, dscp string, enabled []int, f finding) error {
	if !a.oneMap() {
		return nil // the queue depends on the port that packets come by
	}
	here, ok1 := a.mapped("DSCP_TO_TC_MAP", a.port, "dscp_to_tc_map", dscp)
	there, ok2 := b.mapped("DSCP_TO_TC_MAP", b.port, "dscp_to_tc_map", dscp)
	if !ok1 || !ok2 || here == there {
		return nil
	}
	class := func(text string) bool {
		n, err := strconv.Atoi(text)
		return err == nil && slices.Contains(enabled, n)
	}
	if !class(here) && !class(there) {
		return nil
	}
	f.field, f.hint = "dscp_to_tc_map", "want the same class of a DSCP at both ends"
	f.name = "dscp"
	k.find(fmt.Sprint("dscp ", dscp, here, b.name, there), a.port, f,
		"packets of DSCP %s are of class %s at %s, and of class %s at %s, its other end: what one "+
			"pauses, the other goes on sending", dscp, here, a, there, b)
	return nil
}

// oneMap reports whether all ports sort packets into classes by the same map.
func (c *config) oneMap() bool {
	seen := map[string]bool{}
	for _, port := range c.table("PORT_QOS_MAP").keys {
		if f := c.field("PORT_QOS_MAP", port, "dscp_to_tc_map"); f != nil {
			seen[reference(f)] = true
		}
	}
	return len(seen) <= 1
}

// checkNetwork checks the network that several switches make: oversubscription, and circles of
// buffers that may wait for each other. Neighbours that are no switches are hosts.
func checkNetwork(switches []*config) (*fabric.Result, error) {
	n, err := networkOf(switches)
	if n == nil || err != nil {
		return &fabric.Result{}, err
	}
	r, err := fabric.CheckNetwork(n, true)
	if err != nil {
		return nil, err
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		f.File, f.Key, f.Line = switches[0].file, "DEVICE_NEIGHBOR", 1
		if t := switches[0].table("DEVICE_NEIGHBOR"); t != nil {
			f.Line = t.line
		}
		f.Show = "see the metrics deadlock and utilisation"
		f.Experiment, f.Name = networkExperiment(n), "network"
	}
	return r, nil
}

// networkOf returns the network of switches and hosts; nil if there are no two switches or hosts.
func networkOf(switches []*config) (*network.Network, error) {
	known := map[string]bool{}
	for _, c := range switches {
		known[c.name] = true
	}
	hosts := map[string]bool{}
	n := &network.Network{}
	for _, c := range switches {
		n.Switches = append(n.Switches, c.name)
		for _, port := range c.ports {
			l, host, ok, err := c.link(port, known)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			if host {
				hosts[l.B] = true
			} else if l.A > l.B || l.A == l.B {
				continue // the other end has it
			}
			n.Links = append(n.Links, l)
		}
	}
	n.Hosts = slices.Sorted(maps.Keys(hosts))
	if len(n.Switches) < 2 || len(n.Hosts) < 2 || len(n.Links) > network.MaxLinks {
		return nil, nil
	}
	n.NumberParallel()
	return n, nil
}

// link returns the link of a port, and whether it leads to a host. Links to switches whose files
// are not there are left out.
func (c *config) link(
	port string, known map[string]bool,
) (l network.Link, host, ok bool, err error) {
	to := c.field("DEVICE_NEIGHBOR", port, "name").String()
	mbps, hasSpeed, err := c.number("PORT", port, "speed")
	if err != nil || !hasSpeed || mbps <= 0 || to == "" {
		return l, false, false, err
	}
	kind := c.field("DEVICE_NEIGHBOR_METADATA", to, "type").String()
	host = !known[to]
	if host && (kind == "" || strings.Contains(kind, "Router")) && !strings.Contains(
		strings.ToLower(to), "server") {
		return l, false, false, nil
	}
	metres, _, err := c.cable(port)
	if err != nil {
		return l, false, false, err
	}
	return network.Link{A: c.name, B: to, RateBps: uint64(mbps) * 1_000_000,
		DelayNs: max(uint64(metres*nsPerMetre), 1)}, host, true, nil
}

// networkExperiment has the network, and traffic from each host to another.
func networkExperiment(n *network.Network) string {
	number := n.Numbers()
	var text strings.Builder
	fmt.Fprintf(&text, "%d %d %d\\n", len(number), len(n.Switches), len(n.Links))
	for _, name := range n.Switches {
		fmt.Fprintf(&text, "%d ", number[name])
	}
	for _, l := range n.Links {
		fmt.Fprintf(&text, "\\n%d %d %dMbps %gms 0", number[l.A], number[l.B], l.RateBps/1_000_000,
			float64(l.DelayNs)/1e6)
	}
	last := len(n.Hosts) - 1
	return fmt.Sprintf(`name: network
topology: {file: network.txt}
files: {network.txt: "%s\n"}
schemes: [pfc]
engine: sim
duration: 2ms
flows:
  - {name: near, from: H0, to: H%d}
  - {name: far, from: H%d, to: H0}
`, text.String(), last, last)
}
