// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
)

// file is the content of a sweep file: see docs/sweeps.md.
type file struct {
	Name       string              `yaml:"name"`
	Title      string              `yaml:"title"`
	About      string              `yaml:"about"`
	Experiment string              `yaml:"experiment"`
	Cases      []string            `yaml:"cases"`
	Schemes    []string            `yaml:"schemes"`
	Set        map[string]string   `yaml:"set"`
	Parameters map[string][]string `yaml:"parameters"`
	Seeds      experiment.Seeds    `yaml:"seeds"`
	Metrics    []Metric            `yaml:"metrics"`
	Keep       Keep                `yaml:"keep"`
}

// Keep says what stays of a run in its cell.
type Keep string

// The values of [Keep].
const (
	KeepAll     Keep = "all"     // all files of the run
	KeepMetrics Keep = "metrics" // the values of the metrics, and the manifest
)

// Metric is measured in every cell.
type Metric struct {
	experiment.NamedMetric `yaml:",inline"`
	// Bounds limit the mean over the seeds, by scheme.
	Bounds map[string]experiment.Bounds `yaml:"bounds"`
}

// Sweep is a matrix of runs.
type Sweep struct {
	Name, Title string
	About       string   // what runs; by default what the experiment says
	Parameters  []string // paths in the experiment, in the order of the file
	Points      []Point
	Schemes     []string
	Seeds       []uint64
	Metrics     []Metric
	Keep        Keep
}

// Point is a combination of a case and a value of each parameter.
type Point struct {
	Case       string   // empty if the experiment has no cases
	Values     []string // in the order of Sweep.Parameters
	Experiment *experiment.Experiment
	Schemes    []string // the schemes that run this case
}

// Engine returns what runs the sweep by its experiment's file.
func (s *Sweep) Engine() experiment.Engine { return s.Points[0].Experiment.Engine }

// Label returns the point's case and values.
func (p Point) Label() string {
	words := slices.Clone(p.Values)
	if p.Case != "" {
		words = slices.Insert(words, 0, p.Case)
	}
	return strings.Join(words, " ")
}

// Cell is one run of the matrix.
type Cell struct {
	// ID names the cell's folder. It has a hash of everything that decides the run's bytes.
	ID     string
	Point  int // index into Sweep.Points
	Scheme string
	Seed   uint64
	job    job.Job
}

const maxCells = 100_000

// Loader reads a sweep's experiment, by its name or by the path of its file.
type Loader func(nameOrPath string) (*experiment.Experiment, error)

// Load reads a sweep file. Paths in the file are relative to it.
func Load(path string, load Loader) (*Sweep, error) {
	data, err := config.ReadFile(path, config.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("read sweep file: %w", err)
	}
	return Parse(path, data, load)
}

