// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pcn-linux/pcn/config"
)

func (d *decoder) validateFigures(e *Experiment) {
	f, ports, flows := e.Figures, d.ports, flowNames(e)
	d.checkAllKnown("figures.pause", "link", f.Pause, ports)
	d.checkAllKnown("figures.throughput", "flow", f.Throughput, flows)
	d.checkAllKnown("figures.queues", "port", f.Queues, ports)
	d.checkAllKnown("figures.send_rate", "flow", f.SendRate, flows)
	d.checkAllKnown("figures.rates", "port", f.Rates, ports)
	d.validateGrowing("figures.sizes", f.Sizes)
	for i, r := range f.Reference {
		d.validateReference(fmt.Sprintf("figures.reference[%d].", i), r, e)
	}
}

func (d *decoder) validateReference(path string, r Reference, e *Experiment) {
	d.checkKnownScheme(path+"scheme", r.Scheme, e)
	d.hasRequired(path, "label")
	if !d.hasRequired(path, "figure") || !d.checkKnown(path+"figure", "figure", string(r.Figure),
		toStrings(figureNames())) {
		return
	}
	what, names, unit := "flow", flowNames(e), UnitRate
	if r.Figure == FigureQueue || r.Figure == FigureRates {
		what, names = "port", d.ports
	}
	if r.Figure == FigureQueue {
		unit = UnitBytes
	}
	if d.hasRequired(path, "name") {
		d.checkKnown(path+"name", what, r.Name, names)
	}
	if d.hasRequired(path, "points") {
		d.validatePoints(path+"points", r.Points, unit, "figure \""+string(r.Figure)+"\"")
	}
}

func (d *decoder) validatePoints(path string, points []Point, unit Unit, what string) {
	if len(points) == 0 {
		d.fail(path, "there is no point", "write [[3.35ms, 1.25Gbps]]")
	}
	for i, p := range points {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.validateUnit(at, &points[i].Value, unit, what)
		if i > 0 && p.At < points[i-1].At {
			d.fail(at, fmt.Sprintf("%s is before the point above, %s", p.At, points[i-1].At), "")
		}
	}
}

// validateGrowing fails at each size that is not larger than the one before.
func (d *decoder) validateGrowing(path string, sizes []Bytes) {
	for i, size := range sizes {
		if i > 0 && size <= sizes[i-1] || size == 0 {
			d.fail(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%s does not grow", size),
				"write [10KB, 100KB, 1MB]")
		}
	}
}

// flowNames returns the names of groups, and of flows where a group has several.
func flowNames(e *Experiment) []string {
	var names []string
	for _, g := range e.FlowGroups {
		names = append(names, g.Name)
	}
	for _, c := range e.Collectives {
		names = append(names, c.Name)
	}
	if e.Trace.File != "" {
		names = append(names, tracedGroup)
	}
	for _, w := range e.Workload {
		names = append(names, w.Name)
	}
	for _, f := range e.Flows {
		if f.Name != f.Group {
			names = append(names, f.Name)
		}
	}
	return names
}

// toStrings converts names to strings.
func toStrings[T ~string](names []T) []string {
	var list []string
	for _, n := range names {
		list = append(list, string(n))
	}
	return list
}

// checkKnownScheme fails if a scheme is given but does not run.
func (d *decoder) checkKnownScheme(path, scheme string, e *Experiment) {
	if scheme != "" {
		d.checkKnown(path, "scheme of this file", scheme, d.schemesOf(e))
	}
}

func (d *decoder) validateExpect(e *Experiment) {
	for i, x := range e.Expect {
		path := fmt.Sprintf("expect[%d].", i)
		if x.Case != "" && !d.checkKnown(path+"case", "case", x.Case, caseNames(e.Cases)) {
			continue
		}
		if x.Case != "" && x.Case != e.CaseName {
			continue // of another case, whose experiment checks it
		}
		d.hasRequired(path, "what")
		d.checkKnownScheme(path+"scheme", x.Scheme, e)
		if d.validateMeasure(path, x.Measure, e) {
			d.validateBounds(path, x.Min, x.Max, x.Metric)
		}
	}
}

