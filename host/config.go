// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
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

// RP holds the parameters of the reaction point. docs/security.md says which attack each limit
// stops.
type RP struct {
	// Interfaces are where it runs; CNPs that arrive elsewhere are ignored. Required.
	Interfaces []string `yaml:"interfaces"`
	// Prefixes are the allowed sources of CNPs, such as 10.0.0.0/8. Default: everywhere.
	Prefixes []string `yaml:"prefixes"`
	// CNPInterval is the shortest mean time between two CNPs of a flow. To 1s; 0 allows any;
	// default half of rtt.
	CNPInterval config.Duration `yaml:"cnp_interval"`
	// CNPBurst is how many CNPs of a flow may come at once. 1 to 1000000, default 8.
	CNPBurst uint `yaml:"cnp_burst"`
	// MinRate is the lowest rate to which CNPs can slow a flow. 1Mbps to the line rate, default
	// that of control pcn.
	MinRate config.Rate `yaml:"min_rate"`
	// RequireTag drops CNPs that no key signed; pcn host key sets keys. Default false.
	RequireTag bool `yaml:"require_tag"`
	// TagWindow is the largest difference between a signed CNP's time and this host's. 1ms to
	// 3600s, default 500ms.
	TagWindow config.Duration `yaml:"tag_window"`
}

// Stamp says where packets get which class.
type Stamp struct {
	// Interfaces are where it runs. Required.
	Interfaces []string `yaml:"interfaces"`
	// DataDSCP is the DSCP of packets with data. 0 to 63, default 26.
	DataDSCP uint `yaml:"data_dscp"`
	// ControlDSCP is the DSCP of CNPs, ACKs and all other packets. 0 to 63, default 48.
	ControlDSCP uint `yaml:"control_dscp"`
}

// FirstRTT says where LDCP's packets of the first round trip become not ECN-capable.
type FirstRTT struct {
	// Interfaces are where it runs. Required.
	Interfaces []string `yaml:"interfaces"`
}

// WRED marks and drops the outgoing packets of an interface, as a switch does at a queue. The queue
// is that of the interface's root qdisc, which must have one, such as HTB or TBF.
type WRED struct {
	// Interfaces are where it runs. Required.
	Interfaces []string `yaml:"interfaces"`
	// KMin is the queue up to which no packet is marked. 0 to kmax. Required.
	KMin config.Bytes `yaml:"kmin"`
	// KMax is the queue above which every ECN-capable packet is marked. To 1GB, default kmin.
	KMax config.Bytes `yaml:"kmax"`
	// PMax is the probability of marking at kmax; it grows from 0 at kmin. Above 0, at most 1,
	// default 1.
	PMax config.Ratio `yaml:"pmax"`
	// K is the queue from which on packets that are not ECN-capable are dropped. To 1GB; 0 drops
	// none; default 1.5 kmin.
	K config.Bytes `yaml:"k"`
}

// maxQueue is the longest queue that a threshold of WRED may name.
const maxQueue = config.Bytes(1e9)

// ECN says where SYNs become not ECN-capable, so that servers whose control does not need ECN agree
// to it.
type ECN struct {
	// Interfaces are where it runs. Default: those of NP and RP; an empty list is nowhere.
	Interfaces []string `yaml:"interfaces"`
}

