// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pcn-linux/pcn/config"
)

// OwnSwitch holds the values of some switches that differ from those of all. What is 0 does not.
type OwnSwitch struct {
	// At are the switches, each in one entry only. Required.
	At NodeList `yaml:"at"`
	// Buffer is shared by all ports of the switch. Ten frames to 1GB.
	Buffer Bytes `yaml:"buffer"`
	// XOFF is the static threshold of PFC; XON stays as far below as that of all.
	XOFF Bytes `yaml:"xoff"`
	// Alpha is that of dynamic thresholds. 1/1024 to 16. With by_rate it is of a port at the rate
	// of the topology.
	Alpha Ratio `yaml:"alpha"`
	// KMin and KMax are RED's, for all schemes that mark by it; pmax is that of all. With
	// marking_by_rate they are of a port at the rate of the topology.
	KMin Bytes `yaml:"kmin"`
	KMax Bytes `yaml:"kmax"`
}

// OwnOf returns the values of a switch of its own; all 0 if it has none.
func (s *Switch) OwnOf(name string) OwnSwitch {
	for _, own := range s.Own {
		if slices.Contains(own.At, name) {
			return own
		}
	}
	return OwnSwitch{}
}

// DynamicOf returns the dynamic thresholds of a switch; nil if they are static.
func (s *Switch) DynamicOf(own OwnSwitch) *DynamicPFC {
	if s.PFC.Dynamic == nil || own.Alpha == 0 {
		return s.PFC.Dynamic
	}
	d := *s.PFC.Dynamic
	d.Alpha = own.Alpha
	return &d
}

// OwnMarkingAt returns a switch's own thresholds of marking at ports of links of this rate, and
// false if it has none.
func (e *Experiment) OwnMarkingAt(own OwnSwitch, rateBps uint64) (kmin, kmax Bytes, ok bool) {
	kmin, kmax = e.thresholdAt(own.KMin, rateBps), max(e.thresholdAt(own.KMax, rateBps), 1)
	return kmin, kmax, own.KMax != 0
}

// switches returns the names of all switches.
func (d *decoder) switches() []string { return slices.Sorted(maps.Keys(d.isSwitch)) }

// validateOwnSwitches checks the switches with values of their own.
func (d *decoder) validateOwnSwitches(e *Experiment) {
	switches := d.switches()
	var all []string
	for i, own := range e.Switch.Own {
		path := fmt.Sprintf("switch.own[%d].", i)
		if !d.hasRequired(path, "at") {
			continue
		}
		if len(switches) > 0 { // else the topology has a mistake
			d.checkAllKnown(path+"at", "switch", own.At, switches)
		}
		all = append(all, own.At...)
		d.checkUnique(path+"at", "switch", all)
		d.validateOwnSwitch(e, path, own)
	}
}

func (d *decoder) validateOwnSwitch(e *Experiment, path string, own OwnSwitch) {
	pfc := e.Switch.PFC
	buffer := own.Buffer
	if d.has(path + "buffer") {
		config.InRange(d.Decoder, path+"buffer", own.Buffer, 10*e.Frame, 1e9)
	} else {
		buffer = e.Switch.Buffer
	}
	if d.has(path + "xoff") {
		if pfc.Dynamic != nil || pfc.Off {
			d.fail(path+"xoff", "thresholds are not static", "write alpha, or remove it")
		} else {
			config.InRange(d.Decoder, path+"xoff", own.XOFF, pfc.XOFF-pfc.XON+1, buffer)
		}
	}
	if d.has(path + "alpha") {
		if pfc.Dynamic == nil {
			d.fail(path+"alpha", "thresholds are not dynamic", "write xoff, or remove it")
		}
		config.InRange(d.Decoder, path+"alpha", own.Alpha, 1.0/1024, maxAlpha)
	}
	if d.has(path+"kmin") != d.has(path+"kmax") {
		d.fail(path+"kmin", "kmin and kmax are needed together", "add the other")
	} else if d.has(path + "kmin") {
		config.InRange(d.Decoder, path+"kmax", own.KMax, 1, 1e9)
		config.InRange(d.Decoder, path+"kmin", own.KMin, 0, own.KMax)
	}
}
