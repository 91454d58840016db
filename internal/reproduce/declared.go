// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/sweep"
)

//go:embed declared.yaml
var declaredFile []byte

// declared holds the parameters that are the same in all figures of a paper.
type declared struct {
	Papers  map[string]map[string]string `yaml:"papers"`  // by path in the experiment
	Figures map[string]map[string]string `yaml:"figures"` // in place of those of the paper
	Stays   map[string][]string          `yaml:"stays"`   // by figure: paths that it does not set
}

// longestRTT stands for the longest round trip, but no less than 50 us.
const (
	longestRTT = "max(50us, base_rtt)"
	leastTNs   = 50_000
)

func readDeclared() (*declared, error) {
	d := config.NewDecoder("declared.yaml", "file", "papers:, figures: and stays:")
	root := d.Root(declaredFile)
	if root == nil {
		return nil, d.Err()
	}
	all := &declared{}
	d.Decode(root, all)
	return all, d.Err()
}

// of returns what is declared for the schemes of a figure; networks have its longest round trip.
func (d *declared) of(f *Figure, schemes []string, points []sweep.Point) map[string]string {
	set := map[string]string{}
	maps.Copy(set, d.Papers[f.Paper.Name])
	maps.Copy(set, d.Figures[f.ID()])
	set = ofSchemes(set, schemes)
	for path, value := range set {
		if slices.Contains(d.Stays[f.ID()], path) {
			delete(set, path)
			continue
		}
		if value == longestRTT {
			longest := uint64(leastTNs)
			for _, p := range points {
				longest = max(longest, p.Experiment.SchemeNetwork().BaseRTTNs)
			}
			value = experiment.Duration(longest).String()
		}
		set[path] = value
	}
	return set
}

// ofSchemes returns those of the values, by path, that are parameters of the schemes.
func ofSchemes(set map[string]string, schemes []string) map[string]string {
	kept := map[string]string{}
	for path, value := range set {
		section, _, _ := strings.Cut(path, ".")
		for _, s := range schemes {
			if base, _, _ := strings.Cut(s, "+"); base == section {
				kept[path] = value
			}
		}
	}
	return kept
}

// declare replaces the parameters of the plan's experiment by those that are declared. The plan's
// sweep is that with the figure's own.
func (p *Plan) declare() error {
	d, err := readDeclared()
	if err != nil {
		return err
	}
	p.override(d.of(p.Figure, p.Sweep.Schemes, p.Sweep.Points))
	return nil
}

// override sets values in all runs.
func (p *Plan) override(set map[string]string) {
	all := maps.Clone(p.Part.Set)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, set)
	p.Part.Set = all
}

// fitted returns the parameters of a scheme that a figure's own runs have another value of than the
// declared ones, as "pcn.w_min 1/64 (declared: 1/128)", in the case, or in any if it is empty.
func fitted(own, declared *Plan, name, ofCase string) ([]string, error) {
	var all []string
	for i, point := range own.Sweep.Points {
		if ofCase != "" && point.Case != ofCase {
			continue
		}
		s, err := point.Experiment.Scheme(name)
		if err != nil {
			return nil, fmt.Errorf("compare parameters of %s: %w", name, err)
		}
		a, b := point.Experiment.Values(s), declared.Sweep.Points[i].Experiment.Values(s)
		if a == nil {
			continue
		}
		for _, key := range a.Keys() {
			if a.Get(key) == b.Get(key) {
				continue
			}
			text := fmt.Sprintf("%s.%s %s (%s)", s.Section, key, a.Get(key), b.Get(key))
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all, nil
}
