// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/lazy"
	"github.com/pcn-linux/pcn/internal/workload"
)

// Workloads holds the workloads of an experiment: a file has one or a list of them.
type Workloads []Workload

// OneOrMore implements [config.OneOrMore].
func (Workloads) OneOrMore() {}

// Workload generates TCP flows that arrive at random with sizes of a distribution, as `pcn
// workload` prints them. Workload w has the flows w0, w1 and so on, whose group is w.
type Workload struct {
	// Name is unique in the file. Default "w"; required in a list of several.
	Name string `yaml:"name"`
	// CDF is the distribution of sizes: one of [workload.CDFs], or a file, whose name has a dot or
	// a slash. Required.
	CDF string `yaml:"cdf"`
	// From are hosts that send. Default: all.
	From NodeList `yaml:"from"`
	// To are hosts that receive; each arrival picks one at random. Default: all.
	To NodeList `yaml:"to"`
	// Load is the mean rate of data without headers to each receiver, as a share of the receiver's
	// own link. Hosts with faster links send more, in proportion. Above 0, at most 100. This or
	// MeanRate is required.
	Load Ratio `yaml:"load"`
	// LoadOf says of whose links Load is a share: receivers (default), or senders, each of its own.
	LoadOf LoadEnd `yaml:"load_of"`
	// MeanRate is, in place of Load, the mean rate of data to each receiver, over all of them: a
	// faster link gets more of it, in proportion.
	MeanRate Rate `yaml:"mean_rate"`
	// Incast is how many hosts start to send to the same receiver at the same ns. Default 1.
	Incast Incast `yaml:"incast"`
	// SameSize gives all flows of an incast the same size. Default false.
	SameSize bool `yaml:"same_size"`
	// Start and Until bound the starts of flows, Until excluded. Default: from 0 to the end of the
	// run.
	Start Duration `yaml:"start"`
	Until Duration `yaml:"until"`
	// Classes are growing sizes: a flow smaller than the first has priority 0, one smaller than the
	// second 1, and so on. Default: none.
	Classes []Bytes `yaml:"classes"`
}

// LoadEnd is an end of flows.
type LoadEnd string

// The ends.
const (
	LoadOfReceivers LoadEnd = "receivers"
	LoadOfSenders   LoadEnd = "senders"
)

func loadEnds() []LoadEnd { return []LoadEnd{LoadOfReceivers, LoadOfSenders} }

// Incast is a number of hosts, or a range such as 1..15 from which each arrival picks at random.
type Incast struct{ Min, Max int }

// ParseIncast parses a number of hosts, or a range such as 1..15.
func ParseIncast(text string) (Incast, error) {
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		last = first
	}
	low, err1 := strconv.Atoi(first)
	high, err2 := strconv.Atoi(last)
	if err1 != nil || err2 != nil {
		return Incast{}, config.Bad(fmt.Sprintf("%q is not a number of hosts", text),
			"write 14 or 1..15")
	}
	if low < 1 || low > high {
		return Incast{}, config.Bad(fmt.Sprintf("incast of %d to %d is none", low, high),
			"write 14 or 1..15")
	}
	return Incast{low, high}, nil
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (i *Incast) UnmarshalYAML(n *yaml.Node) error {
	return config.UnmarshalScalar(i, n, ParseIncast)
}

// Sizes is a range of flow sizes, To excluded: 10KB..100KB, ..10KB or 1MB... A To of 0 is no limit.
type Sizes struct{ From, To Bytes }

