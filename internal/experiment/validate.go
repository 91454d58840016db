// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/lazy"
	"github.com/pcn-linux/pcn/config/scheme"
)

// Patterns of names that become a file, a node or an object in a result. Names other than of nodes
// have at most maxName characters: counting is not part of their patterns, as each command would
// compile 64 copies of a part, for a millisecond.
var (
	fileName   = lazy.Regexp(`^[a-z0-9][a-z0-9-]*$`)
	metricName = lazy.Regexp(`^[a-z][a-z0-9_-]*$`)
	nodeName   = lazy.Regexp(`^[A-Za-z][A-Za-z0-9]{0,14}$`)
	objectName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
)

const maxName = 64

// IsFileName reports whether a name of an experiment, a sweep or a figure can be that of a file:
// lower-case letters, digits and "-".
func IsFileName(name string) bool {
	return len(name) <= maxName && fileName().MatchString(name)
}

// Bounds that keep a typing error from running for a day.
const (
	maxDuration = 100 * Second
	longest     = 24 * 3600 * Second // of runs of programs alone, which may be idle for long
	maxBins     = 1_000_000
	maxFlows    = 100_000
	maxCases    = 100
)

// The longest frames: of hosts with an MTU of 9000 bytes, and in the simulator of switches.
const (
	maxFrame    = Bytes(9018)
	maxSimFrame = Bytes(9216)
)

// Limits of links and ports.
const (
	minRate       = Rate(1e6) // of flows on Linux
	maxRate       = Rate(800e9)
	leastRate     = Rate(1e3)
	mostRate      = Rate(4e12)       // telemetry has rates of 32 bits, in kbit/s
	minDelay      = 500 * Nanosecond // on Linux: below, times are wrong by more than 0.3%
	leastDelay    = Nanosecond       // in the simulator
	maxDelay      = 10 * Second
	maxPortEvents = 64 // of a port: the qdisc has no room for more
)

// fill sets the defaults that depend on other values of the file.
func (d *decoder) fill(e *Experiment) {
	e.Title = cmp.Or(e.Title, e.Name)
	d.fillTopology(e)
	pfc, twoFrames := &e.Switch.PFC, 2*e.Frame
	switch {
	case pfc.Off:
		pfc.XOFF, pfc.XON = 0, 0
	case pfc.Dynamic != nil:
		if !d.has("switch.pfc.dynamic.xon_offset") {
			pfc.Dynamic.XONOffset = twoFrames
		}
		pfc.XOFF = 0
	case !d.has("switch.pfc.xon") && pfc.XOFF > twoFrames:
		pfc.XON = pfc.XOFF - twoFrames
	}
	if !d.has("switch.pfc.pause_repeat") {
		pfc.PauseRepeat = pfc.PauseTime / 2
	}
	pfc.Watchdog.fill()
	for i := range e.FlowGroups {
		f := &e.FlowGroups[i]
		if !d.has(fmt.Sprintf("flows[%d].start", i)) {
			f.Start = -e.Warmup
		}
		if !d.has(fmt.Sprintf("flows[%d].count", i)) {
			f.Count = 1
		}
	}
	e.fillFlows()
	for i := range e.Workload {
		d.fillWorkload(e, i)
	}
	for i := range e.Collectives {
		d.fillCollective(e, i)
	}
	for i := range e.Bursts {
		if !d.has(fmt.Sprintf("bursts[%d].flows", i)) {
			e.Bursts[i].Flows = 1
		}
	}
	for i := range e.Expect {
		e.Expect[i].fillProgram()
		e.Expect[i].fill()
	}
	for i := range e.Compare {
		c := &e.Compare[i]
		c.fill()
		c.Over = cmp.Or(c.Over, OverMax)
	}
	for i := range e.Metrics {
		m := &e.Metrics[i]
		m.fill()
		m.Over = cmp.Or(m.Over, OverMax)
	}
}

// fillFlows sets the flows of all groups, unless they are too many.
func (e *Experiment) fillFlows() {
	if countGroups(e) > maxFlows {
		return // validation will report it
	}
	for _, g := range e.FlowGroups {
		e.Flows = append(e.Flows, g.flows()...)
	}
}

