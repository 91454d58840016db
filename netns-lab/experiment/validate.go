// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
)

// Names, of what becomes a file name, a node or an object in a result.
var (
	fileName   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	nodeName   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,14}$`)
	objectName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
)

// Bounds that keep a typing error from running for a day.
const (
	maxDuration = 10 * Second
	maxBins     = 1_000_000
)

// fill sets the defaults that depend on other values of the file.
func (d *decoder) fill(e *Experiment) {
	if e.Title == "" {
		e.Title = e.Name
	}
	pfc, twoFrames := &e.Switch.PFC, 2*e.Frame
	switch {
	case pfc.Dynamic != nil:
		if !d.has("switch.pfc.dynamic.xon_offset") {
			pfc.Dynamic.XONOffset = twoFrames
		}
		pfc.XOFF = 0
	case !d.has("switch.pfc.xon") && pfc.XOFF > twoFrames:
		pfc.XON = pfc.XOFF - twoFrames
	}
	for i := range e.Flows {
		f := &e.Flows[i]
		f.LimitRate = cmp.Or(f.LimitRate, e.Topology.Rate)
		f.InitialRate = cmp.Or(f.InitialRate, f.LimitRate)
		if !d.has(fmt.Sprintf("flows[%d].start", i)) {
			f.Start = -e.Warmup
		}
	}
	for i := range e.Bursts {
		if !d.has(fmt.Sprintf("bursts[%d].flows", i)) {
			e.Bursts[i].Flows = 1
		}
	}
	for i := range e.Expect {
		x := &e.Expect[i]
		if !metrics[x.Metric].target {
			continue
		}
		x.Since = cmp.Or(x.Since, SinceStart)
		x.Hold = cmp.Or(x.Hold, 500*Microsecond)
	}
}

func (d *decoder) validate(e *Experiment) {
	d.name("name", e.Name, fileName, "lower-case letters, digits and \"-\"")
	d.validateTopology(e)
	d.validateSwitch(e)
	d.validateSchemes(e)
	d.validatePCN(e)
	d.validateTime(e)
	d.validateFlows(e)
	d.validateBursts(e)
	d.validateStarts(e)
	d.validateFigures(e)
	d.validateExpect(e)
}

// required reports whether the file gives the value at path, and fails if it does not.
func (d *decoder) required(path, key string) bool {
	if d.has(path + key) {
		return true
	}
	d.fail(path, fmt.Sprintf("%q is missing", key), "")
	return false
}

// inRange fails if v is not within [low, high].
func inRange[T interface {
	cmp.Ordered
	fmt.Stringer
}](d *decoder, path string, v, low, high T) {
	if v < low || v > high {
		d.fail(path, fmt.Sprintf("%s is out of range", v), fmt.Sprintf("%s to %s", low, high))
	}
}

// countInRange is inRange for what has no unit.
func countInRange[T int | uint](d *decoder, path string, v, low, high T) {
	if v < low || v > high {
		d.fail(path, fmt.Sprintf("%d is out of range", v), fmt.Sprintf("%d to %d", low, high))
	}
}

// name fails if the name at path is missing or not of the pattern.
func (d *decoder) name(path, name string, pattern *regexp.Regexp, hint string) {
	if !d.has(path) {
		d.fail(path, "\"name\" is missing", hint)
		return
	}
	if !pattern.MatchString(name) {
		d.fail(path, fmt.Sprintf("%q can't be a name", name), hint)
	}
}

// known fails if the name at path is not one of those, which are what.
func (d *decoder) known(path, what, name string, names []string) bool {
	if slices.Contains(names, name) {
		return true
	}
	d.fail(path, fmt.Sprintf("unknown %s %q", what, name), suggest(name, names))
	return false
}

func (d *decoder) allKnown(path, what string, list, names []string) {
	for i, name := range list {
		d.known(fmt.Sprintf("%s[%d]", path, i), what, name, names)
	}
}

func (d *decoder) validateTopology(e *Experiment) {
	if !d.required("", "topology") || !d.required("topology.", "kind") {
		return
	}
	t := e.Topology
	// A number of hosts that is out of range is not built.
	countInRange(d, "topology.burst_hosts", t.BurstHosts, 1, 62)
	e.Topology.BurstHosts = min(max(t.BurstHosts, 1), 62)
	d.known("topology.kind", "kind of topology", t.Kind, topologyKinds())
	inRange(d, "topology.rate", t.Rate, 1e6, 800e9)
	inRange(d, "topology.delay", t.Delay, 100*Nanosecond, 10*Millisecond)
}

func (d *decoder) validateSwitch(e *Experiment) {
	inRange(d, "frame", e.Frame, 128, 9018)
	inRange(d, "switch.buffer", e.Switch.Buffer, 10*e.Frame, 1e9)
	pfc := e.Switch.PFC
	if pfc.Dynamic == nil {
		inRange(d, "switch.pfc.xoff", pfc.XOFF, e.Frame, e.Switch.Buffer)
		inRange(d, "switch.pfc.xon", pfc.XON, 0, pfc.XOFF)
		return
	}
	for _, key := range []string{"xoff", "xon"} {
		if d.has("switch.pfc." + key) {
			d.fail("switch.pfc."+key, fmt.Sprintf("%q is static, and there is \"dynamic\" too", key), "keep one of them")
		}
	}
	if d.required("switch.pfc.dynamic.", "alpha") {
		inRange(d, "switch.pfc.dynamic.alpha", pfc.Dynamic.Alpha, 1.0/1024, 16)
	}
	inRange(d, "switch.pfc.dynamic.xon_offset", pfc.Dynamic.XONOffset, 0, e.Switch.Buffer)
}

func (d *decoder) validateSchemes(e *Experiment) {
	if len(e.Schemes) == 0 {
		d.fail("schemes", "\"schemes\" is missing", suggest("", schemes))
	}
	d.allKnown("schemes", "scheme", e.Schemes, schemes)
	d.unique("schemes", "scheme", e.Schemes)
}

// unique fails at each name that was there before.
func (d *decoder) unique(path, what string, names []string) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			d.fail(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("duplicate %s %q", what, name), "keep one of them")
		}
	}
}

func (d *decoder) validatePCN(e *Experiment) {
	p := e.PCN
	inRange(d, "pcn.T", p.T, Microsecond, 100*Millisecond)
	inRange(d, "pcn.T_jitter", p.TJitter, 0, 0.5)
	inRange(d, "pcn.w_min", p.WMin, 1.0/65536, 1)
	inRange(d, "pcn.w_max", p.WMax, p.WMin, 1)
	inRange(d, "pcn.congested_share", p.CongestedShare, 0, 1)
}

func (d *decoder) validateTime(e *Experiment) {
	countInRange(d, "dilation", e.Dilation, 0, 16)
	inRange(d, "sample", e.Sample, Microsecond, Second)
	inRange(d, "warmup", e.Warmup, 0, maxDuration)
	if e.Duration == 0 {
		d.fail("duration", "\"duration\" is missing", "write 15ms")
		return
	}
	inRange(d, "duration", e.Duration, Microsecond, maxDuration)
	if e.Sample <= 0 {
		return
	}
	hint := fmt.Sprintf("write a multiple of sample, %s", e.Sample)
	if e.Warmup%e.Sample != 0 {
		d.fail("warmup", fmt.Sprintf("warmup %s is not a whole number of bins", e.Warmup), hint)
	}
	if e.Duration%e.Sample != 0 {
		d.fail("duration", fmt.Sprintf("duration %s is not a whole number of bins", e.Duration), hint)
	}
	if bins := (e.Warmup + e.Duration) / e.Sample; bins > maxBins {
		d.fail("sample", fmt.Sprintf("%d bins are too many", bins), "make sample longer")
	}
}

func (d *decoder) validateFlows(e *Experiment) {
	hosts := e.Topology.Hosts()
	for i, f := range e.Flows {
		path := fmt.Sprintf("flows[%d].", i)
		d.name(path+"name", f.Name, objectName, "letters, digits, \"_\" and \"-\"")
		if d.required(path, "from") {
			d.known(path+"from", "host", f.From, hosts)
		}
		if d.required(path, "to") {
			d.known(path+"to", "host", f.To, hosts)
		}
		if f.From == f.To && f.From != "" {
			d.fail(path+"to", fmt.Sprintf("flow goes from %s to itself", f.From), "")
		}
		inRange(d, path+"limit_rate", f.LimitRate, 1e6, max(e.Topology.Rate, 1e6))
		inRange(d, path+"initial_rate", f.InitialRate, 1e6, max(f.LimitRate, 1e6))
	}
	d.uniqueObjects(e)
}

// uniqueObjects fails if two flows or bursts have the same name.
func (d *decoder) uniqueObjects(e *Experiment) {
	seen := make(map[string]bool)
	check := func(path, name string) {
		if seen[name] && name != "" {
			d.fail(path+".name", fmt.Sprintf("duplicate name %q", name), "give each flow and burst its own name")
		}
		seen[name] = true
	}
	for i, f := range e.Flows {
		check(fmt.Sprintf("flows[%d]", i), f.Name)
	}
	for i, b := range e.Bursts {
		check(fmt.Sprintf("bursts[%d]", i), b.Name)
	}
}

func (d *decoder) validateBursts(e *Experiment) {
	if len(e.Flows)+len(e.Bursts) == 0 {
		d.fail("", "there is no traffic", "add flows: or bursts:")
	}
	hosts := e.Topology.Hosts()
	for i, b := range e.Bursts {
		path := fmt.Sprintf("bursts[%d].", i)
		d.name(path+"name", b.Name, objectName, "letters, digits, \"_\" and \"-\"")
		if d.required(path, "from") {
			d.validateSenders(path+"from", b, hosts)
		}
		if d.required(path, "to") {
			d.known(path+"to", "host", b.To, hosts)
		}
		countInRange(d, path+"flows", b.Flows, 1, 1024)
		if d.required(path, "size") {
			inRange(d, path+"size", b.Size, 1, 1e9)
		}
	}
}

func (d *decoder) validateSenders(path string, b Burst, hosts []string) {
	if len(b.From) == 0 {
		d.fail(path, "no host sends", "write H2..H15")
	}
	for i, from := range b.From {
		if !d.known(path, "host", from, hosts) {
			return
		}
		if from == b.To {
			d.fail(path, fmt.Sprintf("%s sends to itself", from), "")
		}
		if slices.Contains(b.From[:i], from) {
			d.fail(path, fmt.Sprintf("%s sends twice", from), "use flows: to send more than one")
		}
	}
}

// validateStarts fails for traffic that starts outside of the run.
func (d *decoder) validateStarts(e *Experiment) {
	if e.Duration <= 0 {
		return // already refused
	}
	last := e.Duration - 1
	for i, f := range e.Flows {
		inRange(d, fmt.Sprintf("flows[%d].start", i), f.Start, -e.Warmup, last)
	}
	for i, b := range e.Bursts {
		inRange(d, fmt.Sprintf("bursts[%d].at", i), b.At, -e.Warmup, last)
	}
}

func (d *decoder) validateFigures(e *Experiment) {
	ports := e.Topology.Ports()
	d.allKnown("figures.pause", "link", e.Figures.Pause, ports)
	d.allKnown("figures.throughput", "flow", e.Figures.Throughput, flowNames(e))
	d.allKnown("figures.queues", "port", e.Figures.Queues, ports)
}

func flowNames(e *Experiment) []string {
	var names []string
	for _, f := range e.Flows {
		names = append(names, f.Name)
	}
	return names
}

func (d *decoder) validateExpect(e *Experiment) {
	for i, x := range e.Expect {
		path := fmt.Sprintf("expect[%d].", i)
		d.required(path, "what")
		if x.Scheme != "" {
			d.known(path+"scheme", "scheme of this file", x.Scheme, e.Schemes)
		}
		if !d.required(path, "metric") || !d.known(path+"metric", "metric", string(x.Metric), metricNames()) {
			continue
		}
		d.validateArguments(path, x)
		d.validateBounds(path, x)
		d.allKnown(path+"links", "link", x.Links, e.Topology.Ports())
		for j, sum := range x.Flows {
			for _, flow := range SumOf(sum) {
				d.known(fmt.Sprintf("%sflows[%d]", path, j), "flow", flow, flowNames(e))
			}
		}
		d.validateWindow(path, x, e)
	}
}

func (d *decoder) validateWindow(path string, x Expect, e *Experiment) {
	inRange(d, path+"from", x.From, -e.Warmup, e.Duration)
	if d.has(path + "to") {
		inRange(d, path+"to", x.To, x.From+1, e.Duration)
	}
}

func metricNames() []string {
	var names []string
	for _, m := range Metrics() {
		names = append(names, string(m))
	}
	return names
}

// validateArguments fails for what the metric needs and does not have, or has and does not need.
func (d *decoder) validateArguments(path string, x Expect) {
	spec := metrics[x.Metric]
	takesLinks := spec.links || x.Since == SincePauseEnd
	arguments := []struct {
		key           string
		needed, taken bool
	}{
		{"links", takesLinks, takesLinks},
		{"flows", spec.flows, spec.flows},
		{"target", spec.target, spec.target},
		{"since", false, spec.target},
		{"hold", false, spec.target},
		{"from", false, spec.window},
		{"to", false, spec.window},
	}
	for _, a := range arguments {
		given := d.has(path + a.key)
		if a.needed && !given {
			d.fail(path+a.key, fmt.Sprintf("metric %q needs %q", x.Metric, a.key), "")
		}
		if given && !a.taken {
			d.fail(path+a.key, fmt.Sprintf("metric %q does not take %q", x.Metric, a.key), "remove it")
		}
	}
	if spec.target {
		d.known(path+"since", "moment", string(x.Since), sinceNames())
		inRange(d, path+"hold", x.Hold, Microsecond, maxDuration)
	}
}

func sinceNames() []string {
	var names []string
	for _, s := range sinces() {
		names = append(names, string(s))
	}
	return names
}

func (d *decoder) validateBounds(path string, x Expect) {
	if x.Min == nil && x.Max == nil {
		d.fail(path+"max", "there is no bound", "add min: or max:")
		return
	}
	d.validateUnit(path+"min", x.Min, x.Metric)
	d.validateUnit(path+"max", x.Max, x.Metric)
	if x.Min != nil && x.Max != nil && x.Min.Value > x.Max.Value {
		d.fail(path+"min", fmt.Sprintf("min %s is above max %s", x.Min, x.Max), "")
	}
}

// validateUnit fails if the bound is not in the unit of the metric; 0 is in any.
func (d *decoder) validateUnit(path string, bound *Quantity, m Metric) {
	if bound == nil || bound.Value == 0 || bound.Unit == m.Unit() {
		return
	}
	examples := map[Unit]string{UnitCount: "3", UnitShare: "5%", UnitTime: "2.6ms", UnitRate: "6Gbps"}
	d.fail(path, fmt.Sprintf("%s is a %s, but metric %q is a %s", bound, bound.Unit, m, m.Unit()), "write a "+string(m.Unit())+" as "+examples[m.Unit()])
}
