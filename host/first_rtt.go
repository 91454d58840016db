// SPDX-License-Identifier: Apache-2.0

package host

import (
	"github.com/cilium/ebpf"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

const firstRTTName = "first_rtt" // of its component

// FirstRTT says where LDCP's packets of the first round trip become not ECN-capable.
type FirstRTT struct {
	// Interfaces are where it runs. Required.
	Interfaces []string `yaml:"interfaces"`
}

func (f *FirstRTT) at() []string { return f.Interfaces }

func (*FirstRTT) required() []string { return []string{"interfaces"} }

func (f *FirstRTT) fill(*config.Decoder, *Config) {}

func (f *FirstRTT) validate(d *config.Decoder, c *Config) {
	interfaces(d, firstRTTName, f.Interfaces)
	if c.Controls.withFirstRTT() == nil {
		d.Fail(firstRTTName, "it is part of LDCP", "add controls: {ldcp: {}}")
	}
}

func (f *FirstRTT) plan(c *Config, _ measured) (*component, error) {
	return tcComponent(firstRTTName, f.Interfaces, nil,
		func(old map[string]*ebpf.Map, controls map[string]*loader.Control) (tc.Object, error) {
			return tc.LoadFirstRTT(controls[c.Controls.withFirstRTT().Scheme.Control],
				tc.Reuse(old))
		})
}
