// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/internal/network"
)

// This file draws a network that is too large for a picture of its nodes: a map with a row for each
// port and the time across, for each run.

const (
	maxMapRows = 240 // ports with a state; of more, those with the most states
	mapWidth   = 560 // points
	mapLeft    = 118 // of it, for names
	mapBottom  = 20  // for the times
	mapHeight  = 480 // of all rows, or less
	mapNamed   = 9   // the least height of a row that has its name
	mapTallest = 12  // rows
	mapTicks   = 5   // times below the map, at most
)

// maxMaps is how many runs have a map.
const maxMaps = 6

// portMap is the view of runs of the same network.
type portMap struct {
	ID, Caption string
	Names       string // of the rows, from the top
	Runs        []portMapRun
	Legend      []netEntry
}

// alike returns the first case with the runs of all cases that have its network and its times.
func alike(cases []caseView, n *network.Network) caseView {
	all := cases[0]
	m := all.Runs[0].Manifest
	for _, c := range cases[1:] {
		other := c.Runs[0].Manifest
		if other.WarmupNs == m.WarmupNs && other.DurationNs == m.DurationNs &&
			other.SampleNs == m.SampleNs &&
			slices.Equal(c.Experiment.Topology.Network().Ports(), n.Ports()) {
			all.Runs = append(slices.Clone(all.Runs), c.Runs...)
		}
	}
	all.Runs = all.Runs[:min(len(all.Runs), maxMaps)]
	return all
}

type portMapRun struct {
	Label string
	SVG   template.HTML
}

// mapRow is a port of a map.
type mapRow struct {
	port   int // among the network's
	name   string
	tiers  string // from which one to which one
	states int    // frames with a state, in all runs
}

// portMapOf returns the map of a case's runs, or nil if no port of any run has a state.
func portMapOf(c caseView, n *network.Network, id string) *portMap {
	s := statesOf(c, n)
	rows, more := mapRows(s, n)
	if len(rows) == 0 {
		return nil
	}
	m := &portMap{ID: id, Legend: netLegend(), Caption: fmt.Sprintf(
		"Each row is a port, from hosts up to the spine and down again: %d of %d ports were ever "+
			"paused or congested.", len(rows)+more, len(n.Ports()))}
	if more > 0 {
		m.Caption += fmt.Sprintf(" The %d with the longest times are drawn.", len(rows))
	}
	var names []string
	for _, row := range rows {
		names = append(names, row.name)
	}
	m.Names = strings.Join(names, ",")
	for i, r := range c.Runs {
		m.Runs = append(m.Runs, portMapRun{r.Label, s.mapSVG(r.Label, rows, s.states[i])})
	}
	return m
}

// mapRows returns the ports with a state in any run, and how many it left out. Ports of the same
// tiers stand together: those that lead up first, from the hosts on.
func mapRows(s netStates, n *network.Network) (rows []mapRow, more int) {
	level, name := map[string]int{}, map[int]string{}
	for i, t := range n.Tiers() {
		name[i] = t.Name
		for _, node := range t.Nodes {
			level[node] = i
		}
	}
	order := map[string]int{}
	for p, port := range n.Ports() {
		if !s.used[p] {
			continue
		}
		from, to, _ := network.SplitPort(port)
		a, b := level[from], level[to]
		row := mapRow{port: p, name: port, tiers: name[a] + " -> " + name[b]}
		order[row.tiers] = a
		if b < a { // down: behind all that lead up, and from the top
			order[row.tiers] = 2*len(name) - a
		}
		for _, run := range s.states {
			for _, state := range run[p] {
				if isState(state) {
					row.states++
				}
			}
		}
		rows = append(rows, row)
	}
	if len(rows) > maxMapRows {
		slices.SortStableFunc(rows, func(a, b mapRow) int { return b.states - a.states })
		rows, more = rows[:maxMapRows], len(rows)-maxMapRows
	}
	slices.SortFunc(rows, func(a, b mapRow) int {
		return cmp.Or(order[a.tiers]-order[b.tiers], cmp.Compare(a.tiers, b.tiers), a.port-b.port)
	})
	return rows, more
}