// Parse parses the content of the sweep file at path. The error joins one [*config.Error] for each
// mistake.
func Parse(path string, data []byte, load Loader) (*Sweep, error) {
	d := &decoder{Decoder: config.NewDecoder(path, "sweep", "name: and experiment:"), load: load}
	root := d.Root(data)
	if root == nil {
		return nil, d.Err()
	}
	var f file
	d.Decode(root, &f)
	s := d.sweep(&f)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

type decoder struct {
	*config.Decoder
	load Loader
}

// sweep checks the file and returns its matrix of runs; nil after an error.
func (d *decoder) sweep(f *file) *Sweep {
	s := &Sweep{Name: f.Name, Title: f.Title, Seeds: f.Seeds, Metrics: f.Metrics,
		Keep: cmp.Or(f.Keep, KeepAll)}
	if s.Keep != KeepAll && s.Keep != KeepMetrics {
		d.Fail("keep", fmt.Sprintf("unknown value %q", f.Keep), "write all or metrics")
	}
	s.Title = cmp.Or(s.Title, s.Name)
	for _, key := range []string{"name", "experiment", "seeds", "metrics"} {
		if !d.Has(key) {
			d.Fail("", fmt.Sprintf("%q is missing", key), "")
		}
	}
	if d.Has("name") && !experiment.IsFileName(f.Name) {
		d.Fail("name", fmt.Sprintf("%q can't be a name", f.Name),
			`lower-case letters, digits and "-"`)
	}
	if d.Has("metrics") && len(f.Metrics) == 0 {
		d.Fail("metrics", "\"metrics\" is empty: want at least one",
			"write metrics: [{name: jain, metric: jain, flows: [F0, F1]}]")
	}
	points := d.combinations(f, s)
	if len(d.Errs) > 0 {
		return nil
	}
	e := d.experiment(f)
	if e == nil {
		return nil
	}
	s.Schemes, s.About = e.Schemes, cmp.Or(f.About, e.About)
	d.points(s, e, points)
	d.bounds(s)
	return s
}

// experiment reads the experiment, with the schemes and cases of the sweep.
func (d *decoder) experiment(f *file) *experiment.Experiment {
	name := f.Experiment
	if experiment.IsFile(name) && !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(d.File), name)
		if !strings.ContainsRune(name, filepath.Separator) {
			name = "./" + name
		}
	}
	e, err := d.load(name)
	if err != nil {
		d.fail("experiment", err)
		return nil
	}
	if e, err = e.With(experiment.Changes{Cases: f.Cases}); err != nil {
		d.fail("cases", err)
		return nil
	}
	if e, err = e.With(experiment.Changes{Schemes: f.Schemes}); err != nil {
		d.fail("schemes", err)
		return nil
	}
	return e
}

// fail adds err at path. Errors that have a line of their own, in another file, keep it.
func (d *decoder) fail(path string, err error) {
	for _, e := range config.ErrorsIn(err) {
		if e.Line > 0 {
			d.Errs = append(d.Errs, e)
			continue
		}
		d.Fail(path, e.Msg, e.Hint)
	}
}

// combination has one value of each parameter.
type combination struct {
	values []string
	set    *yaml.Node // the same values as a mapping, by path
}

// combinations returns all combinations of parameter values. The last parameter changes fastest.
func (d *decoder) combinations(f *file, s *Sweep) []combination {
	all := []combination{{set: &yaml.Node{Kind: yaml.MappingNode}}}
	node := d.Nodes["parameters"]
	if node == nil || node.Kind != yaml.MappingNode {
		return all
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		path := node.Content[i]
		at := "parameters." + path.Value
		values := f.Parameters[path.Value]
		if len(values) == 0 {
			d.Fail(at, "the list of values is empty", "write [25us, 50us]")
			return nil
		}
		if _, ok := f.Set[path.Value]; ok {
			d.Fail(at, fmt.Sprintf("%q is also under \"set\"", path.Value), "keep one of them")
		}
		if path.Value == "seed" {
			d.Fail(at, "the seed can't be a parameter", "write seeds: 1..5")
		}
		for k, v := range values {
			if slices.Contains(values[:k], v) {
				d.Fail(fmt.Sprintf("%s[%d]", at, k), fmt.Sprintf("duplicate value %q", v),
					"keep one of them")
			}
		}
		if len(all)*len(values) > maxCells {
			d.Fail("parameters", fmt.Sprintf("more than %d combinations of values", maxCells),
				"remove values")
			return nil
		}
		s.Parameters = append(s.Parameters, path.Value)
		var more []combination
		for _, c := range all {
			for k, v := range values {
				set := *c.set
				set.Content = append(slices.Clone(set.Content), path,
					d.Nodes[fmt.Sprintf("%s[%d]", at, k)])
				more = append(more, combination{append(slices.Clone(c.values), v), &set})
			}
		}
		all = more
	}
	return all
}