// validateMeasure checks the metric and its arguments; it reports whether the metric is known.
func (d *decoder) validateMeasure(path string, m Measure, e *Experiment) bool {
	implied := m.Metric != "" && !d.has(path+"metric") // by exit, says or json
	if !implied && !d.hasRequired(path, "metric") || !d.checkKnown(path+"metric", "metric",
		string(m.Metric), toStrings(Metrics())) {
		return false
	}
	d.validateArguments(path, m)
	d.validateProgramMeasure(path, m, e)
	d.checkAllKnown(path+"links", "link", m.Links, d.ports)
	d.checkAllKnown(path+"ports", "port", m.Ports, d.ports)
	for i, sum := range m.Flows {
		for _, flow := range SumOf(sum) {
			names := flowNames(e)
			if m.Metric == MarkedPackets { // bursts' packets count too
				for _, b := range e.Bursts {
					names = append(names, b.Name)
				}
			}
			d.checkKnown(fmt.Sprintf("%sflows[%d]", path, i), "flow", flow, names)
		}
	}
	if d.has(path + "detector") {
		d.checkKnown(path+"detector", "detector", string(m.Detector), toStrings(detectors()))
	}
	if needsDetectors(m.Metric) && !e.Switch.Detectors {
		d.fail(path+"metric", fmt.Sprintf("metric %q needs detectors, and there are none",
			m.Metric), "add switch: {detectors: true}")
	}
	d.checkAllKnown(path+"tiers", "tier of the topology", m.Tiers, d.tiers)
	if m.Metric == CompletionTime || m.Metric == JobTime || metrics[m.Metric].sizes {
		d.validateCompletion(path, m.Flows, e)
	}
	if m.Priority != nil {
		config.CountInRange(d.Decoder, path+"priority", *m.Priority, 0, SimPriorities-1)
	}
	if !d.knowsTime(e) {
		return true
	}
	config.InRange(d.Decoder, path+"from", m.From, -e.Warmup, e.Duration)
	if d.has(path + "to") {
		config.InRange(d.Decoder, path+"to", m.To, m.From+1, e.Duration)
	}
	return true
}

// needsDetectors reports whether the metric needs what [Switch.Detectors] records.
func needsDetectors(m Metric) bool {
	switch m {
	case DetectorMarks, WrongMarks, OffEnd, DetectionTime:
		return true
	}
	return false
}

// validateCompletion fails for flows that never end, and for sums.
func (d *decoder) validateCompletion(path string, flows []string, e *Experiment) {
	for i, name := range flows {
		at := fmt.Sprintf("%sflows[%d]", path, i)
		if len(SumOf(name)) > 1 {
			d.fail(at, "a sum has no completion time", "list its flows one by one")
		}
		for _, f := range e.Flows {
			if (f.Name == name || f.Group == name) && f.Size == 0 {
				d.fail(at, fmt.Sprintf("flow %s never ends", f.Name), "give it a size")
				break
			}
		}
	}
}

// validateArguments fails for arguments that the metric needs and lacks, or has and does not take.
func (d *decoder) validateArguments(path string, m Measure) {
	spec := metrics[m.Metric]
	settles := spec.target != ""
	takesLinks := spec.links || m.Since == SincePauseEnd
	arguments := []struct {
		key           string
		needed, taken bool
	}{
		{"links", takesLinks, takesLinks},
		{"priority", false, spec.priority},
		{"ports", spec.ports, spec.ports},
		{"flows", spec.flows, spec.flows},
		{"target", settles, settles},
		{"band", spec.band, spec.band},
		{"cnps", spec.cnps, spec.cnps},
		{"detector", spec.detector, spec.detector},
		{"since", false, settles},
		{"hold", false, settles},
		{"program", spec.program, spec.program},
		{"says", spec.says, spec.says},
		{"json", spec.json, spec.json},
		{"exit", false, m.Metric == ProgramExit},
		{"sizes", false, spec.sizes},
		{"tiers", false, spec.tiers},
		{"from", false, spec.window},
		{"to", false, spec.window},
	}
	for _, a := range arguments {
		given := d.has(path + a.key)
		if a.needed && !given {
			d.fail(path+a.key, fmt.Sprintf("metric %q needs %q", m.Metric, a.key),
				"add "+a.key+":")
		}
		if given && !a.taken {
			d.fail(path+a.key, fmt.Sprintf("metric %q does not take %q", m.Metric, a.key),
				"remove it")
		}
	}
	for _, list := range []struct {
		key string
		n   int
	}{{"links", len(m.Links)}, {"ports", len(m.Ports)}, {"flows", len(m.Flows)},
		{"tiers", len(m.Tiers)}} {
		if d.has(path+list.key) && list.n == 0 {
			d.fail(path+list.key, fmt.Sprintf("%q is empty", list.key),
				"name at least one, or remove it")
		}
	}
	if !settles {
		return
	}
	if m.Target != nil {
		d.validateUnit(path+"target", m.Target, spec.target,
			fmt.Sprintf("the target of metric %q", m.Metric))
	}
	d.checkKnown(path+"since", "moment", string(m.Since), toStrings(sinces()))
	config.InRange(d.Decoder, path+"hold", m.Hold, Microsecond, maxDuration)
	if spec.band && d.has(path+"band") {
		config.InRange(d.Decoder, path+"band", m.Band, minFraction, 1)
	}
}

func (d *decoder) validateBounds(path string, low, high *Quantity, m Metric) {
	if low == nil && high == nil {
		d.fail(path+"max", "there is no bound", "add min: or max:")
		return
	}
	what := fmt.Sprintf("metric %q", m)
	if low != nil {
		d.validateUnit(path+"min", low, m.Unit(), what)
	}
	if high != nil {
		d.validateUnit(path+"max", high, m.Unit(), what)
	}
	if low != nil && high != nil && low.Value > high.Value {
		d.fail(path+"min", fmt.Sprintf("min %s is above max %s", low, high), "swap them")
	}
}

