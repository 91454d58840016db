// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/jsonschema"
	"github.com/pcn-linux/pcn/config/scheme"
)

// Period is a time, or [AutoPeriod].
type Period config.Duration

// AutoPeriod is the period that follows from the network.
const AutoPeriod Period = -1

var periodSchema = &jsonschema.Schema{
	AnyOf: []*jsonschema.Schema{jsonschema.Time(), jsonschema.OneOf([]string{scheme.Auto})},
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (p *Period) UnmarshalYAML(n *yaml.Node) error {
	if n.Value == scheme.Auto {
		*p = AutoPeriod
		return nil
	}
	return (*config.Duration)(p).UnmarshalYAML(n)
}

// String writes the period as files have it.
func (p Period) String() string {
	if p == AutoPeriod {
		return scheme.Auto
	}
	return config.Duration(p).String()
}

// hintFlows says how to give what auto goes by.
const hintFlows = "add flows: 64, an upper bound of the flows that share a link"

// hasAutoPeriod reports whether T of the notification point is to follow from the network.
func (c *Config) hasAutoPeriod() bool { return c.NP != nil && c.NP.T == AutoPeriod }

// validateAuto fails if T is auto and what it follows from is missing.
func (c *Config) validateAuto(d *config.Decoder) {
	if c.RTT == 0 && len(c.RTTTo) == 0 {
		d.Fail("np.T", "auto needs the round trip", hintRTT)
	}
	if c.Flows == 0 {
		d.Fail("np.T", "auto needs the number of flows", hintFlows)
	}
}

// withPeriod returns the configuration with the T that auto stands for.
func (c *Config) withPeriod(line config.Rate, rtt config.Duration) (*Config, error) {
	if !c.hasAutoPeriod() {
		return c, nil
	}
	s, ok := scheme.Builtin().ByControl("pcn")
	if !ok {
		return nil, errors.New("there is no scheme pcn")
	}
	const key = "T"
	auto, err := s.Object.Param(key).Parse(scheme.Auto)
	if err != nil {
		return nil, fmt.Errorf("np.%s: %w", key, err)
	}
	values, _ := s.Object.Resolve(
		scheme.Settings{Given: map[string]scheme.Value{key: auto}}, c.network(line, rtt))
	with, np := *c, *c.NP
	np.T = Period(values.Get(key).Number)
	with.NP = &np
	return &with, nil
}
