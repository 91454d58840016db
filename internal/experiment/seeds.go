// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/jsonschema"
)

// maxSeeds limits how often something is run.
const maxSeeds = 10_000

// Seeds are a list, or a range such as 1..5.
type Seeds []uint64

// seedsHint says how to write seeds.
const seedsHint = "write seeds: 1..5, or [1, 2, 3]"

// ParseSeeds parses seeds and ranges, separated by commas: 1..5,9.
func ParseSeeds(text string) (Seeds, error) {
	var s Seeds
	for item := range strings.SplitSeq(text, ",") {
		if err := s.add(strings.TrimSpace(item)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// add adds a seed or a range.
func (s *Seeds) add(item string) error {
	text, to, isRange := strings.Cut(item, "..")
	if !isRange {
		to = text
	}
	first, err1 := strconv.ParseUint(text, 10, 64)
	last, err2 := strconv.ParseUint(to, 10, 64)
	if err1 != nil || err2 != nil || first > last {
		return config.Bad(fmt.Sprintf("%q is neither a seed nor a range of them", item), seedsHint)
	}
	if last-first >= maxSeeds || len(*s) >= maxSeeds {
		return config.Bad("too many seeds", fmt.Sprintf("at most %d", maxSeeds))
	}
	for seed := first; ; seed++ {
		if slices.Contains(*s, seed) {
			return config.Bad(fmt.Sprintf("duplicate seed %d", seed), "keep one of them")
		}
		*s = append(*s, seed)
		if seed == last {
			return nil
		}
	}
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (s *Seeds) UnmarshalYAML(n *yaml.Node) error {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		if item.Kind != yaml.ScalarNode {
			return config.Bad("a list or mapping is no seed", seedsHint)
		}
		if err := s.add(item.Value); err != nil {
			return err
		}
	}
	if len(*s) == 0 || len(*s) > maxSeeds {
		return config.Bad(fmt.Sprintf("%d seeds", len(*s)), seedsHint)
	}
	return nil
}

// seedsSchema is the schema of seeds.
func seedsSchema() *jsonschema.Schema {
	seed := &jsonschema.Schema{
		Type:    jsonschema.Types{jsonschema.Integer, jsonschema.String},
		Minimum: new(0.0), Pattern: `^[0-9]+(\.\.[0-9]+)?$`,
	}
	return jsonschema.OneOrList(seed)
}
