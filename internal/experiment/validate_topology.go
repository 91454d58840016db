// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/network"
)

// fillTopology sets the defaults of the kind, and those of links that default to the values of
// every link.
func (d *decoder) fillTopology(e *Experiment) {
	t := &e.Topology
	if d.has("topology.file") {
		d.importTopology(e)
		return
	}
	d.fillOwnLinks(t)
	k, _ := network.FindKind(t.Kind)
	for _, c := range k.Counts {
		if d.has("topology." + c.Name) {
			continue
		}
		*t.count(c.Name) = c.Default
		if c.SameAs != "" {
			*t.count(c.Name) = *t.count(c.SameAs)
		}
	}
	for _, links := range []struct {
		key           string
		of, byDefault any
	}{
		{"bottleneck", &t.Bottleneck, Bottleneck{Rate: t.Rate, Delay: t.Delay}},
		{"leaf_links", &t.LeafLinks, Uplinks{Rate: t.Rate, Delay: t.Delay, Parallel: 1}},
		{"spine_links", &t.SpineLinks, Uplinks{Rate: t.Rate, Delay: t.Delay, Parallel: 1}},
	} {
		if slices.Contains(k.Links, links.key) {
			d.FillFrom("topology."+links.key,
				reflect.ValueOf(links.of).Elem(), reflect.ValueOf(links.byDefault))
		}
	}
}

// fillOwnLinks has links do what every link does, but for what they say themselves.
func (d *decoder) fillOwnLinks(t *Topology) {
	for i := range t.Links {
		d.FillFrom(fmt.Sprintf("topology.links[%d]", i),
			reflect.ValueOf(&t.Links[i].Disturbance).Elem(), reflect.ValueOf(t.Disturbance))
	}
}

// kindsElsewhere are names that others give to kinds of topologies, in lower case and without
// hyphens, with what to write here.
var kindsElsewhere = map[string]string{
	"fattree":   "the closest is clos, with pods, tors, leaves, spines and hosts",
	"spineleaf": "write leaf-spine",
	"single":    "write star",
}

func (d *decoder) validateTopology(e *Experiment) {
	t := &e.Topology
	if d.has("topology.file") {
		d.validateKeys("a topology out of a file", []string{"file", "failed"})
		if t.Imported != nil {
			d.validateNetwork(e)
		}
		return
	}
	if !d.hasRequired("", "topology") || !d.hasRequired("topology.", "kind") {
		return
	}
	if hint := kindsElsewhere[strings.ReplaceAll(strings.ToLower(t.Kind), "-", "")]; hint != "" {
		d.fail("topology.kind", fmt.Sprintf("unknown kind of topology %q", t.Kind), hint)
		return
	}
	if !d.checkKnown("topology.kind", "kind of topology", t.Kind, network.KindNames()) {
		return
	}
	k, _ := network.FindKind(t.Kind)
	d.validateKeys("a "+t.Kind, slices.Concat(keysOfKind(k), []string{"kind", "rate", "delay",
		"error_rate"}, config.KeysOf(reflect.TypeFor[Disturbance]()), []string{"links", "failed"}))
	for _, c := range k.Counts {
		d.validateCount("topology."+c.Name, t.count(c.Name), c)
	}
	d.validateLink(e, "topology.", t.Rate, t.Delay)
	d.validateLink(e, "topology.bottleneck.", t.Bottleneck.Rate, t.Bottleneck.Delay)
	d.validateUplinks(e, "topology.leaf_links.", &t.LeafLinks)
	d.validateUplinks(e, "topology.spine_links.", &t.SpineLinks)
	d.validateDisturbance(e, "topology.", t.ErrorRate, t.Disturbance)
	d.validateOwnLinks(e)
	d.validateNetwork(e)
}

// validateOwnLinks checks the values of single links.
func (d *decoder) validateOwnLinks(e *Experiment) {
	for i, l := range e.Topology.Links {
		path := fmt.Sprintf("topology.links[%d].", i)
		d.hasRequired(path, "link")
		d.validateLink(e, path, l.Rate, l.Delay)
		d.validateDisturbance(e, path, *cmp.Or(l.ErrorRate, &e.Topology.ErrorRate), l.Disturbance)
	}
}

// validateKeys fails at each key that a topology of this kind does not have.
func (d *decoder) validateKeys(what string, has []string) {
	for _, key := range config.KeysOf(reflect.TypeFor[Topology]()) {
		if d.has("topology."+key) && !slices.Contains(has, key) {
			d.fail("topology."+key, fmt.Sprintf("%s has no %q", what, key), "it has "+inSeries(has))
		}
	}
}

