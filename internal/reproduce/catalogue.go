// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// Paper is a file of the catalogue: what one paper claims.
type Paper struct {
	// Paper is its short name: lower-case letters, digits and "-". Required.
	Name string `yaml:"paper"`
	// Title is its title and where it appeared. Required.
	Title string `yaml:"title"`
	// Open are claims that nothing here measures.
	Open []OpenClaim `yaml:"open"`
	// Figures are its figures and tables. Required.
	Figures []Figure `yaml:"figures"`
}

// OpenClaim is a claim that no figure measures.
type OpenClaim struct {
	// What says it in words, Quote is the paper's text, and Why says what is missing. Required.
	What  string `yaml:"what"`
	Quote string `yaml:"quote"`
	Why   string `yaml:"why"`
}

// Figure is a figure or table of a paper, and the experiment that repeats it.
type Figure struct {
	// Name is unique in the paper; PAPER-NAME names the figure. Required.
	Name string `yaml:"name"`
	// Title is one line. Required.
	Title string `yaml:"title"`
	// Note says what differs from the paper's set-up, or is chosen by us.
	Note string `yaml:"note"`
	// CauseOf names the figure of the paper some of whose claims are not met, if this one runs it
	// without what is thought to be the cause. Its claims are not counted: they say whether the
	// paper's numbers come back.
	CauseOf string `yaml:"cause_of"`
	// Experiment is the experiment's name, or the path of its file. Required.
	Experiment string `yaml:"experiment"`
	// Cost is how long one seed takes one CPU in the simulation, to tell the time left. Required
	// unless the figure is for the kernel alone.
	Cost experiment.Duration `yaml:"cost"`
	// Sim is what the simulation runs, Quick what it runs with --quick, and Kernel what Linux runs.
	// Without schemes or cases of their own, Quick and Kernel have those of Sim. At least one of
	// Sim and Kernel is required, and Quick with Sim.
	Sim    *Part `yaml:"sim"`
	Quick  *Part `yaml:"quick"`
	Kernel *Part `yaml:"kernel"`
	// Draw asks for the experiment's figures over time, with bands over the seeds.
	Draw bool `yaml:"draw"`
	// Claims are what the paper says. Required.
	Claims []Claim `yaml:"claims"`

	// Paper is the file that the figure stands in.
	Paper *Paper
}

// ID returns the name by which the command line knows the figure.
func (f *Figure) ID() string { return f.Paper.Name + "-" + f.Name }

// Part is what an engine runs of a figure.
type Part struct {
	Seeds   experiment.Seeds  `yaml:"seeds"`
	Schemes []string          `yaml:"schemes"`
	Cases   []string          `yaml:"cases"`
	Set     map[string]string `yaml:"set"` // in all runs
	// Cost is that of one seed, as of the figure.
	Cost experiment.Duration `yaml:"cost"`
}

// Claim is a number or a relation that a paper states or shows.
type Claim struct {
	// What says it in words. Required.
	What string `yaml:"what"`
	// Quote is the paper's text, or where in a figure the number was read. Required.
	Quote string `yaml:"quote"`
	// Paper is the paper's word, such as "fair". Required without Number and Numbers.
	Paper string `yaml:"paper"`
	// Rule says which band the paper leaves. Required.
	Rule Rule `yaml:"rule"`
	// Number is the paper's, and stands in Quote; Numbers are the two of a rule "between".
	Number  *experiment.Quantity  `yaml:"number"`
	Numbers []experiment.Quantity `yaml:"numbers"`
	// NumberFrom computes Number from those of Quote: operands and + - * / from left to right.
	NumberFrom string `yaml:"number_from"`
	// Within is a narrower band than a quarter, for the rule "near".
	Within experiment.Ratio `yaml:"within"`
	// Scheme and Case say whose runs are measured; Case is empty if the figure has one, or for the
	// value over all of them.
	Scheme string `yaml:"scheme"`
	Case   string `yaml:"case"`
	// Measure is what is measured.
	experiment.Measure `yaml:",inline"`
	// Over is how values of several links, ports, flows and cases become one. Default: max.
	Over experiment.Over `yaml:"over"`
	// RelativeTo makes the value a ratio to that of other runs with the same seed.
	RelativeTo *Base `yaml:"relative_to"`
	// Statistic of the values over the seeds. Default: median.
	Statistic Statistic `yaml:"statistic"`
	// AtLength has a share of runs be that of runs so long, at the same rate of events while none
	// has happened: shares of runs of different lengths can't be compared. For the metric deadlock.
	AtLength experiment.Duration `yaml:"at_length"`
	// Min and Max are the band. The rule computes them, but for "ours", which needs at least one.
	Min *experiment.Quantity `yaml:"min"`
	Max *experiment.Quantity `yaml:"max"`
	// Missed says why the claim is not met, if it is not, and Shows the command that shows it.
	Missed string `yaml:"missed"`
	Shows  string `yaml:"shows"`
	// RemovedBy names the figure that runs this one without that cause; else the cause is open.
	RemovedBy string `yaml:"removed_by"`

	node *yaml.Node // the claim in the file
}

