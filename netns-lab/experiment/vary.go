// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// NamedMetric is a metric of a run that is held against nothing. Sweeps collect them.
type NamedMetric struct {
	// Name is unique in the file: lower-case letters, digits, "-" and "_". Required.
	Name string `yaml:"name"`
	// Measure is what is measured.
	Measure `yaml:",inline"`
	// Over makes one value of those of several links, ports and flows. Default: max.
	Over Over `yaml:"over"`
}

// Variation is how an experiment is changed by another file.
type Variation struct {
	// File is that of all nodes, as errors name it.
	File string
	// Case is that of the experiment whose values are taken; empty if it has none.
	Case string
	// Set are mappings of paths to new values, as [Case.Set] is. Later ones win over earlier ones,
	// and all over the case.
	Set []*yaml.Node
	// Metrics is the list of [Experiment.Metrics]; nil is none.
	Metrics *yaml.Node
}

// Vary returns the experiment of a case with other values, as one whose source has no cases. It has
// the metrics in place of what the experiment expects and compares, which is about its own values.
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
	root = d.own(root, "", &budget)
	var settings []*yaml.Node
	if i := slices.IndexFunc(e.Cases, func(c Case) bool { return c.Name == v.Case }); i >= 0 {
		if at := valueOf(root.Content[valueOf(root, "cases")].Content[i], "set"); at >= 0 {
			settings = append(settings, root.Content[valueOf(root, "cases")].Content[i].Content[at])
		}
	}
	for _, set := range v.Set {
		settings = append(settings, d.own(set, v.File, &budget))
	}
	for _, key := range []string{"cases", "expect", "compare", "metrics"} {
		if at := valueOf(root, key); at >= 0 {
			root.Content = slices.Delete(root.Content, at-1, at+1)
		}
	}
	for _, set := range settings {
		root = d.withSettings(root, set)
	}
	if v.Metrics != nil {
		list := d.own(v.Metrics, v.File, &budget)
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

// maxNodes bounds what aliases of aliases grow to.
const maxNodes = 1_000_000

// own returns a copy of the tree that has no aliases, and whose errors are of the file, if that is
// another one. It is not complete if the budget of nodes is used up.
func (d *decoder) own(n *yaml.Node, file string, budget *int) *yaml.Node {
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
		c.Content = append(c.Content, d.own(child, file, budget))
	}
	return &c
}
