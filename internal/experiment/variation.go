// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
)

// NamedMetric is a metric of a run without bounds, for sweeps to collect.
type NamedMetric struct {
	// Name is unique in the file: lower-case letters, digits, "-" and "_". Required.
	Name string `yaml:"name"`
	// Measure is what is measured.
	Measure `yaml:",inline"`
	// Over is how values of several links, ports and flows become one. Default: max.
	Over Over `yaml:"over"`
}

// Changes are what a command line, a seed, a sweep or a result changes of an experiment. Those that
// are nil change nothing.
type Changes struct {
	// Schemes, Seed, Duration and Dilation replace the file's. Schemes may be any that a file can
	// list, such as a baseline.
	Schemes  []string
	Seed     *uint64
	Duration *Duration
	Dilation *uint
	// Cases are those of the file that remain.
	Cases []string

	// File is the file of Set and Metrics, for errors.
	File string
	// Set holds mappings of paths to new values, as in [Case.Set]. Later ones override earlier
	// ones, and all override the case.
	Set []*yaml.Node
	// Metrics is the node of [Experiment.Metrics]. They replace the experiment's expectations and
	// comparisons, which hold for its own values only.
	Metrics *yaml.Node
}

// any reports whether something is chosen that is not a part of the source.
func (c Changes) any() bool {
	return c.Schemes != nil || c.Seed != nil || c.Duration != nil || c.Dilation != nil ||
		c.Cases != nil
}

// rewrites reports whether the changes make another source.
func (c Changes) rewrites() bool { return c.Set != nil || c.Metrics != nil }

// after returns the choices of c, and of earlier ones those that c does not replace.
func (c Changes) after(earlier Changes) Changes {
	earlier.Seed = cmp.Or(c.Seed, earlier.Seed)
	earlier.Duration = cmp.Or(c.Duration, earlier.Duration)
	earlier.Dilation = cmp.Or(c.Dilation, earlier.Dilation)
	if c.Schemes != nil {
		earlier.Schemes = slices.Clone(c.Schemes)
	}
	if c.Cases != nil {
		earlier.Cases = slices.Clone(c.Cases)
	}
	return earlier
}

// origin is what an experiment was read from, to read it again with changes.
type origin struct {
	file     string
	root     *yaml.Node            // with what its case sets; nothing changes it
	of       map[*yaml.Node]string // files of nodes that come from others
	attached attached
	schemes  []string // of the file
}

// originOf returns the origin of an experiment that d has read from root.
func (d *decoder) originOf(root *yaml.Node, e *Experiment) origin {
	o := origin{d.File, root, d.Of, d.attached, e.Schemes}
	if d.declared != nil {
		o.schemes = d.declared
	}
	return o
}

// FileDuration returns the duration that the file says, whatever was chosen.
func (e *Experiment) FileDuration() Duration {
	if e.origin.root != nil {
		if n := valueOf(e.origin.root, "duration"); n != nil {
			if d, err := config.ParseDuration(n.Value); err == nil {
				return d
			}
		}
	}
	return e.Duration
}

// again returns a decoder of the same file.
func (d *decoder) again() *decoder {
	a := newDecoder(d.File)
	a.Of = maps.Clone(d.Of)
	a.attached, a.catalogue, a.options = d.attached, d.catalogue, d.options
	a.chosen, a.declared = d.chosen, d.declared
	return a
}

// decoder returns a decoder that reads e again.
func (e *Experiment) decoder() *decoder {
	o := e.origin
	d := newDecoder(o.file)
	d.Of, d.attached, d.catalogue = maps.Clone(o.of), o.attached, e.parameters.catalogue
	d.chosen = e.chosen
	return d
}

// With returns the experiment with changes, and each of its cases. It reads the file again as if
// the changes stood in it, so that it refuses what a file may not say.
//
// What is chosen leaves the source as it is. Set and Metrics make a new source, which has no cases.
func (e *Experiment) With(c Changes) (*Experiment, error) {
	if c.rewrites() {
		w, err := e.rewritten(c)
		if err != nil {
			return nil, err
		}
		c.Set, c.Metrics = nil, nil
		return w.With(c.after(e.chosen))
	}
	kept := *e
	if c.Cases != nil {
		if err := kept.keepCases(c.Cases); err != nil {
			return nil, err
		}
	}
	c.Cases = nil
	if !c.any() {
		return &kept, nil
	}
	if v, ok := kept.redrawn(c); ok {
		return v, nil
	}
	return kept.chosenAgain(c)
}

