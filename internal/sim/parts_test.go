// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// runInParts runs an experiment on so many threads.
func runInParts(
	t *testing.T, e *experiment.Experiment, scheme string, threads int,
) *result.Run {
	t.Helper()
	run, err := simulator.RunWith(t.Context(), e, scheme, func(float64) {},
		Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// sameRuns fails if two runs are not the same.
func sameRuns(t *testing.T, got, want *result.Run) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	a, b := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
	for i := range a.NumField() {
		name := a.Type().Field(i).Name
		x, y := a.Field(i), b.Field(i)
		if reflect.DeepEqual(x.Interface(), y.Interface()) {
			continue
		}
		if x.Kind() != reflect.Slice {
			t.Errorf("%s = %+v, want %+v", name, x, y)
			continue
		}
		if x.Len() != y.Len() {
			t.Errorf("%s has %d rows, want %d", name, x.Len(), y.Len())
		}
		for k := range min(x.Len(), y.Len()) {
			if !reflect.DeepEqual(x.Index(k).Interface(), y.Index(k).Interface()) {
				t.Errorf("%s[%d] = %+v, want %+v", name, k, x.Index(k), y.Index(k))
				break
			}
		}
	}
}

// All experiments that are shipped have the same results on any number of threads.
func TestShippedInParts(t *testing.T) {
	for _, name := range experiments.Names() {
		e, err := experiments.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		const short = 500 * experiment.Microsecond
		e.Duration = min(e.Duration, max(e.Sample, short/e.Sample*e.Sample))
		for _, scheme := range e.Schemes {
			if s, err := e.Scheme(scheme); err != nil || s.Object == nil {
				continue // it is Linux's own
			}
			t.Run(fmt.Sprintf("%s, %s", name, scheme), func(t *testing.T) {
				want := runInParts(t, e, scheme, 1)
				for _, threads := range []int{2, 4, 8} {
					sameRuns(t, runInParts(t, e, scheme, threads), want)
				}
			})
		}
	}
}

// inStep is a network where much happens at the same ns: all links are equal, so are flows, and a
// link's delay is that of two frames.
// From all pods they go to one, whose switches pause the others; and between all.
const inStep = `
name: in-step
engine: sim
topology:
  {kind: clos, pods: 4, tors: 2, leaves: 2, spines: 2, hosts: 3, rate: 10Gbps, delay: 1600ns}
frame: 1000B
switch: {buffer: 2MB, pfc: {xoff: 30KB, xon: 28KB}}
schemes: [SCHEME]
duration: 300us
sample: 20us
seed: 1
flows:
  - {name: I, from: H0..H8, to: H23}
  - {name: A, from: H0..H2, to: H4}
  - {name: B, from: H12..H14, to: H4}
  - {name: C, from: H12..H14, to: H16}
  - {name: D, from: H6..H8, to: H16}
  - {name: E, from: H6..H8, to: H10}
  - {name: F, from: H0..H2, to: H10}
  - {name: S, from: H12..H14, to: H1, size: 30KB, start: 50us}
bursts:
  - {name: U, from: H12..H17, to: H22, size: 20KB, at: 100us}
`

// Where many events happen at the same ns they keep their order on any number of threads.
func TestInStepInParts(t *testing.T) {
	schemes := []string{"pfc", "dcqcn", "qcn", "hpcc", "timely", "pcn", "dctcp_rate"}
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) {
			e := parse(t, strings.Replace(inStep, "SCHEME", scheme, 1))
			want := runInParts(t, e, scheme, 1)
			if scheme == "pfc" && len(want.PFC) == 0 {
				t.Error("no port was paused")
			}
			for _, threads := range []int{2, 3, 4, 8} {
				if parts := len(worldsOf(t, e, scheme, threads).worlds()); parts != threads {
					t.Errorf("%d parts, want %d", parts, threads)
				}
				sameRuns(t, runInParts(t, e, scheme, threads), want)
			}
		})
	}
}