// fill sets the defaults of the arguments that the metric takes.
func (m *Measure) fill() {
	if metrics[m.Metric].target == "" {
		return
	}
	m.Since = cmp.Or(m.Since, SinceStart)
	m.Hold = cmp.Or(m.Hold, 500*Microsecond)
}

// validate checks the file, and derives from it what it says. What judges a run is checked with the
// file's own values alone: a run that was chosen to be shorter, or of other schemes, leaves it
// unmeasured.
func (d *decoder) validate(e *Experiment) {
	d.check(e)
	d.derive(e)
	d.doubtFlows(e)
	if !d.chosen.any() {
		d.validateFigures(e)
		d.validateExpect(e)
		d.validateCompare(e)
		d.validateMetrics(e)
	}
}

// check fails for what the file may not say, whatever follows from it.
func (d *decoder) check(e *Experiment) {
	d.checkName("name", e.Name, fileName, "lower-case letters, digits and \"-\"")
	d.validateTopology(e)
	d.doubtTopology()
	d.validateSchemes(e)
	d.doubtSchemes(e)
	d.validateSwitch(e)
	d.checkKnown("engine", "engine", string(e.Engine), toStrings(Engines()))
	d.validateTelemetry(e)
	d.validateHostLinks(e)
	d.validateECMP(e)
	d.validateTransport(e)
	d.validateDetection(e)
	d.validateTime(e)
	d.validateFlows(e)
	for i := range e.Workload {
		d.validateWorkload(e, i)
	}
	d.validateCollectives(e)
	d.validateBursts(e)
	d.validateStarts(e)
	d.validatePrograms(e)
	d.validateLinuxNetwork(e)
	d.validateLinkEvents(e)
	d.validateStorms(e)
	d.validatePartitions(e)
	d.validateCases(e)
}

// hasRequired reports whether the file gives the value at path, and fails if it does not.
func (d *decoder) hasRequired(path, key string) bool {
	if d.has(path + key) {
		return true
	}
	d.fail(path, fmt.Sprintf("%q is missing", key), "add "+key+":")
	return false
}

// checkName fails if the name at path is missing, too long or does not match the pattern.
func (d *decoder) checkName(path, name string, pattern func() *regexp.Regexp, hint string) {
	if !d.has(path) {
		d.fail(path, "\"name\" is missing", hint)
		return
	}
	if len(name) > maxName || !pattern().MatchString(name) {
		d.fail(path, fmt.Sprintf("%q can't be a name", name), hint)
	}
}

// checkKnown fails if the name at path is not among names. Errors call such a name what.
func (d *decoder) checkKnown(path, what, name string, names []string) bool {
	if slices.Contains(names, name) {
		return true
	}
	if !d.unsure[what] {
		hint := config.Suggest(name, names)
		if len(names) == 0 {
			hint = "the file has none: add one, or remove this"
		}
		d.fail(path, fmt.Sprintf("unknown %s %q", what, name), hint)
	}
	return false
}

func (d *decoder) checkAllKnown(path, what string, list, names []string) {
	for i, name := range list {
		d.checkKnown(fmt.Sprintf("%s[%d]", path, i), what, name, names)
	}
}

func (d *decoder) validateSwitch(e *Experiment) {
	most := maxFrame
	if e.Engine == EngineSim {
		most = maxSimFrame
	}
	config.InRange(d.Decoder, "frame", e.Frame, 128, most)
	if e.Frame > maxFrame {
		e.simOnly = append(e.simOnly, "frame")
	}
	config.InRange(d.Decoder, "switch.buffer", e.Switch.Buffer, 10*e.Frame, 1e9)
	if e.Switch.PortBuffer != 0 {
		config.InRange(d.Decoder, "switch.port_buffer", e.Switch.PortBuffer, 10*e.Frame,
			e.Switch.Buffer)
	}
	d.validatePFC(e)
	d.validateOwnSwitches(e)
	d.validateClasses(e)
}

