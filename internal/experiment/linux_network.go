// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/config/lazy"
	"github.com/pcn-linux/pcn/config/scheme"
)

// What of a network is Linux's own stands here: rules of nftables, switches that are routers of
// Linux, and qdiscs of Linux before ports.

// qdiscKinds are the qdiscs of Linux that a port may have. Others have classes, which a line does
// not configure, or are for adapters.
var qdiscKinds = []string{
	"bfifo", "cake", "codel", "dualpi2", "fq", "fq_codel", "fq_pie", "netem", "pfifo", "pie",
	"red", "sfq", "tbf",
}

// qdiscWord is a word of a qdisc's description, which tc takes without quotes.
var qdiscWord = lazy.Regexp(`^[A-Za-z0-9._%/:+-]+$`)

// Ruleset returns the rules of nftables of a host or switch; ok is false if it has none.
func (e *Experiment) Ruleset(node string) (rules string, ok bool) {
	rules, ok = e.NFT[node]
	if ok && isRulesFile(rules) {
		rules = e.inputs[rules]
	}
	return rules, ok
}

// isRulesFile reports whether rules are the name of their file.
func isRulesFile(rules string) bool {
	rules = strings.TrimSpace(rules)
	return rules != "" && !strings.ContainsAny(rules, "{;\n")
}

// Routers are the switches at which Linux forwards, sorted: those with rules of nftables.
func (e *Experiment) Routers() []string {
	switches := e.Topology.Network().Switches
	return slices.DeleteFunc(slices.Sorted(maps.Keys(e.NFT)), func(node string) bool {
		return !slices.Contains(switches, node)
	})
}

// Qdiscs are the qdiscs of Linux that switches' ports have before their own, by port.
func (e *Experiment) Qdiscs() map[string]string {
	n, qdiscs := e.Topology.Network(), map[string]string{}
	own := make([]string, len(n.Links))
	for _, l := range e.Topology.Links {
		for _, i := range n.LinksNamed(l.Link) {
			own[i] = l.Qdisc
		}
	}
	for i, l := range n.Links {
		qdisc := e.Switch.Qdisc
		if own[i] != "" {
			qdisc = own[i]
		}
		for end, port := range l.Ports() {
			node := [2]string{l.A, l.B}[end]
			if qdisc != "" && slices.Contains(n.Switches, node) {
				qdiscs[port] = qdisc
			}
		}
	}
	return qdiscs
}

// validateLinuxNetwork checks rules and qdiscs.
func (d *decoder) validateLinuxNetwork(e *Experiment) {
	d.needsLinux(e, "nft")
	for _, node := range slices.Sorted(maps.Keys(e.NFT)) {
		d.validateRuleset(e, node)
	}
	qdiscs := map[string]string{"switch.qdisc": e.Switch.Qdisc}
	for i, l := range e.Topology.Links {
		qdiscs[fmt.Sprintf("topology.links[%d].qdisc", i)] = l.Qdisc
	}
	var given []string
	for _, path := range slices.Sorted(maps.Keys(qdiscs)) {
		if d.has(path) {
			d.validateQdisc(path, qdiscs[path])
			given = append(given, path)
		}
	}
	if len(given) > 0 {
		d.validateDropping(e, given[0])
	}
	d.validateQdiscRates(e)
}

// validateDropping checks that nothing needs a network whose switches have the lab's own queues: at
// path is the first qdisc of Linux.
func (d *decoder) validateDropping(e *Experiment, path string) {
	d.needsLinux(e, path)
	d.needsLossy(e, path, "a qdisc of Linux drops, and pauses nobody")
	if d.chosen.Schemes != nil {
		return // see CheckEngine
	}
	for i, name := range e.Schemes {
		if !scheme.IsKernelControl(name) {
			d.fail(fmt.Sprintf("schemes[%d]", i), fmt.Sprintf("%s needs marks of the lab's own "+
				"ports, and at %q packets wait in a qdisc of Linux", name, keyOf(path)),
				"choose one of Linux's controls: "+inSeries(scheme.KernelControls()))
		}
	}
}

func (d *decoder) validateRuleset(e *Experiment, node string) {
	path := "nft." + node
	if !d.isHost[node] && !d.isSwitch[node] {
		d.checkKnown(path, "host or switch", node, slices.Concat(d.hosts, d.switches()))
		return
	}
	if d.isSwitch[node] {
		d.needsLossy(e, path, "a switch with rules is a router, which pauses nobody")
	}
	if rules := e.NFT[node]; isRulesFile(rules) {
		if _, text, ok := d.attachedText(path, e, rules); ok {
			e.setInput(rules, text)
		}
	}
}

// needsLossy fails if the key at path is given and PFC is on for a scheme.
func (d *decoder) needsLossy(e *Experiment, path, why string) {
	if !e.Switch.PFC.Off {
		d.fail(path, why, "write switch: {pfc: {off: true}}")
	}
}

func (d *decoder) validateQdisc(path, qdisc string) {
	words := strings.Fields(qdisc)
	if len(words) == 0 {
		d.fail(path, "the qdisc has no name", "write fq_codel, or another of "+
			inSeries(qdiscKinds))
		return
	}
	d.checkKnown(path, "qdisc", words[0], qdiscKinds)
	for _, word := range words {
		if !qdiscWord().MatchString(word) {
			d.fail(path, fmt.Sprintf("%q is no word of a qdisc", word),
				"write it as tc takes it, such as fq_codel limit 1000")
		}
	}
}

// validateQdiscRates fails where the rate of a port with a qdisc of Linux changes: what shapes it
// does not follow.
func (d *decoder) validateQdiscRates(e *Experiment) {
	if len(e.LinkEvents) == 0 || e.Topology.Kind == "" && e.Topology.Imported == nil {
		return
	}
	qdiscs := e.Qdiscs()
	for i, l := range e.LinkEvents {
		if qdiscs[l.Port] != "" {
			d.fail(fmt.Sprintf("links[%d].link", i), fmt.Sprintf("port %s has a qdisc of Linux, "+
				"whose rate can't change", l.Port), "remove the event, or the port's qdisc")
		}
	}
}

// setInput keeps the text of a file that the experiment names.
func (e *Experiment) setInput(name, text string) {
	if e.inputs == nil {
		e.inputs = map[string]string{}
	}
	e.inputs[name] = text
}

// checkQdiscs fails if a scheme that the command line chose can't have the file's qdiscs.
func (e *Experiment) checkQdiscs() error {
	if len(e.Qdiscs()) == 0 {
		return nil
	}
	for _, name := range e.Schemes {
		if !scheme.IsKernelControl(name) {
			return fmt.Errorf("experiment %s has qdiscs of Linux, and scheme %s needs marks of "+
				"the lab's own ports: choose one of Linux's controls, %s", e.Name, name,
				inSeries(scheme.KernelControls()))
		}
	}
	return nil
}
