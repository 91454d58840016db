// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/jsonschema"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

const NPName = "np" // of its component

// NP holds the parameters of the notification point (NSDI'20, Fig. 8).
type NP struct {
	// Interfaces are where it runs. Required.
	Interfaces []string `yaml:"interfaces"`
	// T is the period of CNPs: at least the largest round trip. 1us to 1s, or auto: also long
	// enough for many packets of each of the flows. Default rtt.
	T Period `yaml:"T"`
	// CongestedShare is the share of marked packets above which a flow is congested. 0 to below 1,
	// default 0.95.
	CongestedShare config.Ratio `yaml:"congested_share"`
	// MaxFlows is the size of the flow table. 1 to 10000000, default 65536.
	MaxFlows uint `yaml:"max_flows"`
	// UDPPorts are the ports whose UDP flows are answered too. At most 8.
	UDPPorts []uint `yaml:"udp_ports"`
	// Idle is the silence after which a flow is forgotten. 1ms to 3600s, default 10s.
	Idle config.Duration `yaml:"idle"`
}

func (n *NP) at() []string { return n.Interfaces }

func (*NP) required() []string { return []string{"interfaces"} }

func (n *NP) fill(d *config.Decoder, c *Config) {
	fillZero(d, NPName, n, NP{T: Period(c.RTT), CongestedShare: defaultShare,
		MaxFlows: defaultFlows, Idle: 10 * config.Second})
}

func (n *NP) validate(d *config.Decoder, c *Config) {
	interfaces(d, NPName, n.Interfaces)
	if n.T == AutoPeriod {
		c.validateAuto(d)
	} else if n.T != 0 || d.Has("np.T") {
		config.InRange(d, "np.T", n.T, Period(config.Microsecond), Period(config.Second))
	} else if len(c.RTTTo) == 0 {
		d.Fail(NPName, "\"T\" is missing",
			"add T: 50us, rtt: 50us, or rtt_to: [HOST:PORT] to measure it")
	}
	config.InRange(d, "np.congested_share", n.CongestedShare, 0, 1-minShare)
	flowsInRange(d, "np.max_flows", n.MaxFlows)
	config.InRange(d, "np.idle", n.Idle, config.Millisecond, 3600*config.Second)
	if len(n.UDPPorts) > tc.MaxUDPPorts {
		d.Fail("np.udp_ports", fmt.Sprintf("%d ports are too many", len(n.UDPPorts)),
			fmt.Sprintf("at most %d", tc.MaxUDPPorts))
	}
	for i, port := range n.UDPPorts {
		config.CountInRange(d, fmt.Sprintf("np.udp_ports[%d]", i), port, 1, 65535)
	}
}

func (n *NP) plan(c *Config, found measured) (*component, error) {
	settings := []Setting{{"congested_share", n.CongestedShare.String()},
		{"max_flows", fmt.Sprint(n.MaxFlows)}}
	t := n.T
	if t == 0 {
		t = Period(found.rtt)
		settings = append(settings, rttSettings(c, found.rtt)...)
	}
	settings = append([]Setting{{"T", t.String()}, {"idle", n.Idle.String()}}, settings...)
	var ports []uint16
	for _, p := range n.UDPPorts {
		ports = append(ports, uint16(p))
	}
	settings = append(settings, Setting{"udp_ports", strings.Trim(fmt.Sprint(n.UDPPorts), "[]")})
	params, err := c.npParams(t, n.CongestedShare)
	if err != nil {
		return nil, fmt.Errorf("np: %w", err)
	}
	return tcComponent(NPName, n.Interfaces, settings,
		func(old map[string]*ebpf.Map, _ map[string]*loader.Control) (tc.Object, error) {
			return tc.LoadHostNP(tc.HostNPOptions{
				TNs: uint64(t), CongestedShare: float64(n.CongestedShare),
				MaxFlows: uint32(n.MaxFlows),
				Idle:     time.Duration(n.Idle), UDPPorts: ports, Params: params,
				NetnsKeys: loader.HaveKernelContext() == nil,
			}, tc.Reuse(old))
		})
}

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

// npParams returns the parameters of PCN's notification point as C lays them out. What the file
// can't set has its default for hosts.
func (c *Config) npParams(t Period, share config.Ratio) ([]byte, error) {
	s, ok := scheme.Builtin().ByControl("pcn")
	if !ok {
		return nil, errors.New("there is no scheme pcn")
	}
	network := c.network(loader.MaxRateBps, 0)
	values, problems := s.Object.Resolve(scheme.Settings{Given: map[string]scheme.Value{
		"T":               {Kind: scheme.KindTime, Number: float64(t)},
		"congested_share": {Kind: scheme.KindRatio, Number: float64(share)},
	}}, network)
	if len(problems) > 0 {
		p := problems[0]
		return nil, fmt.Errorf("%s: %w", p.Key, config.Bad(p.Msg, p.Hint))
	}
	return values.Bytes(scheme.NotificationVariable, network, false)
}