// Classes have weights and thresholds of their switch's free buffer.
func TestClassesInParts(t *testing.T) {
	file := strings.NewReplacer("SCHEME", "dcqcn",
		"buffer: 2MB,", "buffer: 2MB, schedule: wrr, classes: [{priority: 0, weight: 2}, "+
			"{priority: 1, lossy: true, alpha: 1/4, weight: 1}],",
		"to: H23}", "to: H23, priority: 1}", "to: H4}", "to: H4, priority: 1}").Replace(inStep)
	e := parse(t, file)
	want := runInParts(t, e, "dcqcn", 1)
	lost := func(p result.Port) bool { return p.DroppedPackets() > 0 }
	if !slices.ContainsFunc(want.Ports, lost) {
		t.Error("the lossy class lost nothing")
	}
	for _, threads := range []int{2, 4, 8} {
		sameRuns(t, runInParts(t, e, "dcqcn", threads), want)
	}
}

// worldsOf lays out an experiment in so many parts or fewer.
func worldsOf(t *testing.T, e *experiment.Experiment, scheme string, parts int) *world {
	t.Helper()
	return worldsWith(t, e, scheme, Options{Threads: parts})
}

// worldsWith lays out an experiment with options.
func worldsWith(t *testing.T, e *experiment.Experiment, scheme string, o Options) *world {
	t.Helper()
	ctx := t.Context()
	w, err := newWorlds(ctx, func() runtime {
		r := newRuntime(ctx, simulator.cache)
		t.Cleanup(func() { _ = r.Close(ctx) })
		return r
	}, e, scheme, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Packets of one frame, which begin on a grid of a frame's time at hosts of all pods, come to a
// switch at the same ns from its own part and from another, now this and now that one pushed first.
// Who comes first waits less: it shows in the flows' completion times.
func TestTiesInParts(t *testing.T) {
	head, _, _ := strings.Cut(strings.Replace(inStep, "SCHEME", "dcqcn", 1), "flows:")
	const hosts, starts, frameNs = 24, 120, 800
	rng := rand.New(rand.NewPCG(1, 2))
	var flows strings.Builder
	for i := range starts {
		for k := range 12 {
			to := rng.IntN(hosts)
			from := (to + 1 + rng.IntN(hosts-1)) % hosts
			fmt.Fprintf(&flows, "  - {name: F%d-%d, from: H%d, to: H%d, size: 900B, start: %dns}\n",
				i, k, from, to, i*2*frameNs)
		}
	}
	e := parse(t, head+"flows:\n"+flows.String())
	want := runInParts(t, e, "dcqcn", 1)
	for _, threads := range []int{2, 3, 4, 8} {
		sameRuns(t, runInParts(t, e, "dcqcn", threads), want)
	}
}

// busyNetwork has so many flows that 12.5 packets a flow are sent in the time of a link.
const busyNetwork = `
name: busy
engine: sim
topology:
  {kind: clos, pods: 8, tors: 2, leaves: 2, spines: 2, hosts: 8, rate: 100Gbps, delay: 1us}
frame: 1000B
schemes: [dcqcn]
duration: 10us
sample: 10us
seed: 1
flows:
  - {name: A, from: H0..H63, to: H64..H127}
  - {name: B, from: H64..H127, to: H0..H63}
`

// Each part of a Clos network has as many hosts and switches of each layer, and whole pods.
func TestPartsAreAlike(t *testing.T) {
	e := parse(t, `
name: alike
engine: sim
topology: {kind: clos, pods: 4, tors: 4, leaves: 2, spines: 4, hosts: 2, rate: 10Gbps, delay: 1us}
schemes: [dcqcn]
duration: 1ms
flows:
  - {name: A, from: H0..H15, to: H16..H31, size: 1MB}
  - {name: B, from: H16..H31, to: H0..H15, size: 1MB}
`)
	for parts, want := range map[int]string{
		2: "16 hosts, 4 leaves, 2 spines, 8 ToRs", 4: "8 hosts, 2 leaves, 1 spines, 4 ToRs",
	} {
		w := worldsOf(t, e, e.Schemes[0], parts)
		nodes := make([]map[byte]int, parts)
		for i, part := range w.part.team.part {
			if nodes[part] == nil {
				nodes[part] = map[byte]int{}
			}
			nodes[part][w.plan.nodeNames[i][0]]++
		}
		for part, of := range nodes {
			got := fmt.Sprintf("%d hosts, %d leaves, %d spines, %d ToRs",
				of['H'], of['L'], of['S'], of['T'])
			if got != want {
				t.Errorf("part %d of %d has %s, want %s", part, parts, got, want)
			}
		}
		checkPods(t, w)
	}
}

// checkPods fails if a link between a ToR and a leaf joins two parts.
func checkPods(t *testing.T, w *world) {
	t.Helper()
	for _, ends := range w.plan.ends {
		a, b := w.plan.nodeNames[ends[0]], w.plan.nodeNames[ends[1]]
		if a[0] == 'T' && b[0] == 'L' && w.home(ends[0]) != w.home(ends[1]) {
			t.Errorf("%s and %s of one pod are in two parts", a, b)
		}
	}
}

// Unasked, a run has several parts only if each has much to do.
func TestIfBusy(t *testing.T) {
	fewer := strings.NewReplacer("H0..H63", "H0..H15", "H64..H127", "H64..H79")
	for _, c := range []struct {
		name, experiment string
		want             int
	}{
		{"1600 packets", busyNetwork, 2},
		{"400 packets", fewer.Replace(busyNetwork), 2},
		{"212 packets", strings.NewReplacer("H64..H79, to: H0..H15", "H64, to: H0").Replace(
			fewer.Replace(busyNetwork)), 1},
		{"slow", strings.ReplaceAll(busyNetwork, "}\n  - {name: B", ", limit_rate: 1Gbps}\n"+
			"  - {name: B, limit_rate: 1Gbps"), 1},
		{"small", strings.Replace(inStep, "SCHEME", "dcqcn", 1), 1},
	} {
		e := parse(t, c.experiment)
		w := worldsWith(t, e, e.Schemes[0], Options{Threads: 2, IfBusy: true})
		if n := len(w.worlds()); n != c.want {
			t.Errorf("%s: %d parts, want %d", c.name, n, c.want)
		}
		if (w.undivided == "") != (c.want > 1) {
			t.Errorf("%s: it has one part because %q", c.name, w.undivided)
		}
	}
}

// wholes are keys of experiments with which a run has one part, and how a file uses each.
var wholes = []struct{ key, old, changed string }{
	{"noise", "seed: 1", "seed: 1\nnoise: {scheduling: 1us}"},
	{"switch.ecmp", "buffer: 2MB", "buffer: 2MB, ecmp: packet"},
	{"switch.flow_control", "switch: {buffer: 2MB, pfc: {xoff: 30KB, xon: 28KB}}",
		"switch: {flow_control: cbfc, cbfc: {buffer: 64KB, period: 20us}}"},
	{"switch.pfc.pause_time", "xon: 28KB", "xon: 28KB, pause_time: 10us"},
	{"switch.pfc.watchdog", "xon: 28KB}",
		"xon: 28KB, watchdog: {detection: 200ms, restoration: 200ms}}"},
	{"topology.error_rate", "delay: 1600ns", "delay: 1600ns, error_rate: 0.001"},
	{"topology.jitter", "delay: 1600ns", "delay: 1600ns, jitter: 1us"},
	{"flows.after", "bursts:",
		"  - {name: W, from: H0, to: H1, size: 1KB, after: S}\nbursts:"},
	{"collective", "bursts:", "collective: {kind: ring-all-reduce, ranks: H0..H3, size: 100KB}\n" +
		"bursts:"},
	{"links.state", "bursts:", "links: [{at: 10us, link: L0-S0, state: down}]\nbursts:"},
	{"storms", "bursts:", "storms: [{hosts: H23, at: 10us}]\nbursts:"},
	{"schemes", "SCHEME", "ldcp"},
}

// keysInParts are the keys with which a run may have several parts. That of a section stands for
// all keys in it.
var keysInParts = strings.Fields(`
name title about cost frame schemes engine marking marker fecn tcd warmup duration sample dilation
ack_every seed seeds trace workload bursts transport files
cases figures expect compare metrics

topology.kind topology.file topology.burst_hosts topology.senders topology.receivers topology.hosts
topology.bottlenecks topology.pods topology.tors topology.leaves topology.spines topology.rate
topology.delay topology.bottleneck topology.leaf_links topology.spine_links topology.failed
topology.links.link topology.links.rate topology.links.delay

switch.buffer switch.port_buffer switch.classes switch.schedule switch.marking_by_rate
switch.detectors switch.own
switch.pfc.off switch.pfc.schemes switch.pfc.xoff switch.pfc.xon switch.pfc.pause_repeat
switch.pfc.repeat_pairs switch.pfc.dynamic

flows.name flows.from flows.to flows.priority flows.count flows.start flows.every
flows.start_jitter flows.size flows.lasts flows.initial_rate flows.limit_rate

links.at links.link links.rate links.trace
`)

// keysElsewhere are those that the simulator does not follow, those that go with one of wholes,
// those of single links, at all of which [world.whole] looks, and that of schemes of one's own,
// with which a run has one part.
var keysElsewhere = strings.Fields(`
kernel programs captures algorithms nft partitions flows.control switch.cbfc switch.qdisc
topology.links.qdisc
topology.error_burst topology.reorder topology.reorder_delay topology.links.error_rate
topology.links.error_burst topology.links.jitter topology.links.reorder
topology.links.reorder_delay
`)

// What takes effect elsewhere at the same ns is not divided.
func TestWhole(t *testing.T) {
	for _, c := range wholes {
		text := strings.Replace(inStep, c.old, c.changed, 1)
		if text == inStep {
			t.Errorf("%s: the file has no %q", c.key, c.old)
		}
		e := parse(t, strings.Replace(text, "SCHEME", "dcqcn", 1))
		if n := len(worldsOf(t, e, e.Schemes[0], 2).worlds()); n != 1 {
			t.Errorf("with %s there are %d parts, want 1", c.changed, n)
		}
	}
}

// keysOf returns the keys of a type and of what is in it, as a file has them: switch.pfc.xoff.
func keysOf(of reflect.Type, section string) (keys []string) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return keysOf(of.Elem(), section)
	case reflect.Struct:
		for _, f := range config.KeyedFields(of) {
			key := strings.TrimPrefix(section+"."+f.Key, ".")
			keys = append(keys, key)
			keys = append(keys, keysOf(of.FieldByIndex(f.Index).Type, key)...)
		}
	}
	return keys
}

// A new key must be said here to be fit for several parts, or not: then [world.whole] must know it.
func TestWholeKnowsAllKeys(t *testing.T) {
	known := slices.Concat(keysInParts, keysElsewhere)
	for _, c := range wholes {
		known = append(known, c.key)
	}
	keys := keysOf(reflect.TypeFor[experiment.Experiment](), "")
	for _, key := range keys {
		// a section whose keys are listed one by one is no key
		if !slices.ContainsFunc(known, func(k string) bool {
			return key == k || strings.HasPrefix(key, k+".") || strings.HasPrefix(k, key+".")
		}) {
			t.Errorf("key %s is new: may a run with it have several parts? If so, add it to "+
				"keysInParts; if not, have world.whole name it, and add it to wholes", key)
		}
	}
	for _, k := range known {
		if !slices.Contains(keys, k) {
			t.Errorf("there is no key %s", k)
		}
	}
}
