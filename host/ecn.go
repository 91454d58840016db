// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/host/internal/tcpecn"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

const synName = "syn" // of its component

// ECN says where SYNs become not ECN-capable, so that servers whose control does not need ECN agree
// to it.
type ECN struct {
	// Interfaces are where it runs. Default: those of NP and RP; an empty list is nowhere.
	Interfaces []string `yaml:"interfaces"`
}

func (e *ECN) at() []string { return e.Interfaces }

func (*ECN) required() []string { return nil }

func (e *ECN) fill(_ *config.Decoder, c *Config) {
	if e.Interfaces != nil {
		return
	}
	var names []string
	if c.NP != nil {
		names = append(names, c.NP.Interfaces...)
	}
	if c.RP != nil {
		names = append(names, c.RP.Interfaces...)
	}
	slices.Sort(names)
	e.Interfaces = slices.Compact(names)
}

func (e *ECN) validate(d *config.Decoder, c *Config) {
	distinct(d, "ecn", e.Interfaces)
	if !c.needsECN() {
		d.Fail("ecn", "there is no control that needs ECN", "add controls: {pcn: {}}")
	}
}

func (e *ECN) plan(*Config, measured) (*component, error) {
	if len(e.Interfaces) == 0 {
		return nil, nil
	}
	return tcComponent(synName, e.Interfaces, nil,
		func(old map[string]*ebpf.Map, _ map[string]*loader.Control) (tc.Object, error) {
			return tc.LoadPlainSYN(tc.Reuse(old))
		})
}

// Advice returns what this network namespace lacks for the configured controls, and what to do. Up
// does not change it.
func (c *Config) Advice() (advice []string, err error) {
	if !c.needsECN() {
		return nil, nil
	}
	value, err := tcpecn.Get()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err == nil && !tcpecn.AsksForECN(value) {
		advice = append(advice, tcpecn.Advice(value))
	}
	falls, err := tcpecn.FallsBack()
	if falls {
		advice = append(advice, fmt.Sprintf("net.ipv4.tcp_ecn_fallback is 1: %s; %s, where all "+
			"paths let ECN through", tcpecn.FallbackMeans, tcpecn.FallbackCommand))
	}
	return advice, err
}

// ecnNotes says which flows have no ECN, and whether others will.
func (s *Status) ecnNotes() []string {
	var notes []string
	needed := false
	for _, c := range s.Components {
		name, ok := strings.CutPrefix(c.Name, ControlPrefix)
		if !ok || !NeedsECN(name) {
			continue
		}
		needed = true
		if n := c.Counts[noECNCount]; n > 0 {
			notes = append(notes, fmt.Sprintf("%d of %d flows of %s have no ECN, and so TCP's "+
				"window instead of %s: either the socket chose its control after it had "+
				"connected, or the peer or the path refuses ECN: see pcn host doctor", n,
				c.Counts[flowsCount], name, name))
		}
	}
	if value, err := tcpecn.Get(); needed && err == nil && !tcpecn.AsksForECN(value) {
		notes = append(notes, tcpecn.Advice(value))
	}
	return notes
}
