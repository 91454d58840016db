// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
)

// Sizes of a drawn network, in points.
const (
	topologyLabel  vg.Length = 108 // width of the labels left of the rows
	topologyWidth  vg.Length = 420
	topologyRow    vg.Length = 72 // between tiers, at least
	topologyMargin vg.Length = 14
	nameGap        vg.Length = 4  // between names of hosts, at least
	switchGap      vg.Length = 26 // between switches, at least
	parallelGap    vg.Length = 3  // between links of the same two nodes
	hostRadius     vg.Length = 2.4
	switchHeight   vg.Length = 12
	columnStep     vg.Length = 10 // between the hosts of a column
	columnGap      vg.Length = 11 // left of the names of a column: its line and the hosts
)

// Hosts are side by side if they are few, else in columns below their switch: 512 side by side
// would need a picture of five metres for their names.
const (
	maxHostsInRow = 40
	hostsInColumn = 16
)

// maxNamedLinks is how many links of a tier are labelled one by one. Those whose rate and delay are
// the most frequent of their tier never are: the label at the left has them.
const maxNamedLinks = 12

var (
	linkColor   = color.Gray{Y: 0x70}
	failedColor = color.RGBA{R: 0xc0, G: 0x2a, B: 0x2a, A: 0xff}
	switchColor = color.RGBA{R: 0xdc, G: 0xe6, B: 0xf4, A: 0xff}
)

// WriteTopology draws a network as an SVG file, with a row for each tier and hosts at the bottom.
// All nodes have their names, and links their rates and delays. Failed links are dashed.
func WriteTopology(w io.Writer, n *network.Network) error {
	d := newTopologyDrawing(n, len(n.Hosts) > maxHostsInRow)
	canvas := vgsvg.New(d.width, d.height)
	c := draw.New(canvas)
	d.drawLinks(c, n.Links, draw.LineStyle{Color: linkColor, Width: vg.Points(0.6)})
	d.drawLinks(c, n.Failed, draw.LineStyle{Color: failedColor, Width: vg.Points(1),
		Dashes: []vg.Length{3, 2}})
	for level, t := range d.tiers {
		d.drawTier(c, level, t)
	}
	d.labelLinks(c, n)
	if _, err := canvas.WriteTo(w); err != nil {
		return fmt.Errorf("write drawing of the network: %w", err)
	}
	return nil
}

// topologyDrawing has the positions of the nodes.
type topologyDrawing struct {
	tiers         []network.Tier
	level         map[string]int
	width, height vg.Length
	row           vg.Length   // distance between tiers
	hosts         vg.Length   // height of the columns of hosts; 0 without columns
	gap           []vg.Length // between the nodes of each tier
	at            map[string]vg.Point
	inColumn      map[string]vg.Length // where the column's line is, for hosts in columns
}

func newTopologyDrawing(n *network.Network, columns bool) *topologyDrawing {
	d := &topologyDrawing{tiers: n.Tiers(), at: make(map[string]vg.Point),
		level: make(map[string]int), inColumn: make(map[string]vg.Length)}
	for level, t := range d.tiers {
		for _, name := range t.Nodes {
			d.level[name] = level
		}
	}
	below := make(map[string][]string) // hosts by their switch
	widest := vg.Length(0)
	for _, name := range n.Hosts {
		widest = max(widest, hostLabel.Width(name))
	}
	for _, l := range n.Links {
		for _, ends := range [][2]string{{l.A, l.B}, {l.B, l.A}} {
			if d.level[ends[0]] == 0 {
				below[ends[1]] = append(below[ends[1]], ends[0])
			}
		}
	}
	columnWidth := columnGap + widest + nameGap
	slots, total := []vg.Length{}, vg.Length(0) // of the switches next to hosts
	for _, name := range d.tiers[1].Nodes {
		count := (len(below[name]) + hostsInColumn - 1) / hostsInColumn
		slots = append(slots, max(switchGap, vg.Length(count)*columnWidth+nameGap))
		total += slots[len(slots)-1]
		if columns {
			d.hosts = max(d.hosts, columnStep*vg.Length(min(len(below[name]), hostsInColumn)))
		}
	}
	width := topologyWidth
	for level, t := range d.tiers {
		switch {
		case level > 0:
			width = max(width, switchGap*vg.Length(len(t.Nodes)))
		case columns:
			width = max(width, total)
		default:
			width = max(width, (widest+nameGap)*vg.Length(len(t.Nodes)))
		}
	}
	d.row = max(topologyRow, width/12)
	d.width = topologyLabel + width + topologyMargin
	d.height = d.rowAt(len(d.tiers)-1) + 2*topologyMargin
	for level, t := range d.tiers {
		gap := width / vg.Length(len(t.Nodes))
		d.gap = append(d.gap, gap)
		for i, name := range t.Nodes {
			d.at[name] = vg.Point{X: topologyLabel + gap*(vg.Length(i)+0.5), Y: d.rowAt(level)}
		}
	}
	if columns {
		d.stack(below, slots, width/total, columnWidth)
	}
	return d
}

// stack puts hosts into columns below their switches, each in its slot, which is stretched to fill
// the width.
func (d *topologyDrawing) stack(below map[string][]string, slots []vg.Length, stretch,
	columnWidth vg.Length) {
	left := topologyLabel
	for i, sw := range d.tiers[1].Nodes {
		slot := slots[i] * stretch
		d.at[sw] = vg.Point{X: left + slot/2, Y: d.rowAt(1)}
		columns := (len(below[sw]) + hostsInColumn - 1) / hostsInColumn
		first := left + (slot-columnWidth*vg.Length(columns))/2
		for k, host := range below[sw] {
			line := first + columnWidth*vg.Length(k/hostsInColumn) + hostRadius
			d.inColumn[host] = line
			d.at[host] = vg.Point{X: line + columnGap/2, Y: topologyMargin + d.hosts -
				columnStep*(vg.Length(k%hostsInColumn)+0.5)}
		}
		left += slot
	}
}