// points adds a point for each case and combination, and the errors of each.
func (d *decoder) points(s *Sweep, e *experiment.Experiment, combinations []combination) {
	names := e.CaseNames()
	if n := len(names) * len(combinations) * len(s.Schemes) * len(s.Seeds); n > maxCells {
		d.Fail("parameters", fmt.Sprintf("the sweep has %d cells", n),
			fmt.Sprintf("at most %d", maxCells))
		return
	}
	metrics := withoutBounds(d.Nodes["metrics"])
	reported := make(map[string]bool)
	for _, name := range names {
		c, err := e.Case(name)
		if err != nil {
			d.fail("cases", err)
			return
		}
		for _, combination := range combinations {
			v := experiment.Changes{File: d.File, Set: []*yaml.Node{combination.set},
				Metrics: metrics}
			if set := d.Nodes["set"]; set != nil {
				v.Set = slices.Insert(v.Set, 0, set)
			}
			p := Point{Case: name, Values: combination.values, Schemes: c.Schemes}
			if p.Experiment, err = c.With(v); err != nil {
				d.failOnce(reported, p, err)
				continue
			}
			for i, m := range p.Experiment.Metrics {
				s.Metrics[i].NamedMetric = m // with its defaults
			}
			s.Points = append(s.Points, p)
		}
	}
}

// failOnce adds the errors of a point that no other point has had.
func (d *decoder) failOnce(reported map[string]bool, p Point, err error) {
	for _, e := range config.ErrorsIn(err) {
		if reported[e.Error()] {
			continue
		}
		reported[e.Error()] = true
		c := *e
		if label := p.Label(); c.File != d.File && label != "" {
			c.Msg = fmt.Sprintf("with %s: %s", label, c.Msg)
		}
		d.Errs = append(d.Errs, &c)
	}
}

// withoutBounds removes the bounds from the list of metrics: in experiments, metrics have none.
func withoutBounds(list *yaml.Node) *yaml.Node {
	c := *list
	c.Content = nil
	for _, item := range list.Content {
		for item.Kind == yaml.AliasNode {
			item = item.Alias
		}
		metric := *item
		metric.Content = nil
		for i := 0; i+1 < len(item.Content); i += 2 {
			if item.Content[i].Value != "bounds" {
				metric.Content = append(metric.Content, item.Content[i], item.Content[i+1])
			}
		}
		c.Content = append(c.Content, &metric)
	}
	return &c
}

func (d *decoder) bounds(s *Sweep) {
	for i, m := range s.Metrics {
		for scheme, b := range m.Bounds {
			at := fmt.Sprintf("metrics[%d].bounds.%s", i, scheme)
			if !slices.Contains(s.Schemes, scheme) {
				d.Fail(at, fmt.Sprintf("the sweep has no scheme %q", scheme),
					config.Suggest(scheme, s.Schemes))
			}
			if b.Min == nil && b.Max == nil {
				d.Fail(at, "the bound has neither min nor max", "add min: or max:")
			}
			for _, q := range []*config.Quantity{b.Min, b.Max} {
				if q != nil && q.Value != 0 && q.Unit != m.Metric.Unit() {
					d.Fail(at, fmt.Sprintf("%s is a %s, but metric %q is a %s", q, q.Unit, m.Metric,
						m.Metric.Unit()), "")
				}
			}
		}
	}
}

// Cells returns all runs of the matrix, ordered by point, scheme and seed. The function fingerprint
// returns a hash of everything that decides the bytes of a run.
func (s *Sweep) Cells(fingerprint func(job.Job) (string, error)) ([]Cell, error) {
	var cells []Cell
	for i, p := range s.Points {
		for _, scheme := range p.Schemes {
			for _, seed := range s.Seeds {
				e, err := p.Experiment.With(experiment.Changes{Seed: &seed,
					Schemes: []string{scheme}})
				if err != nil {
					return nil, fmt.Errorf("cell %s %s, seed %d: %w", p.Label(), scheme, seed, err)
				}
				c := Cell{Point: i, Scheme: scheme, Seed: seed,
					job: job.Job{Experiment: e, Scheme: scheme}}
				sum, err := fingerprint(c.job)
				if err != nil {
					return nil, err
				}
				c.ID = fmt.Sprintf("%s-s%d-%.16s", scheme, seed, sum)
				if s.Keep == KeepMetrics {
					c.ID += "-m" // a sweep that keeps all must not find it
				}
				cells = append(cells, c)
			}
		}
	}
	if len(cells) == 0 {
		return nil, fmt.Errorf("sweep %s has no runs: none of its cases has scheme %s",
			s.Name, strings.Join(s.Schemes, ", "))
	}
	return cells, nil
}