func (d *decoder) validatePFC(e *Experiment) {
	pfc := e.Switch.PFC
	if pfc.Off {
		for _, key := range []string{
			"xoff", "xon", "dynamic", "schemes", "pause_time", "pause_repeat",
			"repeat_pairs",
		} {
			if d.has("switch.pfc." + key) {
				d.fail("switch.pfc."+key, fmt.Sprintf("%q is given, and PFC is off", key),
					"keep one of them")
			}
		}
		return
	}
	d.checkAllKnown("switch.pfc.schemes", "scheme of this file", pfc.Schemes, d.schemesOf(e))
	d.checkUnique("switch.pfc.schemes", "scheme", pfc.Schemes)
	if d.has("switch.pfc.schemes") && len(pfc.Schemes) == 0 {
		d.fail("switch.pfc.schemes", "PFC is on for no scheme", "write off: true")
	}
	d.validatePauseTime(e)
	if pfc.Dynamic == nil {
		config.InRange(d.Decoder, "switch.pfc.xoff", pfc.XOFF, e.Frame, e.Switch.Buffer)
		config.InRange(d.Decoder, "switch.pfc.xon", pfc.XON, 0, pfc.XOFF)
		return
	}
	for _, key := range []string{"xoff", "xon"} {
		if d.has("switch.pfc." + key) {
			d.fail("switch.pfc."+key, fmt.Sprintf("%q is static, and there is \"dynamic\" too",
				key), "keep one of them")
		}
	}
	if d.hasRequired("switch.pfc.dynamic.", "alpha") {
		config.InRange(d.Decoder, "switch.pfc.dynamic.alpha", pfc.Dynamic.Alpha, 1.0/1024, maxAlpha)
	}
	config.InRange(d.Decoder, "switch.pfc.dynamic.xon_offset", pfc.Dynamic.XONOffset, 0,
		e.Switch.Buffer)
	d.validateHeadroom(e)
}

// checkUnique fails at each name that is a repetition.
func (d *decoder) checkUnique(path, what string, names []string) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			d.fail(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("duplicate %s %q", what, name),
				"keep one of them")
		}
	}
}

func (d *decoder) validateTime(e *Experiment) {
	config.CountInRange(d.Decoder, "dilation", e.Dilation.Shift, 0, MaxDilation)
	config.CountInRange(d.Decoder, "ack_every", e.AckEvery, 1, 2)
	d.validateNoise(e)
	config.InRange(d.Decoder, "sample", e.Sample, Microsecond, Second)
	config.InRange(d.Decoder, "warmup", e.Warmup, 0, maxDuration)
	if e.Duration == 0 {
		d.fail("duration", "\"duration\" is missing", "write 15ms")
		return
	}
	most := maxDuration
	if len(e.Programs) > 0 && e.OnlyPrograms() {
		most = longest
	}
	config.InRange(d.Decoder, "duration", e.Duration, Microsecond, most)
	if e.Sample <= 0 {
		return
	}
	hint := fmt.Sprintf("write a multiple of sample, %s", e.Sample)
	if e.Warmup%e.Sample != 0 {
		d.fail("warmup", fmt.Sprintf("warmup %s is not a whole number of bins", e.Warmup), hint)
	}
	if e.Duration%e.Sample != 0 {
		d.fail("duration", fmt.Sprintf("duration %s is not a whole number of bins", e.Duration),
			hint)
	}
	if bins := (e.Warmup + e.Duration) / e.Sample; bins > maxBins {
		d.fail("sample", fmt.Sprintf("%d bins are too many", bins), "make sample longer")
	}
}

func (d *decoder) validateFlows(e *Experiment) {
	for i, f := range e.FlowGroups {
		path := fmt.Sprintf("flows[%d].", i)
		d.checkName(path+"name", f.Name, objectName, "letters, digits, \"_\" and \"-\"")
		if d.hasRequired(path, "from") {
			d.validateSenders(path+"from", f.From, "use count: to send more than one")
		}
		if d.hasRequired(path, "to") {
			d.validateReceivers(path+"to", f)
		}
		d.validatePriority(e, path+"priority", f.Priority)
		config.CountInRange(d.Decoder, path+"count", f.Count, 1, maxFlows)
		config.InRange(d.Decoder, path+"every", f.Every, 0, maxDuration)
		config.InRange(d.Decoder, path+"start_jitter", f.StartJitter, 0, Second)
		if d.has(path+"every") && !d.has(path+"count") {
			d.fail(path+"every", "\"every\" needs \"count\"", "write count: 10")
		}
		d.validateLasts(e, path, f)
		d.validateGroupAfter(path)
		d.validateControl(e, path+"control", f.Control)
		if d.has(path + "limit_rate") {
			config.InRange(d.Decoder, path+"limit_rate", f.LimitRate, e.minRate(),
				max(e.fastest(f.From), e.minRate()))
		}
		if d.has(path + "initial_rate") {
			most := cmp.Or(f.LimitRate, e.fastest(f.From))
			config.InRange(d.Decoder, path+"initial_rate", f.InitialRate, e.minRate(),
				max(most, e.minRate()))
		}
	}
}

