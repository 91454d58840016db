// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/lazy"
)

// Case is a variation of the experiment.
type Case struct {
	// Name is unique in the file: lower-case letters, digits, "-" and ".". Required.
	Name string `yaml:"name"`
	// Schemes are those of the experiment's schemes that run in this case. Default: all.
	Schemes []string `yaml:"schemes"`
	// Set holds new values by their path in the file: keys joined by dots. An item of a list is
	// given by its name or index, as in flows.F1.limit_rate. Default: none.
	Set map[string]string `yaml:"set"`
}

var caseName = lazy.Regexp(`^[a-z0-9][a-z0-9.-]*$`)

// sameInAllCases holds the keys that choose and judge runs, which cases can't change.
var sameInAllCases = []string{"name", "title", "about", "cost", "engine", "seeds", "schemes",
	"files", "cases", "figures", "expect", "compare", "metrics"}

// CaseNames returns the names of the cases, or just [Experiment.CaseName] if there are none.
func (e *Experiment) CaseNames() []string {
	if len(e.Cases) == 0 {
		return []string{e.CaseName}
	}
	return caseNames(e.Cases)
}

func caseNames(cases []Case) []string {
	var names []string
	for _, c := range cases {
		names = append(names, c.Name)
	}
	return names
}

// Case returns the experiment with the values of the case, and what was chosen for e. It has no
// cases itself, and its CaseName is the name.
func (e *Experiment) Case(name string) (*Experiment, error) {
	if err := e.knownCases([]string{name}); err != nil {
		return nil, err
	}
	c := *e
	if v, ok := e.variants[name]; ok {
		c = *v
	}
	if only := e.schemesIn(name, c.Schemes); !slices.Equal(only, c.Schemes) {
		c.Schemes = only
		if len(only) > 0 { // else it does not run, but can be changed so that it does
			c.chosen.Schemes = only
		}
	}
	return &c, nil
}

// schemesIn returns those of the schemes that run in the named case.
func (e *Experiment) schemesIn(name string, schemes []string) []string {
	i := slices.IndexFunc(e.Cases, func(c Case) bool { return c.Name == name })
	if i < 0 || len(e.Cases[i].Schemes) == 0 {
		return schemes
	}
	only := e.Cases[i].Schemes
	return slices.DeleteFunc(slices.Clone(schemes),
		func(s string) bool { return !slices.Contains(only, s) })
}

// knownCases fails if the experiment lacks one of the cases.
func (e *Experiment) knownCases(names []string) error {
	known := e.CaseNames()
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		hint := "it has no cases"
		if len(e.Cases) > 0 {
			hint = "it has " + strings.Join(known, ", ")
		}
		return fmt.Errorf("experiment %s has no case %q (hint: %s)", e.Name, name, hint)
	}
	return nil
}

// keepCases removes all other cases.
func (e *Experiment) keepCases(names []string) error {
	if err := e.knownCases(names); err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("experiment %s: no case is left (hint: choose one of %s)", e.Name,
			strings.Join(e.CaseNames(), ", "))
	}
	e.Cases = slices.DeleteFunc(slices.Clone(e.Cases),
		func(c Case) bool { return !slices.Contains(names, c.Name) })
	return nil
}

func (d *decoder) validateCases(e *Experiment) {
	for i, c := range e.Cases {
		d.checkName(fmt.Sprintf("cases[%d].name", i), c.Name, caseName,
			"lower-case letters, digits, \"-\" and \".\"")
		if slices.Contains(caseNames(e.Cases[:i]), c.Name) {
			d.fail(fmt.Sprintf("cases[%d].name", i), fmt.Sprintf("duplicate case %q", c.Name),
				"give each case its own name")
		}
		path := fmt.Sprintf("cases[%d].schemes", i)
		d.checkAllKnown(path, "scheme of the experiment", c.Schemes, d.schemesOf(e))
		d.checkUnique(path, "scheme", c.Schemes)
	}
	if len(e.Cases) > maxCases {
		d.fail("cases", fmt.Sprintf("%d cases are too many", len(e.Cases)),
			fmt.Sprintf("at most %d", maxCases))
	}
}