// chosenAgain reads the experiment, or if it has cases these alone, again with the choices.
func (e *Experiment) chosenAgain(c Changes) (*Experiment, error) {
	d := e.decoder()
	d.chosen, d.declared = c.after(e.chosen), e.origin.schemes
	v := e
	if len(e.Cases) == 0 {
		v = d.experiment(e.origin.root, e.CaseName)
		v.Cases, v.source = nil, e.source
	} else { // the file itself is not run, and need not fit
		v = e.copyWith(c)
		v.variants = d.variants(v)
		for _, variant := range v.variants {
			variant.source = e.source
		}
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return v, nil
}

// copyWith returns a copy with the values that were chosen, and what was derived before.
func (e *Experiment) copyWith(c Changes) *Experiment {
	v := *e
	v.chosen = c.after(e.chosen)
	if c.Schemes != nil {
		v.Schemes = slices.Clone(c.Schemes)
	}
	if c.Seed != nil {
		v.Seed = *c.Seed
	}
	if c.Duration != nil {
		v.Duration = *c.Duration
	}
	if c.Dilation != nil {
		v.Dilation = Dilation{Shift: *c.Dilation}
	}
	return &v
}

// redrawn is the quick way for changes that no check depends on, of which many runs are made: other
// seeds, a valid dilation, and some of the schemes. It reports whether the changes are such.
func (e *Experiment) redrawn(c Changes) (*Experiment, bool) {
	sameTime := c.Duration == nil || *c.Duration == e.Duration
	if !sameTime || c.Dilation != nil && *c.Dilation > MaxDilation || !e.runsAll(c.Schemes) {
		return nil, false
	}
	v := e.copyWith(c)
	v.variants = nil
	for _, of := range e.Cases {
		variant, ok := e.variants[of.Name].redrawn(c)
		if !ok {
			return nil, false
		}
		if v.variants == nil {
			v.variants = map[string]*Experiment{}
		}
		v.variants[of.Name] = variant
	}
	if c.Seed != nil && len(e.Cases) == 0 {
		d := v.decoder()
		d.rederive(v)
		return v, len(d.Errs) == 0 // else the long way finds the place of the error
	}
	return v, true
}

// runsAll reports whether the experiment runs each of some schemes; nil are all.
func (e *Experiment) runsAll(schemes []string) bool {
	if schemes == nil {
		return true
	}
	for i, s := range schemes {
		if !slices.Contains(e.Schemes, s) || slices.Contains(schemes[:i], s) {
			return false
		}
	}
	return len(schemes) > 0
}

// schemesOf returns the schemes that the file may name: its own, and those that were chosen.
func (d *decoder) schemesOf(e *Experiment) []string { return slices.Concat(e.Schemes, d.declared) }

// flag begins the place of an error in a value that was chosen: `pcn run` names it so.
const flag = "--"

// choose returns a copy of the tree with the values that were chosen.
func (d *decoder) choose(root *yaml.Node) *yaml.Node {
	c := d.chosen
	if c.Schemes != nil {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, s := range c.Schemes {
			list.Content = append(list.Content, d.flagged("algo", s))
		}
		d.Of[list] = flag + "algo"
		root = withValue(root, "schemes", list)
	}
	if c.Seed != nil {
		root = withValue(root, "seed", d.flagged("seed", strconv.FormatUint(*c.Seed, 10)))
	}
	if c.Duration != nil {
		root = withValue(root, "duration", d.flagged("duration", c.Duration.String()))
	}
	if c.Dilation != nil {
		shift := strconv.FormatUint(uint64(*c.Dilation), 10)
		root = withValue(root, "dilation", d.flagged("dilation", shift))
	}
	return root
}

// flagged returns a node whose errors name a flag.
func (d *decoder) flagged(name, value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: value}
	d.Of[n] = flag + name
	return n
}

// withValue returns a copy of a mapping with a value.
func withValue(root *yaml.Node, key string, value *yaml.Node) *yaml.Node {
	c := *root
	c.Content = slices.Clone(root.Content)
	if at := config.ValueIndex(&c, key); at >= 0 {
		c.Content[at] = value
	} else {
		c.Content = append(c.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
	}
	return &c
}

// rewritten returns the experiment of another source, without what was chosen.
func (e *Experiment) rewritten(c Changes) (*Experiment, error) {
	d := e.decoder()
	d.chosen = Changes{}
	root, err := withFiles(e.origin.root, e.origin.attached.read)
	if err != nil {
		return nil, err
	}
	budget := maxNodes
	root = d.withoutAliases(root, "", &budget)
	for _, key := range []string{"cases", "expect", "compare", "metrics"} {
		if at := config.ValueIndex(root, key); at >= 0 {
			root.Content = slices.Delete(root.Content, at-1, at+1)
		}
	}
	for _, set := range c.Set {
		root = d.withSettings(root, d.withoutAliases(set, c.File, &budget))
	}
	if c.Metrics != nil {
		list := d.withoutAliases(c.Metrics, c.File, &budget)
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "metrics",
			Line: list.Line, Column: list.Column}, list)
	}
	if budget < 0 {
		return nil,
			fmt.Errorf("%s and experiment %s are too large once their aliases are written out",
				c.File, e.Name)
	}
	v := d.experiment(root, "")
	if err := d.Err(); err != nil {
		return nil, err
	}
	if v.source, err = yaml.Marshal(root); err != nil {
		return nil, fmt.Errorf("write the experiment of a sweep: %w", err)
	}
	read, err := Parse(e.Name+".yaml", v.source)
	if err != nil {
		return nil, fmt.Errorf("read the experiment of a sweep again: %w", err)
	}
	if read.Cases != nil {
		return nil, errors.New("the experiment of a sweep has cases")
	}
	return v, nil
}

// maxNodes limits the size of a tree whose aliases are written out.
const maxNodes = 1_000_000

// withoutAliases returns a copy of the tree without aliases, whose errors name the file. It is
// incomplete if the budget of nodes runs out.
func (d *decoder) withoutAliases(n *yaml.Node, file string, budget *int) *yaml.Node {
	n = behindAliases(n)
	c := *n
	c.Anchor, c.Content = "", nil
	if file = cmp.Or(d.Of[n], file); file != "" {
		d.Of[&c] = file
	}
	for _, child := range n.Content {
		if *budget--; *budget < 0 {
			break
		}
		c.Content = append(c.Content, d.withoutAliases(child, file, budget))
	}
	return &c
}
