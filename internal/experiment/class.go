// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"

	"github.com/pcn-linux/pcn/config"
)

// Class is how switches treat data of a priority. Data of other priorities is lossless where PFC is
// on, and goes first.
type Class struct {
	// Priority is that of the flows. Required.
	Priority int `yaml:"priority"`
	// Lossy is whether PFC is off for it: a full queue drops, which does not make a run invalid.
	// Default false.
	Lossy bool `yaml:"lossy"`
	// Alpha bounds a port's queue of a lossy class: to Alpha times the switch's free buffer. 1/1024
	// to 16, default 0: only by switch.buffer and switch.port_buffer.
	Alpha Ratio `yaml:"alpha"`
	// Weight is its share of what classes without a weight leave, over the weights of all classes
	// that have one and something to send. 1 to 100, default 0: it goes by strict priority, before
	// all that have one.
	Weight int `yaml:"weight"`
}

// Schedule is how ports divide a link between classes with weights.
type Schedule string

// The schedules.
const (
	ScheduleDWRR Schedule = "dwrr" // by bytes
	ScheduleWRR  Schedule = "wrr"  // by packets
)

func schedules() []Schedule { return []Schedule{ScheduleDWRR, ScheduleWRR} }

// ClassOf returns how switches treat a class of data.
func (s *Switch) ClassOf(class uint8) Class {
	for _, c := range s.Classes {
		if DataClass(c.Priority) == class {
			return c
		}
	}
	return Class{}
}

// Lossy reports whether some class of data is lossy.
func (s *Switch) Lossy() bool {
	return slices.ContainsFunc(s.Classes, func(c Class) bool { return c.Lossy })
}

// Quantum returns what a class's turn is: bytes, or packets with ScheduleWRR; 0 without a weight.
// That of the least weight is one frame, so that each class sends in each round.
func (e *Experiment) Quantum(class uint8) uint32 {
	least := 0
	for _, c := range e.Switch.Classes {
		if c.Weight > 0 && (least == 0 || c.Weight < least) {
			least = c.Weight
		}
	}
	weight := e.Switch.ClassOf(class).Weight
	if weight == 0 || e.Switch.Schedule == ScheduleWRR {
		return uint32(weight)
	}
	return uint32(int64(weight) * int64(e.Frame) / int64(least))
}

// LosslessClass reports whether PFC is on for a class of data under a scheme.
func (e *Experiment) LosslessClass(scheme string, class uint8) bool {
	return e.PFCOn(scheme) && !e.Switch.ClassOf(class).Lossy
}

// validateClasses checks how switches treat classes.
func (d *decoder) validateClasses(e *Experiment) {
	if d.has("switch.classes") {
		if e.Switch.FlowControl == FlowCBFC {
			d.fail("switch.classes", "CBFC lends credits to all classes of data",
				"remove flow_control, or classes")
		}
	}
	if d.has("switch.schedule") && !slices.ContainsFunc(e.Switch.Classes,
		func(c Class) bool { return c.Weight > 0 }) {
		d.fail("switch.schedule", "no class has a weight", "write weight: in switch.classes")
	}
	if d.has("switch.schedule") {
		d.checkKnown("switch.schedule", "schedule", string(e.Switch.Schedule),
			toStrings(schedules()))
	}
	seen := map[int]bool{}
	for i, c := range e.Switch.Classes {
		path := fmt.Sprintf("switch.classes[%d].", i)
		if !d.hasRequired(path, "priority") {
			continue
		}
		d.validatePriority(e, path+"priority", c.Priority)
		if seen[c.Priority] {
			d.fail(path+"priority", fmt.Sprintf("priority %d has two classes", c.Priority),
				"join them")
		}
		seen[c.Priority] = true
		if !slices.Contains(e.DataClasses(), d.classOf(c.Priority)) {
			d.fail(path+"priority", fmt.Sprintf("no flow has priority %d", c.Priority),
				"write that of a flow, or remove the class")
		}
		if d.has(path + "alpha") {
			config.InRange(d.Decoder, path+"alpha", c.Alpha, 1./1024, 16)
			if !c.Lossy {
				d.fail(path+"alpha", "a lossless class drops nothing: PFC has its thresholds",
					"write lossy: true, or switch.pfc.dynamic")
			}
		}
		if d.has(path + "weight") {
			config.CountInRange(d.Decoder, path+"weight", c.Weight, 1, 100)
		}
	}
}