// inSeries joins names as "a, b and c".
func inSeries(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// validateCount checks a number of nodes and forces it into its range, so that too large a network
// is never built.
func (d *decoder) validateCount(path string, n *int, c network.Count) {
	if d.has(path) {
		config.CountInRange(d.Decoder, path, *n, c.Low, c.High)
	}
	*n = min(max(*n, c.Low), c.High) // needed without a key too: the default may be another count
}

// minDelay returns the shortest delay of a link that the engine of the file can have.
func (e *Experiment) minDelay() Duration {
	if e.Engine == EngineSim {
		return leastDelay
	}
	return minDelay
}

// minRate returns the lowest rate of a flow of the file's engine, and maxRate the highest of a
// link.
func (e *Experiment) minRate() Rate {
	if e.Engine == EngineSim {
		return leastRate
	}
	return minRate
}

func (e *Experiment) maxRate() Rate {
	if e.Engine == EngineSim {
		return mostRate
	}
	return maxRate
}

// rateInRange checks a rate of the file.
func (d *decoder) rateInRange(e *Experiment, path string, rate Rate) {
	config.InRange(d.Decoder, path, rate, leastRate, e.maxRate())
	if rate > maxRate {
		e.simOnly = append(e.simOnly, path)
	}
}

// validateLink checks the rate and delay of links that the file gives.
func (d *decoder) validateLink(e *Experiment, path string, rate Rate, delay Duration) {
	if d.has(path + "rate") {
		d.rateInRange(e, path+"rate", rate)
	}
	if d.has(path + "delay") {
		config.InRange(d.Decoder, path+"delay", delay, e.minDelay(), maxDelay)
		if delay < minDelay {
			e.simOnly = append(e.simOnly, path+"delay")
		}
	}
}

func (d *decoder) validateUplinks(e *Experiment, path string, links *Uplinks) {
	d.validateLink(e, path, links.Rate, links.Delay)
	if d.has(path + "parallel") {
		d.validateCount(path+"parallel", &links.Parallel,
			network.Count{Low: 1, High: network.MaxPaths})
	}
}

// validateNetwork checks the network of the topology, and keeps its names for later checks.
func (d *decoder) validateNetwork(e *Experiment) {
	t := &e.Topology
	n := t.Network()
	d.hosts, d.isHost, e.hostRates = n.Hosts, setOfNames(n.Hosts), hostRates(n)
	d.isSwitch = setOfNames(n.Switches)
	if len(n.Links)+len(n.Failed) > network.MaxLinks {
		d.fail("topology",
			fmt.Sprintf("it has more than %d links", network.MaxLinks), "make it smaller")
		return
	}
	d.ports = n.Ports()
	for _, t := range n.Tiers() {
		d.tiers = append(d.tiers, t.Name)
	}
	const hint = "write L0-T3, the names of two nodes that are linked"
	if unknown := n.UnknownLinks(t.Failed); len(unknown) > 0 {
		for _, name := range unknown {
			d.fail("topology.failed", fmt.Sprintf("unknown link %q", name), hint)
		}
		return
	}
	for i, l := range t.Links {
		if len(n.UnknownLinks([]string{l.Link})) > 0 {
			d.fail(fmt.Sprintf("topology.links[%d].link", i),
				fmt.Sprintf("unknown link %q", l.Link), hint)
			return
		}
	}
	routes, err := n.Routes()
	if err == nil {
		err = routes.Validate()
	}
	if err == nil {
		if paths := routes.MostPaths(); paths > network.LinuxPaths {
			d.onlySim(e, "topology", fmt.Sprintf(
				"%d shortest paths lead from one switch to a host: more than %d are in the "+
					"simulator only", paths, network.LinuxPaths))
		}
		return
	}
	if d.has("topology.failed") {
		d.fail("topology.failed", err.Error(), "")
	} else {
		d.fail("topology.file", err.Error(), "") // if path is empty, this is at the topology
	}
}

func setOfNames(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// checkKnownHost is checkKnown for hosts, with a set because they may be many. Without a valid
// network it accepts any host.
func (d *decoder) checkKnownHost(path, name string) bool {
	if d.isHost == nil || d.isHost[name] {
		return true
	}
	if d.isSwitch[name] && !d.unsure["host"] {
		d.fail(path, fmt.Sprintf("%s is a switch", name), "flows are between hosts: "+
			inShort(d.hosts))
		return false
	}
	return d.checkKnown(path, "host", name, d.hosts)
}

// inShort lists the first and the last of names.
func inShort(names []string) string {
	if len(names) < 4 {
		return strings.Join(names, ", ")
	}
	return names[0] + ", " + names[1] + " to " + names[len(names)-1]
}