// rowAt returns the height of a tier's nodes.
func (d *topologyDrawing) rowAt(level int) vg.Length {
	if level > 0 && d.hosts > 0 {
		return topologyMargin + d.hosts + d.row*(vg.Length(level)-0.5)
	}
	return 2*topologyMargin + d.row*vg.Length(level)
}

// ends returns where a link is drawn. Links between the same nodes are side by side.
func (d *topologyDrawing) ends(l network.Link) (a, b vg.Point) {
	a, b = d.at[l.A], d.at[l.B]
	aside := parallelGap * vg.Length(parallel(l))
	if a.Y == b.Y { // a horizontal shift would draw them on top of each other
		return vg.Point{X: a.X, Y: a.Y + aside}, vg.Point{X: b.X, Y: b.Y + aside}
	}
	return vg.Point{X: a.X + aside, Y: a.Y}, vg.Point{X: b.X + aside, Y: b.Y}
}

// parallel returns the number of a link among those of the same two nodes.
func parallel(l network.Link) int {
	number, _ := strconv.Atoi(strings.TrimPrefix(l.Suffix, ".")) // 0 without a suffix
	return number
}

// drawLinks draws links. Those to the hosts of a column share its line.
func (d *topologyDrawing) drawLinks(c draw.Canvas, links []network.Link, style draw.LineStyle) {
	for _, l := range links {
		a, b := d.ends(l)
		host, top := a, b
		line, ok := d.inColumn[l.A]
		if !ok {
			line, ok = d.inColumn[l.B]
			host, top = b, a
		}
		if ok {
			corner := vg.Point{X: line, Y: topologyMargin + d.hosts}
			c.StrokeLines(style, []vg.Point{top, corner, {X: line, Y: host.Y}, host})
			continue
		}
		c.StrokeLine2(style, a.X, a.Y, b.X, b.Y)
	}
}

var hostLabel = labelStyle(7)

// drawTier draws the nodes of a tier over their links, and at the left what its links up are.
func (d *topologyDrawing) drawTier(c draw.Canvas, level int, t network.Tier) {
	y := d.rowAt(level)
	if level == 0 && d.hosts > 0 {
		y = topologyMargin + d.hosts/2
	}
	c.FillText(labelStyle(9), vg.Point{X: topologyMargin / 2, Y: y},
		fmt.Sprintf("%s: %d", t.Name, len(t.Nodes)))
	for i, g := range t.Links {
		c.FillText(labelStyle(7), vg.Point{X: topologyMargin / 2, Y: y + 12 + 9*vg.Length(i)},
			fmt.Sprintf("%d × %s", g.Count, linkInWords(g.RateBps, g.DelayNs)))
	}
	named := hostLabel
	named.XAlign = text.XCenter
	for _, name := range t.Nodes {
		at := d.at[name]
		if level > 0 {
			d.drawSwitch(c, at, name, named)
			continue
		}
		c.DrawGlyph(draw.GlyphStyle{Color: linkColor, Radius: hostRadius,
			Shape: draw.CircleGlyph{}}, at)
		if _, ok := d.inColumn[name]; ok {
			c.FillText(hostLabel, vg.Point{X: at.X + hostRadius + 1.5, Y: at.Y}, name)
			continue
		}
		c.FillText(named, vg.Point{X: at.X, Y: at.Y - 9}, name)
	}
}

func linkInWords(rateBps, delayNs uint64) string {
	return fmt.Sprintf("%s, %s", experiment.Rate(rateBps), experiment.Duration(delayNs))
}

// labelLinks labels links that are not like most of their tier.
func (d *topologyDrawing) labelLinks(c draw.Canvas, n *network.Network) {
	style := labelStyle(6.5)
	style.XAlign = text.XCenter
	for level, t := range d.tiers {
		if len(t.Links) < 2 {
			continue
		}
		most := slices.MaxFunc(t.Links, func(a, b network.LinkGroup) int {
			return cmp.Compare(a.Count, b.Count)
		})
		var others []network.Link
		for _, l := range n.Links {
			if min(d.level[l.A], d.level[l.B]) == level &&
				(l.RateBps != most.RateBps || l.DelayNs != most.DelayNs) {
				others = append(others, l)
			}
		}
		for _, l := range others[:min(len(others), maxNamedLinks)] {
			a, b := d.ends(l)
			c.FillText(style, vg.Point{X: (a.X + b.X) / 2, Y: (a.Y+b.Y)/2 + 5},
				linkInWords(l.RateBps, l.DelayNs))
		}
	}
}

func (d *topologyDrawing) drawSwitch(c draw.Canvas, at vg.Point, name string, style text.Style) {
	half := vg.Point{X: max(style.Width(name)/2+3, 9), Y: switchHeight / 2}
	box := vg.Rectangle{Min: at.Sub(half), Max: at.Add(half)}
	corners := []vg.Point{box.Min, {X: box.Max.X, Y: box.Min.Y}, box.Max,
		{X: box.Min.X, Y: box.Max.Y}}
	c.FillPolygon(switchColor, corners)
	c.StrokeLines(draw.LineStyle{Color: color.Black, Width: vg.Points(0.6)},
		append(corners, box.Min))
	c.FillText(style, at, name)
}
