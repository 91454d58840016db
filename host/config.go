// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/loader"
)

// Config is what a host runs. docs/host.md describes it.
type Config struct {
	// LineRate is the rate at which flows start. Default: the link speed of the interfaces, if it
	// is the same for all.
	LineRate config.Rate `yaml:"line_rate"`
	// RTT is the largest round trip of the network. 1us to 1s.
	RTT config.Duration `yaml:"rtt"`
	// RTTTo are TCP services, HOST:PORT. If rtt is not given, it is the largest round trip measured
	// to them.
	RTTTo []string `yaml:"rtt_to"`
	// Flows is an upper bound of the flows that share a link, by which parameters go that are auto.
	// 1 to 10000000.
	Flows uint `yaml:"flows"`
	// Controls are the congestion controls to register.
	Controls Controls `yaml:"controls"`
	// Keys is the file of the key that NP signs CNPs with, and without which RP obeys none, unless
	// require_tag is false. All hosts have the same.
	Keys string `yaml:"keys"`
	// Objects are compiled controls of the user's own to register, with their defaults: paths of .o
	// files.
	Objects []string `yaml:"objects"`
	// NP answers marked packets with CNPs.
	NP *NP `yaml:"np"`
	// RP receives CNPs.
	RP *RP `yaml:"rp"`
	// Stamp sets the class of packets, as DSCP.
	Stamp *Stamp `yaml:"stamp"`
	// FirstRTT makes LDCP's packets of the first round trip not ECN-capable.
	FirstRTT *FirstRTT `yaml:"first_rtt"`
	// WRED marks and drops outgoing packets at this host's interfaces, as a switch would.
	WRED *WRED `yaml:"wred"`
	// ECN makes servers without our controls agree to ECN. Default, if a control needs ECN: the
	// interfaces of NP and RP.
	ECN *ECN `yaml:"ecn"`
	// Cgroups get a congestion control for their new connections.
	Cgroups []Cgroup `yaml:"cgroups"`
}

const (
	maxFlows     = 10_000_000
	defaultFlows = 65_536
	defaultShare = 0.95                      // of marked packets
	minShare     = config.Ratio(1.0 / 65536) // lower bound of shares that must be above 0

	maxConfig = 1_000_000 // bytes of a file
)

// Load reads a configuration file.
func Load(path string) (*Config, error) {
	data, err := config.ReadFile(path, maxConfig)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a configuration; name stands for its file in errors. The error joins a [config.Error]
// for each mistake.
func Parse(name string, data []byte) (*Config, error) {
	d := config.NewDecoder(name, "host", "controls: and np:")
	var c Config
	if root := d.Root(data); root != nil {
		refuseSimulated(d, root)
		d.Decode(root, &c)
		c.readObjects(d)
		c.fill(d)
		c.validate(d)
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return &c, nil
}

// Check fills in the defaults of a configuration that was not read from a file, and checks it as
// Parse does.
func (c *Config) Check(name string) error {
	d := config.NewDecoder(name, "host", "controls: and np:")
	c.fill(d)
	c.validate(d)
	return d.Err()
}

// part is a section of the file whose component runs at interfaces. Each is in a file of its own,
// with its checks, its defaults and its component.
type part interface {
	// at returns the interfaces.
	at() []string
	// required returns the keys that the section must have.
	required() []string
	// fill sets the defaults of what the file leaves out.
	fill(d *config.Decoder, c *Config)
	validate(d *config.Decoder, c *Config)
	// plan returns the component, nil if none is to run.
	plan(c *Config, n measured) (*component, error)
}

// allParts are all kinds of sections, in the order of loading.
func allParts(c *Config) []part {
	return []part{c.NP, c.RP, c.Stamp, c.FirstRTT, c.ECN, c.WRED}
}

// parts returns the sections that the configuration has, in the order of loading.
func (c *Config) parts() []part {
	return slices.DeleteFunc(allParts(c),
		func(p part) bool { return reflect.ValueOf(p).IsNil() })
}

// Interfaces returns the names of all interfaces in the configuration, some of them more than once.
func (c *Config) Interfaces() []string {
	var names []string
	for _, p := range c.parts() {
		names = append(names, p.at()...)
	}
	return names
}

// fill sets the defaults of what the file leaves out. A zero that the file gives stays.
func (c *Config) fill(d *config.Decoder) {
	c.Controls.fill(d)
	c.fillFeedback()
	if c.ECN == nil && c.needsECN() {
		c.ECN = &ECN{}
	}
	if c.Keys != "" && c.RP != nil && !d.Has("rp.require_tag") {
		c.RP.RequireTag = true
	}
	for _, p := range c.parts() {
		p.fill(d, c)
	}
}

// fillZero gives the fields of a section that the file does not give their defaults.
func fillZero[T any](d *config.Decoder, path string, section *T, defaults T) {
	v, from := reflect.ValueOf(section).Elem(), reflect.ValueOf(defaults)
	for _, f := range config.KeyedFields(v.Type()) {
		if field := v.FieldByIndex(f.Index); field.IsZero() && !d.Has(path+"."+f.Key) {
			field.Set(from.FieldByIndex(f.Index))
		}
	}
}

func (c *Config) validate(d *config.Decoder) {
	if c.LineRate != 0 || d.Has("line_rate") {
		config.InRange(d, "line_rate", c.LineRate, loader.MinSendRateBps, loader.MaxRateBps)
	}
	if c.RTT != 0 || d.Has("rtt") {
		config.InRange(d, "rtt", c.RTT, config.Microsecond, config.Second)
	}
	for i, to := range c.RTTTo {
		if _, _, err := net.SplitHostPort(to); err != nil {
			d.Fail(fmt.Sprintf("rtt_to[%d]", i), err.Error(),
				"write a host and its port, such as 10.0.0.2:22")
		}
	}
	if d.Has("flows") {
		flowsInRange(d, "flows", c.Flows)
	}
	if c.Keys != "" && c.NP == nil && c.RP == nil {
		d.Fail("keys", "nothing signs or checks CNPs: neither np nor rp is there",
			"add np: and rp:, or remove keys")
	}
	c.validateControls(d)
	for _, p := range c.parts() {
		p.validate(d, c)
	}
	for i, g := range c.Cgroups {
		c.validateCgroup(d, fmt.Sprintf("cgroups[%d]", i), g)
	}
	if len(d.Errs) == 0 && reflect.DeepEqual(*c,
		Config{LineRate: c.LineRate, RTT: c.RTT, RTTTo: c.RTTTo, Flows: c.Flows}) {
		d.Fail("", "nothing is to run",
			"start with controls: {pcn: {}} or with np: {interfaces: [eth0]}")
	}
}

func interfaces(d *config.Decoder, path string, names []string) {
	if len(names) == 0 {
		d.Fail(path, "\"interfaces\" is missing", "write interfaces: [eth0]")
	}
	distinct(d, path, names)
}

func distinct(d *config.Decoder, path string, names []string) {
	for i, name := range names {
		if !isPrintable(name) {
			d.Fail(fmt.Sprintf("%s.interfaces[%d]", path, i),
				fmt.Sprintf("interface %q has a character that does not print", name),
				"ip link set DEV name NAME")
		}
		if slices.Contains(names[:i], name) {
			d.Fail(fmt.Sprintf("%s.interfaces[%d]", path, i),
				fmt.Sprintf("duplicate interface %q", name), "keep one of them")
		}
	}
}

func flowsInRange(d *config.Decoder, path string, n uint) {
	config.CountInRange(d, path, n, 1, maxFlows)
}

// isPrintable reports whether a terminal shows a name, and obeys nothing in it.
func isPrintable(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}