// variants returns the experiment of each case of e, as d reads it.
func (d *decoder) variants(e *Experiment) map[string]*Experiment {
	if len(e.Cases) == 0 {
		return nil
	}
	variants := make(map[string]*Experiment)
	seen := make(map[Error]bool)
	for _, c := range e.Cases {
		at, set := caseIn(e.origin.root, c.Name)
		v := d.again()
		variant := v.experiment(v.withSettings(e.origin.root, set), c.Name)
		variant.Cases = nil
		variants[c.Name] = variant

		for _, err := range v.Errs {
			if !seen[*err] { // report an error of several cases once, for the first
				d.Errs = append(d.Errs, addCaseName(err, c.Name, at.Line))
			}
			seen[*err] = true
		}
	}
	return variants
}

// caseIn returns the node of a case of the file, and of what it sets, which may be nil.
func caseIn(root *yaml.Node, name string) (at, set *yaml.Node) {
	cases := valueOf(root, "cases")
	for _, c := range cases.Content {
		c = behindAliases(c)
		if n := valueOf(c, "name"); n != nil && n.Value == name {
			return c, valueOf(c, "set")
		}
	}
	return cases, nil
}

// valueOf returns the value of a key of a mapping; nil if there is none.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	at := config.ValueIndex(n, key)
	if at < 0 {
		return nil
	}
	return behindAliases(n.Content[at])
}

func behindAliases(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// addCaseName returns the error with the name of its case. One of a flag is not of the case.
func addCaseName(err *Error, name string, line int) *Error {
	c := *err
	if err.Line == 0 && strings.HasPrefix(err.File, flag) {
		return &c
	}
	c.Msg = fmt.Sprintf("case %q: %s", name, err.Msg)
	if err.Line != line {
		c.Msg = fmt.Sprintf("case %q, line %d: %s", name, line, err.Msg)
	}
	return &c
}

// withSettings returns a copy of the tree with new values; set maps paths to them.
func (d *decoder) withSettings(root, set *yaml.Node) *yaml.Node {
	if set == nil {
		return root
	}
	for i := 0; i+1 < len(set.Content); i += 2 {
		path, value := set.Content[i], set.Content[i+1]
		keys := strings.Split(path.Value, ".")
		if slices.Contains(sameInAllCases, keys[0]) {
			d.FailAt(path, fmt.Sprintf("%q is the same in all cases", keys[0]), "remove it")
			continue
		}
		s := setting{d, path, value}
		tree, err := s.in(root, keys)
		if err != nil {
			d.Check(path, err)
			continue
		}
		root = tree
	}
	return root
}

// setting is a path and its new value.
type setting struct {
	d           *decoder
	path, value *yaml.Node
}

// in returns a copy of the node with the value at the end of the keys. It copies only the nodes on
// the way and shares the rest: aliases may refer to the same nodes.
func (s setting) in(n *yaml.Node, keys []string) (*yaml.Node, error) {
	if len(keys) == 0 {
		return s.value, nil
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	c := *n
	c.Content = slices.Clone(n.Content)
	at, err := s.child(&c, keys[0])
	if err != nil {
		return nil, err
	}
	c.Content[at], err = s.in(c.Content[at], keys[1:])
	return &c, err
}

// child returns the index in n.Content of the value at the key. It adds the key to a mapping
// without it.
func (s setting) child(n *yaml.Node, key string) (int, error) {
	switch n.Kind {
	case yaml.MappingNode:
		if i := config.ValueIndex(n, key); i >= 0 {
			return i, nil
		}
		n.Content = append(n.Content, s.node(yaml.ScalarNode, key), s.node(yaml.MappingNode, ""))
		return len(n.Content) - 1, nil
	case yaml.SequenceNode:
		return itemOf(n, key)
	default:
		return 0, config.Bad(fmt.Sprintf("%q is within a single value", key), "")
	}
}

// node returns a new node with the position of the path.
func (s setting) node(kind yaml.Kind, value string) *yaml.Node {
	n := &yaml.Node{Kind: kind, Value: value, Line: s.path.Line, Column: s.path.Column}
	if file, ok := s.d.Of[s.path]; ok {
		s.d.Of[n] = file
	}
	return n
}

// itemOf returns the index of the item of a list with this name or index.
func itemOf(list *yaml.Node, key string) (int, error) {
	var names []string
	for i, item := range list.Content {
		if at := config.ValueIndex(item, "name"); at >= 0 {
			name := item.Content[at].Value
			if name == key {
				return i, nil
			}
			names = append(names, name)
		}
	}
	if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(list.Content) {
		return i, nil
	}
	return 0, config.Bad(fmt.Sprintf("no item of the list is %q", key), config.Suggest(key, names))
}
