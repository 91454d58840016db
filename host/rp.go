// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

const RPName = "rp" // of its component

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

func (r *RP) at() []string { return r.Interfaces }

func (*RP) required() []string { return []string{"interfaces"} }

func (r *RP) fill(d *config.Decoder, c *Config) {
	fillZero(d, RPName, r, RP{CNPInterval: c.RTT / 2, CNPBurst: tc.DefaultCNPBurst,
		TagWindow: config.Duration(tc.DefaultWindow)})
}

func (r *RP) validate(d *config.Decoder, c *Config) {
	interfaces(d, RPName, r.Interfaces)
	if c.Controls.hears() == nil {
		d.Fail(RPName, "there is no control that CNPs are for", "add controls: {pcn: {}}")
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

func (r *RP) plan(c *Config, found measured) (*component, error) {
	hears := c.Controls.hears()
	network := c.network(cmp.Or(found.lineRate, loader.MaxRateBps), 0)
	values, _ := hears.Scheme.Object.Resolve(hears.Settings, network)
	floorBps, err := hears.Scheme.MinRateBps(values, network)
	if err != nil {
		return nil, fmt.Errorf("rp: %w", err)
	}
	minRate := cmp.Or(r.MinRate, config.Rate(floorBps))
	var prefixes []netip.Prefix
	for _, text := range r.Prefixes {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("rp: %w", err)
		}
		prefixes = append(prefixes, p)
	}
	settings := []Setting{
		{"prefixes", strings.Join(r.Prefixes, ",")}, {"cnp_interval", r.CNPInterval.String()},
		{"cnp_burst", fmt.Sprint(r.CNPBurst)},
		{"min_rate", minRate.String()}, {"require_tag", fmt.Sprint(r.RequireTag)},
		{"tag_window", r.TagWindow.String()},
	}
	var rp *tc.RP
	allow := func() error {
		devices, err := devicesOf(r.Interfaces)
		if err != nil {
			return fmt.Errorf("rp: %w", err)
		}
		for _, device := range devices {
			if err := rp.Allow(device.Index, prefixes...); err != nil {
				return err
			}
		}
		return nil
	}
	one, err := tcComponent(RPName, r.Interfaces, settings, func(old map[string]*ebpf.Map,
		controls map[string]*loader.Control) (_ tc.Object, err error) {
		old = maps.Clone(old)
		// do not reuse them: the new rules are in new maps
		for _, rules := range []string{"rp_sources", "rp_interfaces"} {
			delete(old, rules)
		}
		rp, err = tc.LoadHostRP(controls[hears.Scheme.Control], tc.HostRPOptions{
			RequireTag: r.RequireTag, Window: time.Duration(r.TagWindow),
			CNPInterval: time.Duration(r.CNPInterval),
			CNPBurst:    int(r.CNPBurst), FloorBps: uint64(minRate),
		}, tc.Reuse(old))
		if err != nil {
			return nil, err
		}
		return rp, allow()
	})
	if err != nil {
		return nil, err
	}
	// Flows may have cached the old rules until the links were updated.
	one.applied = allow
	return one, nil
}