// mapSVG draws the rows of a run. Its data attributes tell the script which times it has.
func (s netStates) mapSVG(label string, rows []mapRow, states [][]portState) template.HTML {
	tall := min(float64(mapHeight)/float64(len(rows)), mapTallest)
	height := tall * float64(len(rows))
	wide := float64(mapWidth-mapLeft) / float64(s.frames)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="portmap" role="img" aria-label="%s" viewBox="0 0 %d %.4g" `+
		`data-start="%.4g" data-step="%.4g" data-frames="%d" data-left="%d" data-bottom="%.4g">`,
		template.HTMLEscapeString("States of ports over time: "+label), mapWidth,
		height+mapBottom, toMs(-s.warmupNs), toMs(s.stepNs), s.frames, mapLeft, height)
	for _, look := range viewStates {
		var path strings.Builder
		for i, row := range rows {
			for _, r := range runsOf(states[row.port], look.State) {
				fmt.Fprintf(&path, "M%.5g,%.4gh%.5gv%.4gh-%.5gz", mapLeft+wide*float64(r[0]),
					tall*float64(i), wide*float64(r[1]), 0.9*tall, wide*float64(r[1]))
			}
		}
		if path.Len() > 0 {
			fmt.Fprintf(&b, `<path d="%s" fill="%s"/>`, path.String(), look.Color)
		}
	}
	writeMapNames(&b, rows, tall)
	s.writeMapTimes(&b, height)
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// runsOf returns where a state begins and how many frames it lasts, each time.
func runsOf(states []portState, of portState) (runs [][2]int) {
	for i := 0; i < len(states); i++ {
		from := i
		for i < len(states) && states[i] == of {
			i++
		}
		if i > from {
			runs = append(runs, [2]int{from, i - from})
		}
	}
	return runs
}

// writeMapNames writes the name of each row, or of each group of rows if those are low, and lines
// between groups.
func writeMapNames(b *strings.Builder, rows []mapRow, tall float64) {
	for from := 0; from < len(rows); {
		to := from
		for to < len(rows) && rows[to].tiers == rows[from].tiers {
			if tall >= mapNamed {
				fmt.Fprintf(b, `<text x="%d" y="%.4g">%s</text>`, mapLeft-4,
					tall*(float64(to)+0.8), template.HTMLEscapeString(rows[to].name))
			}
			to++
		}
		top, middle := tall*float64(from), tall*float64(from+to)/2
		fmt.Fprintf(b, `<path class="edge" d="M0,%.4gH%d"/>`, top, mapWidth)
		if tall < mapNamed && tall*float64(to-from) >= mapNamed {
			fmt.Fprintf(b, `<text x="%d" y="%.4g">%s</text>`, mapLeft-4, middle+3,
				template.HTMLEscapeString(rows[from].tiers))
		}
		from = to
	}
}

// writeMapTimes writes the times below the rows, in ms.
func (s netStates) writeMapTimes(b *strings.Builder, height float64) {
	fmt.Fprintf(b, `<path class="edge" d="M%d,%.4gH%d"/>`, mapLeft, height, mapWidth)
	start, length := toMs(-s.warmupNs), toMs(s.stepNs)*float64(s.frames)
	step := tickStep(length / mapTicks)
	for at := 0.0; at < start+length; at += step {
		x := mapLeft + (at-start)/length*(mapWidth-mapLeft)
		anchor := "middle"
		if x > mapWidth-24 {
			anchor = "end"
		}
		unit := ""
		if at == 0 {
			unit = " ms"
		}
		fmt.Fprintf(b, `<text x="%.5g" y="%.5g" text-anchor="%s">%.4g%s</text>`, x, height+13,
			anchor, at, unit)
	}
}
