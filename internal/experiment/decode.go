// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
)

// Error is one mistake in an experiment file.
type Error = config.Error

// decoder reads an experiment file.
type decoder struct {
	*config.Decoder

	attached  attached
	catalogue *scheme.Catalogue
	options   Options
	warnings  []string // of the file's own schemes
	chosen    Changes  // by [Experiment.With], of the file
	declared  []string // the file's schemes, if others were chosen

	// Of the topology.
	hosts, ports, tiers []string
	isHost, isSwitch    map[string]bool

	// unsure has each kind of name whose list has a mistake: names that are not in it are not
	// reported, because they may be right.
	unsure map[string]bool
}

func newDecoder(file string) *decoder {
	return &decoder{
		Decoder:   config.NewDecoder(file, "experiment", "name: and topology:"),
		attached:  attached{read: make(map[string]string)},
		catalogue: scheme.Builtin(),
		unsure:    make(map[string]bool),
	}
}

func (d *decoder) has(path string) bool { return d.Has(path) }

func (d *decoder) fail(path, msg, hint string) { d.Fail(path, msg, hint) }