// validateControl checks the control that flows have in place of the scheme's.
func (d *decoder) validateControl(e *Experiment, path, control string) {
	d.needsLinux(e, path)
	if d.has(path) {
		d.checkKnown(path, "congestion control of Linux", control, scheme.KernelControls())
	}
}

// uniqueObjects fails if two flows or bursts have the same name.
func (d *decoder) uniqueObjects(e *Experiment) {
	seen := make(map[string]bool)
	check := func(path, name string) {
		if seen[name] && name != "" {
			d.fail(path+".name", fmt.Sprintf("duplicate name %q", name),
				"give each flow and burst its own name")
		}
		seen[name] = true
	}
	for i, g := range e.FlowGroups {
		check(fmt.Sprintf("flows[%d]", i), g.Name)
	}
	for i, b := range e.Bursts {
		check(fmt.Sprintf("bursts[%d]", i), b.Name)
	}
	at := make(map[string]string) // of a group
	for i, w := range e.Workload {
		at[w.Name] = fmt.Sprintf("workload[%d]", i)
		check(at[w.Name], w.Name)
	}
	for i, g := range e.FlowGroups {
		at[g.Name] = fmt.Sprintf("flows[%d]", i)
	}
	for i, c := range e.Collectives {
		at[c.Name] = fmt.Sprintf("collective[%d]", i)
		check(at[c.Name], c.Name)
	}
	for _, f := range e.Flows {
		if f.Name != f.Group {
			check(at[f.Group], f.Name)
		}
	}
}

// trafficKeys are those of which one makes traffic.
var trafficKeys = []string{"flows", "workload", "collective", "bursts", "programs"}

func (d *decoder) validateBursts(e *Experiment) {
	if len(e.FlowGroups)+len(e.Bursts)+len(e.Workload)+len(e.Collectives)+len(e.Programs) == 0 &&
		!d.has("trace") && !d.options.Idle && !slices.ContainsFunc(trafficKeys, d.FailedAt) {
		d.fail("", "there is no traffic",
			"add flows:, trace:, workload:, collective:, bursts: or programs:")
	}
	for i, b := range e.Bursts {
		path := fmt.Sprintf("bursts[%d].", i)
		d.checkName(path+"name", b.Name, objectName, "letters, digits, \"_\" and \"-\"")
		if d.hasRequired(path, "from") {
			d.validateSenders(path+"from", b.From, "use flows: to send more than one")
		}
		if slices.Contains(b.From, b.To) {
			d.fail(path+"from", fmt.Sprintf("%s sends to itself", b.To),
				"name another receiver")
		}
		if d.hasRequired(path, "to") {
			d.checkKnownHost(path+"to", b.To)
		}
		d.validatePriority(e, path+"priority", b.Priority)
		config.CountInRange(d.Decoder, path+"flows", b.Flows, 1, 1024)
		if d.hasRequired(path, "size") {
			config.InRange(d.Decoder, path+"size", b.Size, 1, 1e9)
		}
		if d.has(path + "rate") {
			config.InRange(d.Decoder, path+"rate", b.Rate, e.minRate(),
				max(e.fastest(b.From), e.minRate()))
		}
		d.validateRepetition(path, b)
	}
}

func (d *decoder) validateRepetition(path string, b Burst) {
	if b.Every != 0 {
		config.InRange(d.Decoder, path+"every", b.Every, Microsecond, maxDuration)
	} else if b.Times != 0 {
		d.fail(path+"times", "\"times\" needs \"every\"", "write every: 1ms")
	}
	config.CountInRange(d.Decoder, path+"times", b.Times, 0, maxFlows)
}

func (d *decoder) validateSenders(path string, senders NodeList, hint string) {
	if len(senders) == 0 {
		d.fail(path, "no host sends", "write H2..H15")
	}
	seen := make(map[string]bool)
	for _, from := range senders {
		if !d.checkKnownHost(path, from) {
			return
		}
		if seen[from] {
			d.fail(path, fmt.Sprintf("%s sends twice", from), hint)
		}
		seen[from] = true
	}
}