// Base says what a claim's value is a ratio to: the least of these schemes' values.
type Base struct {
	Schemes []string `yaml:"schemes"` // default: the claim's
	Case    string   `yaml:"case"`    // default: the claim's
}

// Statistic is how the values of several seeds become one.
type Statistic string

// The values of [Statistic].
const (
	Median Statistic = "median"
	Mean   Statistic = "mean"
)

// Rule says which band a paper leaves for a claim.
type Rule string

// The values of [Rule]. All but the last compute the band.
const (
	RuleNear    Rule = "near"     // a quarter to either side of the number, or Claim.Within
	RulePoints  Rule = "points"   // of a link's capacity: five points to either side
	RuleAtMost  Rule = "at_most"  // the text says so
	RuleAtLeast Rule = "at_least" // the text says so
	RuleBetween Rule = "between"  // the text has both ends
	RuleFactor  Rule = "factor"   // how many times better: three quarters of that are enough
	RuleNone    Rule = "none"     // none, never
	RuleSome    Rule = "some"     // at least one
	RuleLess    Rule = "less"     // a ratio below 1
	RuleMore    Rule = "more"     // a ratio above 1
	RuleOurs    Rule = "ours"     // the paper has a word and no number; the band is ours
)

//go:embed catalogue/*.yaml
var files embed.FS

// catalogue returns the papers that come with the program.
func catalogue() ([]*Paper, error) {
	names, err := fs.Glob(files, "catalogue/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the catalogue: %w", err)
	}
	var papers []*Paper
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the catalogue: %w", err)
		}
		p, err := Parse(name, data)
		if err != nil {
			return nil, err
		}
		papers = append(papers, p)
	}
	return papers, nil
}

// Choose returns the figures that the names ask for, each once, in the order of the catalogue: a
// paper, a figure, or the path of a catalogue file. Without names it returns all.
func Choose(names []string) ([]*Figure, error) {
	papers, err := catalogue()
	if err != nil {
		return nil, err
	}
	chosen := map[string]bool{}
	var known []string
	for _, p := range papers {
		known = append(known, p.Name)
		for _, f := range p.Figures {
			known = append(known, f.ID())
		}
	}
	everything := len(names) == 0
	for _, name := range names {
		if experiment.IsFile(name) {
			p, err := load(name)
			if err != nil {
				return nil, err
			}
			papers = slices.DeleteFunc(papers, func(o *Paper) bool { return o.Name == p.Name })
			papers = append(papers, p)
			chosen[p.Name] = true
			continue
		}
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no paper or figure is named %q (hint: %s)", name,
				cmp.Or(config.Suggest(name, known), "pcn reproduce --list"))
		}
		chosen[name] = true
	}
	var figures []*Figure
	for _, p := range papers {
		for i := range p.Figures {
			if f := &p.Figures[i]; everything || chosen[p.Name] || chosen[f.ID()] {
				figures = append(figures, f)
			}
		}
	}
	return figures, nil
}

