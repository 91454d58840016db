// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/pcn-linux/pcn/loader"
)

// Counts of a control that are not of events: flows come and go.
const (
	flowsCount = "flows"
	noECNCount = "flows_without_ecn"
)

// hasFlows reports whether a component is a control that keeps its flows.
func hasFlows(name string, p *pinned) bool {
	return strings.HasPrefix(name, ControlPrefix) && p.maps["flows"] != nil
}

// readFlows reads the flow table of a control. It is read once, as it may be long.
func readFlows(name string, p *pinned, types loader.MapTypes) ([]loader.Flow, error) {
	if !hasFlows(name, p) {
		return nil, nil
	}
	c, err := loader.FromFlows(strings.TrimPrefix(name, ControlPrefix), p.maps["flows"], types)
	if err != nil {
		return nil, err
	}
	return c.Flows()
}

func (s *ComponentStatus) countFlows() {
	s.Counts[flowsCount] = uint64(len(s.flows))
	s.Counts[noECNCount] = 0
	for _, f := range s.flows {
		s.Counts[noECNCount] += uint64(boolToInt(!f.ECN))
	}
}

// addDoubts adds what makes flows of a control fall back to a TCP window: a problem where somebody
// must act, a warning otherwise.
func (s *ComponentStatus) addDoubts() {
	full := s.Counts["table_full"] - s.Counts["table_full_ended"]
	if full > 0 {
		s.Problems = append(s.Problems, fmt.Sprintf("%d live flows found the flow table full and "+
			"have a TCP window: raise max_flows", full))
	}
	of := map[string]int{}
	for _, f := range s.flows {
		if f.Doubt != "" {
			of[f.Doubt]++
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(of)) {
		advice, known := doubtAdvice[reason]
		if !known {
			continue
		}
		text := fmt.Sprintf("%d of %d live flows have a TCP window: %s", of[reason], len(s.flows),
			advice)
		if 2*of[reason] > len(s.flows) && reason != "no_entry" {
			s.Problems = append(s.Problems, text)
		} else {
			s.Warnings = append(s.Warnings, text)
		}
	}
}

// doubtAdvice says by [loader.Flow.Doubt] what is wrong and what to do. Flows without ECN have a
// note of their own, and a flow that is new needs nothing.
var doubtAdvice = map[string]string{
	"no_entry": "their entry in the flow table is gone: they end as they are",
	"no_marks": "they lost packets, and none had been marked: have the switches of their path " +
		"mark (ECN), or give these flows another control",
	"no_cnps": "their receivers send no CNPs: run NP there, or set feedback: auto",
}

// liveFlows returns the flows of all controls, as they were when the status was read.
func (s *Status) liveFlows() []LiveFlow {
	flows := []LiveFlow{}
	for _, c := range s.Components {
		for _, f := range c.flows {
			flows = append(flows, LiveFlow{strings.TrimPrefix(c.Name, ControlPrefix), f})
		}
	}
	return flows
}

// LiveFlow is a flow of one of the host's congestion controls.
type LiveFlow struct {
	Control string `json:"control"`
	loader.Flow
}

// MarshalJSON writes the control before what it knows of the flow.
func (f LiveFlow) MarshalJSON() ([]byte, error) {
	return joinObjects(map[string]string{"control": f.Control}, f.Flow)
}

// joinObjects writes values that are JSON objects as one object, with the keys of all.
func joinObjects(values ...any) ([]byte, error) {
	joined := []byte("{")
	for i, v := range values {
		object, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			joined = append(joined, ',')
		}
		joined = append(joined, object[1:len(object)-1]...)
	}
	return append(joined, '}'), nil
}

// Flows returns the live flows of all pinned congestion controls.
func (h *Host) Flows() ([]LiveFlow, error) {
	names, err := h.components()
	if err != nil {
		return nil, err
	}
	flows := []LiveFlow{}
	for _, name := range names {
		control, ok := strings.CutPrefix(name, ControlPrefix)
		if !ok {
			continue
		}
		c, err := h.Control(control)
		if errors.Is(err, loader.ErrNoFlow) {
			continue
		}
		if err != nil {
			return nil, err
		}
		of, err := c.Flows()
		c.FlowTable().Close()
		if err != nil {
			return nil, err
		}
		for _, f := range of {
			flows = append(flows, LiveFlow{control, f})
		}
	}
	return flows, nil
}

// Control opens a pinned congestion control to read its flows; close its flow table after use. The
// error wraps [loader.ErrNoFlow] if it keeps no flows, or is not pinned.
func (h *Host) Control(name string) (*loader.Control, error) {
	m, err := ebpf.LoadPinnedMap(h.folder(ControlPrefix+name).at(mapPrefix+"flows"), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("congestion control %s keeps no flows here: %w",
			name, loader.ErrNoFlow)
	}
	if err != nil {
		return nil, explainPin(filepath.Join(h.root, ControlPrefix+name), err)
	}
	st, err := h.folder(ControlPrefix + name).state()
	var types loader.MapTypes
	if err == nil {
		types, err = st.mapTypes()
	}
	var c *loader.Control
	if err == nil {
		c, err = loader.FromFlows(name, m, types)
	}
	if err != nil {
		m.Close()
	}
	return c, err
}

// FindFlow returns the one live flow whose SRC->DST contains the text.
func (h *Host) FindFlow(text string) (LiveFlow, error) {
	flows, err := h.Flows()
	if err != nil {
		return LiveFlow{}, err
	}
	var found []LiveFlow
	for _, f := range flows {
		if strings.Contains(f.FlowKey.String(), text) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return LiveFlow{}, fmt.Errorf("flow %q: %w: see pcn flows", text, loader.ErrNoFlow)
	case 1:
		return found[0], nil
	default:
		return LiveFlow{},
			fmt.Errorf("flow %q is ambiguous: %d flows match, such as %s and %s: give more of "+
				"SRC->DST", text,
				len(found), found[0].FlowKey, found[1].FlowKey)
	}
}