func (d *decoder) validateReceivers(path string, g FlowGroup) {
	for _, to := range g.To {
		if !d.checkKnownHost(path, to) {
			return
		}
	}
	if len(g.To) != 1 && len(g.To) != len(g.From) {
		d.fail(path, fmt.Sprintf("%d hosts send to %d", len(g.From), len(g.To)),
			"give one receiver, or one for each sender")
		return
	}
	for i, from := range g.From {
		if from == g.receiver(i) {
			d.fail(path, fmt.Sprintf("flow goes from %s to itself", from),
				"name another receiver")
			return
		}
	}
}

// validateStarts fails for flows and bursts that start outside of the run.
func (d *decoder) validateStarts(e *Experiment) {
	if e.Duration <= 0 {
		return // already reported
	}
	last := e.Duration - 1
	for i, g := range e.FlowGroups {
		path := fmt.Sprintf("flows[%d].", i)
		config.InRange(d.Decoder, path+"start", g.Start, -e.Warmup, last)
		if fit := g.fitting(e.Duration); g.Every > 0 && g.Count > fit && fit > 0 {
			d.fail(path+"every", fmt.Sprintf("only %d of %d flows start before the end of the run",
				fit, g.Count), "")
		}
	}
	for i, b := range e.Bursts {
		path := fmt.Sprintf("bursts[%d].", i)
		config.InRange(d.Decoder, path+"at", b.At, -e.Warmup, last)
		if fit := b.fitting(e.Duration); b.Every > 0 && b.Times > fit && fit > 0 {
			d.fail(path+"times", fmt.Sprintf("only %d of %d starts are before the end of the run",
				fit, b.Times), "")
		}
	}
	for i, l := range e.LinkEvents {
		config.InRange(d.Decoder, fmt.Sprintf("links[%d].at", i), l.At, -e.Warmup, last)
	}
	if n := countFlows(e); n > maxFlows {
		at := "bursts"
		if countGroups(e) > maxFlows {
			at = "flows"
		}
		d.fail(at, fmt.Sprintf("%d flows are too many", n), fmt.Sprintf("at most %d", maxFlows))
	}
}

// countGroups returns how many flows all groups have; path of each group by name with too many,
// only that it has.
func countGroups(e *Experiment) int {
	n := 0
	for _, g := range e.FlowGroups {
		n += g.size()
	}
	return n
}

// countFlows returns the number of flows of the run; a burst that repeats too often counts up to
// its limit.
func countFlows(e *Experiment) int {
	n := countGroups(e)
	for _, b := range e.Bursts {
		n += len(b.From) * b.Flows * min(b.repetitions(e.Duration), maxFlows+1)
	}
	return n
}

func (d *decoder) validateLinkEvents(e *Experiment) {
	type moment struct {
		port string
		at   Duration
	}
	seen, count := make(map[moment]bool), make(map[string]int)
	for i, l := range e.LinkEvents {
		path := fmt.Sprintf("links[%d].", i)
		if d.has(path + "state") {
			for _, port := range d.validateLinkState(e, path, l) {
				d.countChange(path, port, count)
			}
			continue
		}
		if d.has(path + "trace") {
			d.validateLinkTrace(e, path, l)
			continue
		}
		if !d.has(path + "rate") {
			d.fail(path, "neither \"rate\", \"state\" nor \"trace\" is given",
				"add rate:, state: or trace:")
		} else {
			d.rateInRange(e, path+"rate", l.Rate)
		}
		if !d.hasRequired(path, "link") || !d.checkKnown(path+"link", "port", l.Port, d.ports) {
			continue
		}
		if seen[moment{l.Port, l.At}] {
			d.fail(path+"at", fmt.Sprintf("%s has two rates at %s", l.Port, l.At),
				"keep one of them")
		}
		seen[moment{l.Port, l.At}] = true
		d.countChange(path, l.Port, count)
	}
}

// countChange counts the changes of a port, and fails at the first that is too many.
func (d *decoder) countChange(path, port string, count map[string]int) {
	if count[port]++; count[port] == maxPortEvents+1 {
		d.fail(path+"link", fmt.Sprintf("%s changes too often", port),
			fmt.Sprintf("at most %d times", maxPortEvents))
	}
}
