// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// What a topology can be made of.
const (
	maxHosts    = 62 // at one switch
	maxParallel = MaxPaths
)

// fillTopology sets the defaults of the kind, and those that depend on those of every link.
func (d *decoder) fillTopology(e *Experiment) {
	t := &e.Topology
	if d.has("topology.file") {
		d.importTopology(e)
		return
	}
	k := kinds[t.Kind]
	for _, c := range k.counts {
		if n := t.count(c.key); !d.has("topology." + c.key) {
			*n = c.byDefault
		}
	}
	if t.Kind == "dumbbell" && !d.has("topology.receivers") {
		t.Receivers = t.Senders
	}
	for _, links := range []struct {
		key           string
		of, byDefault any
	}{
		{"bottleneck", &t.Bottleneck, Bottleneck{Rate: t.Rate, Delay: t.Delay}},
		{"leaf_links", &t.LeafLinks, Uplinks{Rate: t.Rate, Delay: t.Delay, Parallel: 1}},
		{"spine_links", &t.SpineLinks, Uplinks{Rate: t.Rate, Delay: t.Delay, Parallel: 1}},
	} {
		if slices.Contains(k.links, links.key) {
			d.FillFrom("topology."+links.key, reflect.ValueOf(links.of).Elem(), reflect.ValueOf(links.byDefault))
		}
	}
}

func (d *decoder) validateTopology(e *Experiment) {
	t := &e.Topology
	if d.has("topology.file") {
		d.validateKeys("a topology out of a file", []string{"file", "failed"})
		if t.Imported != nil {
			d.validateNetwork(t)
		}
		return
	}
	if !d.required("", "topology") || !d.required("topology.", "kind") || !d.known("topology.kind", "kind of topology", t.Kind, topologyKinds()) {
		return
	}
	k := kinds[t.Kind]
	d.validateKeys("a "+t.Kind, append(k.keys(), "kind", "rate", "delay", "failed"))
	for _, c := range k.counts {
		d.validateCount("topology."+c.key, t.count(c.key), c)
	}
	d.validateLink("topology.", t.Rate, t.Delay)
	d.validateLink("topology.bottleneck.", t.Bottleneck.Rate, t.Bottleneck.Delay)
	d.validateUplinks("topology.leaf_links.", &t.LeafLinks)
	d.validateUplinks("topology.spine_links.", &t.SpineLinks)
	d.validateNetwork(t)
}

// validateKeys fails at what a topology does not have.
func (d *decoder) validateKeys(what string, has []string) {
	for _, key := range keysOf(reflect.TypeFor[Topology]()) {
		if d.has("topology."+key) && !slices.Contains(has, key) {
			d.fail("topology."+key, fmt.Sprintf("%s has no %q", what, key), "it has "+inSeries(has))
		}
	}
}

// inSeries writes a, b and c.
func inSeries(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// validateCount checks a number of nodes. One that is out of range is not built.
func (d *decoder) validateCount(path string, n *int, c count) {
	if d.has(path) {
		countInRange(d, path, *n, c.low, c.high)
	}
	*n = min(max(*n, c.low), c.high) // it may follow another count
}

// validateLink checks the rate and delay of links that the file gives.
func (d *decoder) validateLink(path string, rate Rate, delay Duration) {
	if d.has(path + "rate") {
		inRange(d, path+"rate", rate, minRate, maxRate)
	}
	if d.has(path + "delay") {
		inRange(d, path+"delay", delay, minDelay, maxDelay)
	}
}

func (d *decoder) validateUplinks(path string, links *Uplinks) {
	d.validateLink(path, links.Rate, links.Delay)
	if d.has(path + "parallel") {
		d.validateCount(path+"parallel", &links.Parallel, count{low: 1, high: maxParallel})
	}
}

// validateNetwork checks what the topology comes to, and keeps its names.
func (d *decoder) validateNetwork(t *Topology) {
	n := t.Network()
	d.hosts, d.isHost = n.Hosts, setOfNames(n.Hosts)
	if len(n.Links)+len(n.Failed) > maxLinks {
		d.fail("topology", fmt.Sprintf("it has more than %d links", maxLinks), "make it smaller")
		return
	}
	d.ports = n.Ports()
	for _, t := range n.Tiers() {
		d.tiers = append(d.tiers, t.Name)
	}
	if !d.validateFailed(t.Failed, n.Failed) {
		return
	}
	routes, err := n.Routes()
	if err == nil {
		err = routes.check()
	}
	if err == nil {
		return
	}
	if d.has("topology.failed") {
		d.fail("topology.failed", err.Error(), "")
	} else {
		d.fail("topology.file", err.Error(), "") // or the topology itself
	}
}

// validateFailed reports whether each name is that of a link.
func (d *decoder) validateFailed(names []string, failed []Link) bool {
	known := make(map[string]bool)
	for _, l := range failed {
		for _, name := range l.names() {
			known[name] = true
		}
	}
	all := true
	for _, name := range names {
		if !known[name] {
			d.fail("topology.failed", fmt.Sprintf("unknown link %q", name), "write L0-T3, the names of two nodes that are linked")
			all = false
		}
	}
	return all
}

// knownHost is known for hosts, of which there may be many. Without a network all may be known.
func (d *decoder) knownHost(path, name string) bool {
	return d.isHost == nil || d.isHost[name] || d.known(path, "host", name, d.hosts)
}