// ParseSizes parses a range of sizes.
func ParseSizes(text string) (Sizes, error) {
	const hint = "write 10KB..100KB, ..10KB or 1MB.."
	first, last, isRange := strings.Cut(text, "..")
	if !isRange || first+last == "" {
		return Sizes{}, config.Bad(fmt.Sprintf("%q is not a range of sizes", text), hint)
	}
	var s Sizes
	for _, end := range []struct {
		text string
		size *Bytes
	}{{first, &s.From}, {last, &s.To}} {
		if end.text == "" {
			continue
		}
		var err error
		if *end.size, err = config.ParseBytes(end.text); err != nil {
			return Sizes{}, err
		}
	}
	if last != "" && s.To <= s.From {
		return Sizes{}, config.Bad(fmt.Sprintf("no size is in %q", text), hint)
	}
	return s, nil
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (s *Sizes) UnmarshalYAML(n *yaml.Node) error {
	return config.UnmarshalScalar(s, n, ParseSizes)
}

// Has reports whether a size is in the range.
func (s Sizes) Has(bytes uint64) bool {
	return bytes >= uint64(s.From) && (s.To == 0 || bytes < uint64(s.To))
}

// String returns the range as files write it; empty if it includes all sizes.
func (s Sizes) String() string {
	switch {
	case s == (Sizes{}):
		return ""
	case s.To == 0:
		return s.From.String() + ".."
	case s.From == 0:
		return ".." + s.To.String()
	default:
		return s.From.String() + ".." + s.To.String()
	}
}

// defaultWorkload is the name of the only workload of a file.
const defaultWorkload = "w"

// seedStep is the distance between the seeds of workloads: no experiment uses that many seeds.
const seedStep = 1 << 32

// fillWorkload sets the defaults of the i-th workload.
func (d *decoder) fillWorkload(e *Experiment, i int) {
	w, path := &e.Workload[i], fmt.Sprintf("workload[%d].", i)
	if !d.has(path+"name") && len(e.Workload) == 1 {
		w.Name = defaultWorkload
	}
	if !d.has(path + "incast") {
		w.Incast = Incast{1, 1}
	}
	if !d.has(path + "load_of") {
		w.LoadOf = LoadOfReceivers
	}
}

// objectPrefix matches names of workloads, which numbers follow in names of flows.
var objectPrefix = lazy.Regexp(`^[A-Za-z][A-Za-z_-]{0,31}$`)

// validateWorkload checks a workload, and notes what generates its flows.
func (d *decoder) validateWorkload(e *Experiment, i int) {
	w, path, before := e.Workload[i], fmt.Sprintf("workload[%d].", i), len(d.Errs)
	if w.Name != defaultWorkload || len(e.Workload) > 1 {
		d.checkName(path+"name", w.Name, objectPrefix,
			"letters, \"_\" and \"-\", as its flows are numbered")
	}
	s := workload.Spec{Senders: w.From, Receivers: w.To,
		LinkBps:   func(host string) uint64 { return uint64(e.HostRate(host)) },
		MinIncast: w.Incast.Min, MaxIncast: w.Incast.Max, SameSize: w.SameSize}
	if !d.has(path + "from") {
		s.Senders = d.hosts
	}
	if !d.has(path + "to") {
		s.Receivers = d.hosts
	}
	for key, hosts := range map[string]NodeList{"from": w.From, "to": w.To} {
		d.checkAllKnown(path+key, "host", hosts, d.hosts)
		d.checkUnique(path+key, "host", hosts)
	}
	s.Load = d.loadOf(path, w, e, &s)
	config.InRange(d.Decoder, path+"start", w.Start, -e.Warmup, e.Duration-1)
	if d.has(path+"until") && (d.chosen.Duration == nil || w.Until <= w.Start) {
		config.InRange(d.Decoder, path+"until", w.Until, w.Start+1, e.Duration)
	} // else a shorter run was chosen: flows start until its end
	d.validateGrowing(path+"classes", w.Classes)
	if len(w.Classes) >= Priorities {
		d.fail(path+"classes", fmt.Sprintf("%d sizes make %d priorities", len(w.Classes),
			len(w.Classes)+1), fmt.Sprintf("at most %d", Priorities))
	}
	for _, size := range w.Classes {
		s.ClassBytes = append(s.ClassBytes, uint64(size))
	}
	if !d.hasRequired(path, "cdf") {
		return
	}
	s.Sizes = d.sizesOf(path+"cdf", w.CDF, e)
	if len(d.Errs) == before && d.isHost != nil { // else the topology has a mistake
		e.specs = append(e.specs, s)
	}
}

// loadOf returns the load of a workload.
func (d *decoder) loadOf(path string, w Workload, e *Experiment, s *workload.Spec) float64 {
	d.checkKnown(path+"load_of", "end", string(w.LoadOf), toStrings(loadEnds()))
	switch {
	case d.has(path+"load_of") && !d.has(path+"load"):
		d.fail(path+"load_of", "\"load_of\" needs \"load\"", "write load: 0.5")
	case d.has(path+"load") && d.has(path+"mean_rate"):
		d.fail(path+"mean_rate", "\"load\" and \"mean_rate\" are both given", "keep one of them")
	case d.has(path + "mean_rate"):
		d.rateInRange(e, path+"mean_rate", w.MeanRate)
		return float64(w.MeanRate) / float64(max(s.MeanLinkBps(), 1))
	case d.hasRequired(path, "load"):
		config.InRange(d.Decoder, path+"load", w.Load, minFraction, 100)
	}
	if w.LoadOf == LoadOfSenders {
		return float64(w.Load) * s.SenderLinks()
	}
	return float64(w.Load)
}

// sizesOf returns a distribution; nil after an error.
func (d *decoder) sizesOf(path, cdf string, e *Experiment) *workload.CDF {
	if !strings.ContainsAny(cdf, "./") { // not a file
		if !d.checkKnown(path, "distribution of sizes", cdf, workload.CDFs()) {
			return nil
		}
		sizes, err := workload.NamedCDF(cdf)
		if err != nil {
			d.fail(path, err.Error(), "")
		}
		return sizes
	}
	file, text, ok := d.attachedText(path, e, cdf)
	if !ok {
		return nil
	}
	sizes, err := workload.ParseCDF(file, text)
	if err != nil {
		d.failParse(file, err)
		return nil
	}
	if sizes.Counted {
		e.warn("%s: of three values the first is the size in bytes, the last the share: if sizes "+
			"are packets, multiply them", cdf)
	}
	return sizes
}

// makeFlows generates the flows of the workloads and replaces earlier ones. It does nothing if a
// workload has a mistake.
func (d *decoder) makeFlows(e *Experiment) {
	if len(e.specs) == 0 || len(e.specs) < len(e.Workload) || e.Duration <= 0 {
		return
	}
	e.Flows = slices.Clone(e.Flows[:e.given])
	for i, s := range e.specs {
		w := e.Workload[i]
		s.Seed = e.Seed + uint64(i)*seedStep
		s.FromNs, s.ToNs = int64(w.Start), int64(e.Duration)
		if w.Until != 0 {
			s.ToNs = min(s.ToNs, int64(w.Until)) // a shorter run may have been chosen
		}
		path := fmt.Sprintf("workload[%d].", i)
		if n := s.MeanFlows(); n > 2*float64(e.Engine.MaxFlows()) {
			d.fail(path+"load", fmt.Sprintf("%.3g flows are too many", n),
				fmt.Sprintf("at most %d", e.Engine.MaxFlows()))
			return
		}
		flows, err := s.Generate()
		if err != nil {
			d.fail(path+"incast", errors.Unwrap(err).Error(), "")
			return
		}
		e.addGenerated(w.Name, flows)
		e.warnOfLoad(w.Name, s)
	}
	if n := len(e.Flows); n > e.Engine.MaxFlows() {
		msg, hint := e.tooManyFlows(n)
		d.fail("workload[0].load", msg, hint)
	}
}

// Offers says what each workload offers to links on average, and what it came to, by chance.
func (e *Experiment) Offers() []string {
	var all []string
	for i, s := range e.specs {
		name, flows, bytes := e.Workload[i].Name, 0, Bytes(0)
		for _, f := range e.Flows {
			if f.Group == name {
				flows, bytes = flows+1, bytes+f.Size
			}
		}
		all = append(all, fmt.Sprintf(
			"workload %s offers %s, %s; by this seed %d flows of %s in all", name,
			e.offer(&s, "to", s.Receivers), e.offer(&s, "from", s.Senders), flows,
			Quantity{Value: float64(bytes), Unit: UnitBytes}))
	}
	return all
}

// offer says what a workload offers to the links of hosts: of each the same share.
func (e *Experiment) offer(s *workload.Spec, way string, hosts []string) string {
	bps := s.OfferedBps(hosts, hosts[0])
	who := hosts[0]
	if len(hosts) > 1 {
		who = fmt.Sprintf("each of %d hosts, such as %s", len(hosts), who)
	}
	return fmt.Sprintf("%s %s %s, %s of its link", Quantity{Value: bps, Unit: UnitRate}, way, who,
		Quantity{Value: bps / float64(e.HostRate(hosts[0])), Unit: UnitShare})
}

// warnOfLoad warns of a workload that offers more than links carry.
func (e *Experiment) warnOfLoad(name string, s workload.Spec) {
	for _, at := range []struct {
		what, host string
		bps        float64
	}{
		{"to", s.Receivers[0], s.OfferedBps(s.Receivers, s.Receivers[0])},
		{"from", s.Senders[0], s.OfferedBps(s.Senders, s.Senders[0])},
	} {
		if link := e.HostRate(at.host); at.bps > float64(link) {
			e.warn("workload %s offers %s %s %s, and its link carries %s", name,
				Rate(math.Round(at.bps)), at.what, at.host, link)
			return
		}
	}
}

// addGenerated adds the flows of a workload.
func (e *Experiment) addGenerated(name string, flows []workload.Flow) {
	for k, f := range flows {
		e.Flows = append(e.Flows, Flow{
			Name: name + strconv.Itoa(k), Group: name, From: f.Src, To: f.Dst,
			Priority: int(f.Priority), Start: Duration(f.StartNs), Size: Bytes(f.SizeBytes),
			InitialRate: e.HostRate(f.Src), LimitRate: e.HostRate(f.Src), Traced: true,
		})
	}
}

// TracedFlows returns the flows of traces and workloads in the form of package workload.
func (e *Experiment) TracedFlows() []workload.Flow {
	traced := 0
	for i := range e.Flows {
		if e.Flows[i].Traced {
			traced++
		}
	}
	if traced == 0 {
		return nil
	}
	flows := make([]workload.Flow, 0, traced)
	for i := range e.Flows {
		if f := &e.Flows[i]; f.Traced {
			flows = append(flows, workload.Flow{StartNs: int64(f.Start), Src: f.From, Dst: f.To,
				SizeBytes: uint64(f.Size), Priority: uint8(f.Priority)})
		}
	}
	return flows
}
