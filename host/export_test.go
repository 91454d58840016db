// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pcn-linux/pcn/loader"
)

// ECNNotes returns what status says of ECN.
func (s *Status) ECNNotes() []string { return s.ecnNotes() }

// Doubts returns the problems and warnings of a control with these flows, by their reasons.
func Doubts(counts map[string]uint64, reasons ...string) (problems, warnings []string) {
	s := &ComponentStatus{Counts: counts}
	for _, reason := range reasons {
		s.flows = append(s.flows, loader.Flow{Doubt: reason})
	}
	s.addDoubts()
	return s.Problems, s.Warnings
}

// LeastRate returns the least send rate of a control's flows in the metrics.
func LeastRate(control string, flows []LiveFlow) (least float64) {
	collectFlows(func(d *prometheus.Desc, v float64, _ ...string) {
		if d == descMinRate {
			least = v
		}
	}, control, flows)
	return least
}

// PinsOf returns the folder of the pins of a component in the thread's network namespace.
func PinsOf(name string) (string, error) {
	here, err := currentNamespace()
	return filepath.Join(DefaultRoot, component{name: name}.folderIn(here)), err
}

// EarlierPin returns the name that version 0.1.0 gave the link of a program at an interface.
func EarlierPin(ifindex int, program string) string {
	return fmt.Sprintf("%s%d_%s", linkPrefix, ifindex, program)
}

// SettingsOf returns the settings of a control as status shows them where it runs.
func (c *Config) SettingsOf(control string) ([]Setting, error) {
	c, err := c.withPeriod(c.LineRate, c.RTT)
	if err != nil {
		return nil, err
	}
	components, err := controlComponents(c, measured{c.LineRate, c.RTT})
	if err != nil {
		return nil, err
	}
	for _, one := range components {
		if one.name == ControlPrefix+control {
			return one.settings, nil
		}
	}
	return nil, fmt.Errorf("control %s is not to be registered", control)
}

// PeriodOf returns T of the notification point, also if it is auto.
func (c *Config) PeriodOf() (Period, error) {
	with, err := c.withPeriod(c.LineRate, c.RTT)
	if err != nil {
		return 0, err
	}
	return with.NP.T, nil
}
