// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// This file writes parameters, times, rates and sizes as text.

func pfcInWords(p experiment.PFC) string {
	only := ""
	if len(p.Schemes) > 0 {
		only = ", for " + strings.ToUpper(strings.Join(p.Schemes, ", ")) + " only"
	}
	switch {
	case p.Off:
		return "off"
	case p.Dynamic != nil:
		return fmt.Sprintf("dynamic, XOFF at %s of the free buffer, XON %s below%s",
			p.Dynamic.Alpha, p.Dynamic.XONOffset, only)
	default:
		return fmt.Sprintf("static, XOFF %s, XON %s%s", p.XOFF, p.XON, only)
	}
}

// schemesInWords returns the main parameters of each scheme that was run.
func schemesInWords(e *experiment.Experiment, runs []*result.Run) []string {
	var words []string
	for _, scheme := range e.Schemes {
		wasRun := slices.ContainsFunc(runs,
			func(r *result.Run) bool { return r.Manifest.Scheme == scheme })
		if text := schemeInWords(e, scheme); wasRun && text != "" {
			words = append(words, strings.ToUpper(scheme)+" "+text)
		}
	}
	return words
}

// schemeInWords returns the parameters of a scheme: all, or where it has presets the name of its
// set and what the experiment gives beside.
func schemeInWords(e *experiment.Experiment, name string) string {
	s, err := e.Scheme(name)
	if err != nil {
		return ""
	}
	var words []string
	if values := e.Values(s); values != nil {
		if set := values.Set(); set != "" {
			words = append(words, "set "+set)
		}
		given := e.Settings(s).Given
		for _, p := range s.Object.Params {
			if strings.HasPrefix(p.Key, "marking.") {
				continue // told below
			}
			if _, ok := given[p.Key]; ok || values.Set() == "" {
				words = append(words, p.Key+" "+values.Get(p.Key).String())
			}
		}
	}
	if m, ok := e.MarkingOf(name); ok {
		words = append(words,
			fmt.Sprintf("marks from %s to %s by up to %s", m.KMin, m.KMax, m.PMax))
	}
	if s.TCD {
		words = append(words, fmt.Sprintf("max(T_on) %s", e.MaxTon()))
	}
	return strings.Join(words, ", ")
}

func formatTime(ns int64) string {
	return experiment.Quantity{Value: float64(ns), Unit: experiment.UnitTime}.String()
}

func formatRate(bps uint64) string {
	return experiment.Quantity{Value: float64(bps), Unit: experiment.UnitRate}.String()
}

func formatEnd(ns *int64) string {
	if ns == nil {
		return "not ended"
	}
	return formatTime(*ns)
}

// formatBytes returns a size with 4 significant digits.
func formatBytes(b uint64) string {
	scale, unit := 1.0, "B"
	switch {
	case b >= 1e6:
		scale, unit = 1e6, "MB"
	case b >= 1e3:
		scale, unit = 1e3, "KB"
	}
	return strconv.FormatFloat(float64(b)/scale, 'g', 4, 64) + unit
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
