// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strconv"

	"github.com/cilium/ebpf"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

const StampName = "stamp" // of its component

// Stamp says where packets get which class.
type Stamp struct {
	// Interfaces are where it runs. Required.
	Interfaces []string `yaml:"interfaces"`
	// DataDSCP is the DSCP of packets with data. 0 to 63, default 26.
	DataDSCP uint `yaml:"data_dscp"`
	// ControlDSCP is the DSCP of CNPs, ACKs and all other packets. 0 to 63, default 48.
	ControlDSCP uint `yaml:"control_dscp"`
}

func (s *Stamp) at() []string { return s.Interfaces }

func (*Stamp) required() []string { return []string{"interfaces"} }

func (s *Stamp) fill(d *config.Decoder, _ *Config) {
	fillZero(d, StampName, s, Stamp{DataDSCP: 26, ControlDSCP: 48})
}

func (s *Stamp) validate(d *config.Decoder, _ *Config) {
	interfaces(d, StampName, s.Interfaces)
	config.CountInRange(d, "stamp.data_dscp", s.DataDSCP, 0, 63)
	config.CountInRange(d, "stamp.control_dscp", s.ControlDSCP, 0, 63)
}

func (s *Stamp) plan(*Config, measured) (*component, error) {
	return tcComponent(StampName, s.Interfaces, s.settings(),
		func(old map[string]*ebpf.Map, _ map[string]*loader.Control) (tc.Object, error) {
			return tc.LoadStamp(tc.StampOptions{DataDSCP: uint8(s.DataDSCP),
				ControlDSCP: uint8(s.ControlDSCP)}, tc.Reuse(old))
		})
}

func (s *Stamp) settings() []Setting {
	return []Setting{{dataDSCPKey, fmt.Sprint(s.DataDSCP)},
		{controlDSCPKey, fmt.Sprint(s.ControlDSCP)}}
}

// DSCPs returns the classes that a running stamp gives packets; ok is false for other components.
func (s *ComponentStatus) DSCPs() (data, control uint8, ok bool) {
	d, err := strconv.ParseUint(s.Setting(dataDSCPKey), 10, 8)
	c, err2 := strconv.ParseUint(s.Setting(controlDSCPKey), 10, 8)
	return uint8(d), uint8(c), err == nil && err2 == nil
}

// Settings of stamp.
const (
	dataDSCPKey    = "data_dscp"
	controlDSCPKey = "control_dscp"
)