// validateUnit fails if a value has another unit than the quantity that it bounds; 0 has any. A
// number up to 1 is a share where one is asked for: 0.99 is 99%.
func (d *decoder) validateUnit(path string, q *Quantity, unit Unit, what string) {
	if q.Value == 0 || q.Unit == unit {
		return
	}
	if unit == UnitShare && q.Unit == UnitCount && q.Value > 0 && q.Value <= 1 {
		q.Unit = UnitShare
		return
	}
	examples := map[Unit]string{UnitCount: "3", UnitShare: "5% or 0.05", UnitTime: "2.6ms",
		UnitRate: "6Gbps", UnitBytes: "64KB"}
	d.fail(path, fmt.Sprintf("%s is a %s, but %s is a %s", q, q.Unit, what, unit),
		fmt.Sprintf("write a %s as %s", unit, examples[unit]))
}

func (d *decoder) validateCompare(e *Experiment) {
	for i, c := range e.Compare {
		path := fmt.Sprintf("compare[%d].", i)
		d.checkAllKnown(path+"cases", "case", c.Cases, caseNames(e.Cases))
		d.checkUnique(path+"cases", "case", c.Cases)
		d.checkAllKnown(path+"schemes", "scheme of this file", c.Schemes, d.schemesOf(e))
		d.checkUnique(path+"schemes", "scheme", c.Schemes)
		if len(c.Cases) > 0 && !slices.Contains(c.Cases, e.CaseName) {
			continue // of other cases, whose experiments check it
		}
		d.hasRequired(path, "what")
		d.checkKnown(path+"over", "way to make one value", string(c.Over), toStrings(overs()))
		if d.validateMeasure(path, c.Measure, e) {
			d.validateChecks(path, c, e)
		}
	}
}

func (d *decoder) validateMetrics(e *Experiment) {
	var names []string
	for i, m := range e.Metrics {
		path := fmt.Sprintf("metrics[%d].", i)
		d.checkName(path+"name", m.Name, metricName, "lower-case letters, digits, \"-\" and \"_\"")
		d.checkKnown(path+"over", "way to make one value", string(m.Over), toStrings(overs()))
		d.validateMeasure(path, m.Measure, e)
		names = append(names, m.Name)
	}
	d.checkUnique("metrics", "metric", names)
}

// validateChecks checks the bounds of the measured values.
func (d *decoder) validateChecks(path string, c Compare, e *Experiment) {
	what := fmt.Sprintf("metric %q", c.Metric)
	for _, scheme := range slices.Sorted(maps.Keys(c.Paper)) {
		at := path + "paper." + scheme
		d.comparedScheme(at, scheme, c, e)
		paper := c.Paper[scheme]
		d.validateUnit(at, &paper, c.Metric.Unit(), what)
		c.Paper[scheme] = paper
	}
	for _, scheme := range slices.Sorted(maps.Keys(c.Bounds)) {
		at := path + "bounds." + scheme
		d.comparedScheme(at, scheme, c, e)
		d.validateBounds(at+".", c.Bounds[scheme].Min, c.Bounds[scheme].Max, c.Metric)
	}
	if c.Ratios != nil {
		d.validateRatios(path+"ratios.", c, e)
	}
	ofCompletionTimes := metrics[c.Metric].sizes && c.Metric != Completed &&
		c.Metric != CompletionRate
	if c.CompletedByAll && !ofCompletionTimes {
		d.fail(path+"completed_by_all", fmt.Sprintf("%s does not measure completion times", what),
			"remove it")
	}
	if d.has(path + "within") {
		config.InRange(d.Decoder, path+"within", c.Within, minFraction, 100)
	}
	if c.Within != 0 && len(c.Paper) == 0 {
		d.fail(path+"within", "\"within\" needs \"paper\"", "write paper: {pfc: 3.1ms}")
	}
	if c.Order && len(c.Paper) < 2 {
		d.fail(path+"order", "\"order\" needs two schemes in \"paper\"",
			"write paper: {pfc: 3.1ms, pcn: 1.4ms}")
	}
}

// comparedScheme fails if a scheme is not measured.
func (d *decoder) comparedScheme(path, scheme string, c Compare, e *Experiment) {
	if len(c.Schemes) > 0 {
		d.checkKnown(path, "scheme of this comparison", scheme, c.Schemes)
		return
	}
	d.checkKnown(path, "scheme of this file", scheme, d.schemesOf(e))
}

func (d *decoder) validateRatios(path string, c Compare, e *Experiment) {
	if d.hasRequired(path, "to") {
		d.comparedScheme(path+"to", c.Ratios.To, c, e)
	}
	if d.hasRequired(path, "min") {
		config.InRange(d.Decoder, path+"min", c.Ratios.Min, minFraction, 1e6)
	}
}
