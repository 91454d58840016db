// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"
	"fmt"
	"slices"

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

// Variation holds the changes that another file makes to an experiment.
type Variation struct {
	// File is the file of all nodes, for errors.
	File string
	// Case is the case of the experiment to start from; empty if it has none.
	Case string
	// Set holds mappings of paths to new values, as in [Case.Set]. Later ones override earlier
	// ones, and all override the case.
	Set []*yaml.Node
	// Metrics is the node of [Experiment.Metrics]; nil if there are none.
	Metrics *yaml.Node
}

// Vary returns the experiment of a case with other values; its source has no cases. The metrics
// replace the experiment's expectations and comparisons, which hold for its own values only.
func (e *Experiment) Vary(v Variation) (*Experiment, error) {
	if err := e.knownCases([]string{v.Case}); err != nil {
		return nil, err
	}
	d := newDecoder(e.Name + ".yaml")
	root := d.Root(e.source)
	if root == nil {
		return nil, d.Err()
	}
	budget := maxNodes
	root = d.withoutAliases(root, "", &budget)
	var settings []*yaml.Node
	if set := settingsOf(root, v.Case); set != nil {
		settings = append(settings, set)
	}
	for _, set := range v.Set {
		settings = append(settings, d.withoutAliases(set, v.File, &budget))
	}
	for _, key := range []string{"cases", "expect", "compare", "metrics"} {
		if at := config.ValueIndex(root, key); at >= 0 {
			root.Content = slices.Delete(root.Content, at-1, at+1)
		}
	}
	for _, set := range settings {
		root = d.withSettings(root, set)
	}
	if v.Metrics != nil {
		list := d.withoutAliases(v.Metrics, v.File, &budget)
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "metrics",
			Line: list.Line, Column: list.Column}, list)
	}
	if budget < 0 {
		return nil,
			fmt.Errorf("%s and experiment %s are too large once their aliases are written out",
				v.File, e.Name)
	}
	if d.experiment(root, ""); len(d.Errs) > 0 {
		return nil, d.Err()
	}
	source, err := yaml.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("write the experiment of a sweep: %w", err)
	}
	varied, err := Parse(e.Name+".yaml", source)
	if err != nil {
		return nil, fmt.Errorf("read the experiment of a sweep again: %w", err)
	}
	if varied.Cases != nil {
		return nil, errors.New("the experiment of a sweep has cases")
	}
	return varied, nil
}

// settingsOf returns what a case of the file sets; nil if there is no such case, or it sets
// nothing. The file may have more cases than the experiment, of which some were chosen.
func settingsOf(root *yaml.Node, name string) *yaml.Node {
	cases := config.ValueIndex(root, "cases")
	if cases < 0 {
		return nil
	}
	for _, c := range root.Content[cases].Content {
		if at := config.ValueIndex(c, "name"); at < 0 || c.Content[at].Value != name {
			continue
		}
		if at := config.ValueIndex(c, "set"); at >= 0 {
			return c.Content[at]
		}
	}
	return nil
}

// maxNodes limits the size of a tree whose aliases are written out.
const maxNodes = 1_000_000

// withoutAliases returns a copy of the tree without aliases, whose errors name the file. It is
// incomplete if the budget of nodes runs out.
func (d *decoder) withoutAliases(n *yaml.Node, file string, budget *int) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	c := *n
	c.Anchor, c.Content = "", nil
	if file != "" {
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