func load(path string) (*Paper, error) {
	data, err := config.ReadFile(path, config.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	return Parse(path, data)
}

// Parse parses a file of the catalogue. The error joins one [*config.Error] for each mistake.
func Parse(path string, data []byte) (*Paper, error) {
	d := config.NewDecoder(path, "catalogue", "paper: and figures:")
	root := d.Root(data)
	if root == nil {
		return nil, d.Err()
	}
	p := &Paper{}
	d.Decode(root, p)
	check(d, p)
	return p, d.Err()
}

// check adds the mistakes of a file. Those of what is run are found by the sweep.
func check(d *config.Decoder, p *Paper) {
	require(d, "", "paper", "title", "figures")
	checkName(d, "paper", p.Name)
	for i := range p.Open {
		require(d, fmt.Sprintf("open[%d].", i), "what", "quote", "why")
	}
	names := map[string]bool{}
	for i := range p.Figures {
		f, at := &p.Figures[i], fmt.Sprintf("figures[%d].", i)
		f.Paper = p
		require(d, at, "name", "title", "experiment", "claims")
		checkName(d, at+"name", f.Name)
		if names[f.Name] {
			d.Fail(at+"name", fmt.Sprintf("duplicate figure %q", f.Name), "rename one of them")
		}
		names[f.Name] = true
		if f.CauseOf != "" && (f.CauseOf == f.Name || !names[f.CauseOf]) {
			d.Fail(at+"cause_of", fmt.Sprintf("no figure before is named %q", f.CauseOf),
				"put the figure behind the one that it explains")
		}
		checkParts(d, at, f)
		for k := range f.Claims {
			path := fmt.Sprintf("%sclaims[%d]", at, k)
			f.Claims[k].node = d.Nodes[path]
			checkRemoved(d, path+".", p, f, f.Claims[k].RemovedBy)
			checkClaim(d, path+".", &f.Claims[k])
		}
	}
}

// checkRemoved checks the name of the figure that runs another without a cause.
func checkRemoved(d *config.Decoder, at string, p *Paper, f *Figure, name string) {
	if name != "" && !slices.ContainsFunc(p.Figures,
		func(o Figure) bool { return o.Name == name && o.CauseOf == f.Name }) {
		d.Fail(at+"removed_by", fmt.Sprintf("no figure %q has cause_of: %s", name, f.Name), "")
	}
}

func require(d *config.Decoder, at string, keys ...string) {
	for _, key := range keys {
		if !d.Has(at + key) {
			d.Fail(at+key, fmt.Sprintf("%q is missing", key), "")
		}
	}
}

func checkName(d *config.Decoder, at, name string) {
	if d.Has(at) && !experiment.IsFileName(name) {
		d.Fail(at, fmt.Sprintf("%q can't be a name", name), `lower-case letters, digits and "-"`)
	}
}

func checkParts(d *config.Decoder, at string, f *Figure) {
	if f.Sim == nil && f.Kernel == nil {
		d.Fail(at+"sim", "the figure has neither \"sim\" nor \"kernel\"",
			"write sim: {seeds: 1..30}")
	}
	if f.Sim != nil {
		require(d, at, "quick", "cost")
		require(d, at+"sim.", "seeds")
	}
	for name, part := range map[string]*Part{"quick": f.Quick, "kernel": f.Kernel} {
		if part == nil {
			continue
		}
		require(d, at+name+".", "seeds")
		part.fillFrom(f.Sim)
	}
	for _, part := range []*Part{f.Sim, f.Quick} {
		if part != nil {
			part.Cost = cmp.Or(part.Cost, f.Cost)
		}
	}
}

// fillFrom adds the schemes and cases that the part leaves out.
func (p *Part) fillFrom(sim *Part) {
	if sim == nil {
		return
	}
	if p.Schemes == nil {
		p.Schemes = sim.Schemes
	}
	if p.Cases == nil {
		p.Cases = sim.Cases
	}
}

func checkClaim(d *config.Decoder, at string, c *Claim) {
	require(d, at, "what", "quote", "rule", "scheme", "metric")
	checkRule(d, at, c)
	c.Statistic = cmp.Or(c.Statistic, Median)
	if c.Statistic != Median && c.Statistic != Mean {
		d.Fail(at+"statistic", fmt.Sprintf("unknown statistic %q", c.Statistic),
			"write median or mean")
	}
	if c.AtLength != 0 && (c.Metric != experiment.Deadlock || c.Statistic != Mean) {
		d.Fail(at+"at_length", "at_length is for shares of runs with a deadlock",
			"write metric: deadlock and statistic: mean")
	}
	if (c.Missed == "") != (c.Shows == "") {
		d.Fail(at+"missed", "\"missed\" and \"shows\" belong together",
			"say why, and which command shows it")
	}
	if c.RelativeTo != nil {
		if len(c.RelativeTo.Schemes) == 0 {
			c.RelativeTo.Schemes = []string{c.Scheme}
		}
		c.RelativeTo.Case = cmp.Or(c.RelativeTo.Case, c.Case)
	}
	for _, key := range []string{"min", "max"} {
		q := c.Min
		if key == "max" {
			q = c.Max
		}
		if want := c.unit(); q != nil && q.Value != 0 && q.Unit != want {
			d.Fail(at+key, fmt.Sprintf("%s is a %s: want a %s", q, q.Unit, want), "")
		}
	}
}

// unit returns the unit of the claim's value.
func (c *Claim) unit() config.Unit {
	if c.RelativeTo != nil {
		return config.UnitCount
	}
	return c.Metric.Unit()
}

// Band returns the band as text.
func (c *Claim) Band() string {
	text := result.FormatBound(c.Min, c.Max)
	switch c.Rule {
	case RuleOurs:
		text = "ours: " + text
	case RuleLess:
		text = "below 1"
	case RuleMore:
		text = "above 1"
	}
	return text
}