// Cgroup sets the congestion control of a cgroup.
type Cgroup struct {
	// Path is its folder, such as /sys/fs/cgroup/storage.slice. Required.
	Path string `yaml:"path"`
	// Control is the congestion control of its new connections, from PCN or from the kernel.
	// Required.
	Control string `yaml:"control"`
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

// fill sets the defaults of what the file leaves out. A zero that the file gives stays.
func (c *Config) fill(d *config.Decoder) {
	for path, section := range map[string]struct{ of, defaults any }{
		"np": {c.NP, NP{T: Period(c.RTT), CongestedShare: defaultShare, MaxFlows: defaultFlows,
			Idle: 10 * config.Second}},
		"rp": {c.RP, RP{CNPInterval: c.RTT / 2, CNPBurst: tc.DefaultCNPBurst,
			TagWindow: config.Duration(tc.DefaultWindow)}},
		"stamp": {c.Stamp, Stamp{DataDSCP: 26, ControlDSCP: 48}},
		"wred":  {c.WRED, c.wredDefaults()},
	} {
		v := reflect.ValueOf(section.of)
		if v.IsNil() {
			continue
		}
		fillZero(d, path, v.Elem(), reflect.ValueOf(section.defaults))
	}
	c.Controls.fill(d)
	c.fillFeedback()
	c.fillECN()
}

// wredDefaults returns the defaults that experiments' switches have.
func (c *Config) wredDefaults() WRED {
	if c.WRED == nil {
		return WRED{}
	}
	kmin := c.WRED.KMin
	return WRED{KMax: kmin, PMax: 1, K: kmin + kmin/2}
}

func (c *Config) fillECN() {
	if c.ECN == nil && c.needsECN() {
		c.ECN = &ECN{}
	}
	if c.ECN == nil || c.ECN.Interfaces != nil {
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
	c.ECN.Interfaces = slices.Compact(names)
}

func fillZero(d *config.Decoder, path string, v, defaults reflect.Value) {
	for _, f := range config.KeyedFields(v.Type()) {
		if field := v.FieldByIndex(f.Index); field.IsZero() && !d.Has(path+"."+f.Key) {
			field.Set(defaults.FieldByIndex(f.Index))
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
	c.validateControls(d)
	c.validatePoints(d)
	for i, g := range c.Cgroups {
		c.validateCgroup(d, fmt.Sprintf("cgroups[%d]", i), g)
	}
	if len(d.Errs) == 0 && reflect.DeepEqual(*c,
		Config{LineRate: c.LineRate, RTT: c.RTT, RTTTo: c.RTTTo, Flows: c.Flows}) {
		d.Fail("", "nothing is to run",
			"start with controls: {pcn: {}} or with np: {interfaces: [eth0]}")
	}
}

func (c *Config) validatePoints(d *config.Decoder) {
	if n := c.NP; n != nil {
		interfaces(d, "np", n.Interfaces)
		if n.T == AutoPeriod {
			c.validateAuto(d)
		} else if n.T != 0 || d.Has("np.T") {
			config.InRange(d, "np.T", n.T, Period(config.Microsecond), Period(config.Second))
		} else if len(c.RTTTo) == 0 {
			d.Fail("np", "\"T\" is missing",
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
	if r := c.RP; r != nil {
		interfaces(d, "rp", r.Interfaces)
		if c.Controls.hears() == nil {
			d.Fail("rp", "there is no control that CNPs are for", "add controls: {pcn: {}}")
		}
		config.InRange(d, "rp.cnp_interval", r.CNPInterval, 0, config.Second)
		config.CountInRange(d, "rp.cnp_burst", r.CNPBurst, 1, 1_000_000)
		config.InRange(d, "rp.tag_window", r.TagWindow, config.Millisecond, 3600*config.Second)
		if r.MinRate != 0 || d.Has("rp.min_rate") {
			config.InRange(d, "rp.min_rate", r.MinRate, loader.MinSendRateBps,
				cmp.Or(c.LineRate, loader.MaxRateBps))
		}
		for i, text := range r.Prefixes {
			if _, err := netip.ParsePrefix(text); err != nil {
				d.Fail(fmt.Sprintf("rp.prefixes[%d]", i), fmt.Sprintf("%q is not a prefix", text),
					"write 10.0.0.0/8 or 2001:db8::/32")
			}
		}
	}
	if s := c.Stamp; s != nil {
		interfaces(d, "stamp", s.Interfaces)
		config.CountInRange(d, "stamp.data_dscp", s.DataDSCP, 0, 63)
		config.CountInRange(d, "stamp.control_dscp", s.ControlDSCP, 0, 63)
	}
	if f := c.FirstRTT; f != nil {
		interfaces(d, "first_rtt", f.Interfaces)
		if c.Controls.withFirstRTT() == nil {
			d.Fail("first_rtt", "it is part of LDCP", "add controls: {ldcp: {}}")
		}
	}
	c.validateWRED(d)
	if e := c.ECN; e != nil {
		distinct(d, "ecn", e.Interfaces)
		if !c.needsECN() {
			d.Fail("ecn", "there is no control that needs ECN", "add controls: {pcn: {}}")
		}
	}
}

func (c *Config) validateWRED(d *config.Decoder) {
	w := c.WRED
	if w == nil {
		return
	}
	interfaces(d, "wred", w.Interfaces)
	if w.KMin == 0 && !d.Has("wred.kmin") {
		d.Fail("wred", "\"kmin\" is missing", "write kmin: 50KB, the queue where marking begins")
	}
	config.InRange(d, "wred.kmax", w.KMax, 0, maxQueue)
	config.InRange(d, "wred.kmin", w.KMin, 0, w.KMax)
	config.InRange(d, "wred.pmax", w.PMax, minShare, 1)
	config.InRange(d, "wred.k", w.K, 0, maxQueue)
}

func (c *Config) validateCgroup(d *config.Decoder, path string, g Cgroup) {
	if !filepath.IsAbs(g.Path) {
		d.Fail(path+".path", fmt.Sprintf("%q is not the path of a cgroup", g.Path),
			"write /sys/fs/cgroup/storage.slice")
	}
	if g.Control == "" || len(g.Control) > 15 {
		d.Fail(path+".control", fmt.Sprintf("%q can't be a congestion control", g.Control),
			"write pcn")
	}
	first := slices.IndexFunc(c.Cgroups,
		func(o Cgroup) bool { return filepath.Clean(o.Path) == filepath.Clean(g.Path) })
	if fmt.Sprintf("cgroups[%d]", first) != path {
		d.Fail(path+".path", fmt.Sprintf("duplicate cgroup %q", g.Path), "keep one of them")
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
		if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
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
