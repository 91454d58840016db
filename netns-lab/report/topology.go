// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"image/color"
	"io"
	"strconv"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/pcn-linux/pcn/netns-lab/network"
)

// Sizes of a drawn network, in points.
const (
	topologyLabel  vg.Length = 90 // width of the labels left of the rows
	topologyWidth  vg.Length = 420
	topologyRow    vg.Length = 72 // between tiers, at least
	topologyMargin vg.Length = 14
	hostGap        vg.Length = 7  // between hosts, at least
	switchGap      vg.Length = 26 // between switches, at least
	parallelGap    vg.Length = 3  // between links of the same two nodes
	hostRadius     vg.Length = 2.4
	switchHeight   vg.Length = 12
)

var (
	linkColor   = color.Gray{Y: 0x70}
	failedColor = color.RGBA{R: 0xc0, G: 0x2a, B: 0x2a, A: 0xff}
	switchColor = color.RGBA{R: 0xdc, G: 0xe6, B: 0xf4, A: 0xff}
)

// WriteTopology draws a network as an SVG file, with a row for each tier and hosts at the bottom.
// Failed links are dashed.
func WriteTopology(w io.Writer, n *network.Network) error {
	d := newTopologyDrawing(n)
	canvas := vgsvg.New(d.width, d.height)
	c := draw.New(canvas)
	d.drawLinks(c, n.Links, draw.LineStyle{Color: linkColor, Width: vg.Points(0.6)})
	d.drawLinks(c, n.Failed, draw.LineStyle{Color: failedColor, Width: vg.Points(1),
		Dashes: []vg.Length{3, 2}})
	for level, t := range d.tiers {
		d.drawTier(c, level, t)
	}
	if _, err := canvas.WriteTo(w); err != nil {
		return fmt.Errorf("write drawing of the network: %w", err)
	}
	return nil
}

// topologyDrawing has the positions of the nodes.
type topologyDrawing struct {
	tiers         []network.Tier
	width, height vg.Length
	row           vg.Length   // distance between tiers
	gap           []vg.Length // between the nodes of each tier
	at            map[string]vg.Point
}

func newTopologyDrawing(n *network.Network) *topologyDrawing {
	d := &topologyDrawing{tiers: n.Tiers(), at: make(map[string]vg.Point)}
	width := topologyWidth
	for level, t := range d.tiers {
		width = max(width, minGap(level)*vg.Length(len(t.Nodes)))
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
	return d
}

// rowAt returns the height of a tier's nodes.
func (d *topologyDrawing) rowAt(level int) vg.Length {
	return 2*topologyMargin + d.row*vg.Length(level)
}

func minGap(level int) vg.Length {
	if level == 0 {
		return hostGap
	}
	return switchGap
}

// drawLinks draws links between the same nodes side by side.
func (d *topologyDrawing) drawLinks(c draw.Canvas, links []network.Link, style draw.LineStyle) {
	for _, l := range links {
		a, b := d.at[l.A], d.at[l.B]
		number, _ := strconv.Atoi(strings.TrimPrefix(l.Suffix, ".")) // 0 without a suffix
		aside := parallelGap * vg.Length(number)
		if a.Y == b.Y { // a horizontal shift would draw them on top of each other
			c.StrokeLine2(style, a.X, a.Y+aside, b.X, b.Y+aside)
			continue
		}
		c.StrokeLine2(style, a.X+aside, a.Y, b.X+aside, b.Y)
	}
}

// drawTier draws the nodes of a tier over their links. It writes names of hosts only if they fit.
func (d *topologyDrawing) drawTier(c draw.Canvas, level int, t network.Tier) {
	row := labelStyle(9)
	c.FillText(row, vg.Point{X: topologyMargin / 2, Y: d.rowAt(level)},
		fmt.Sprintf("%s: %d", t.Name, len(t.Nodes)))
	named := labelStyle(7)
	named.XAlign = text.XCenter
	for _, name := range t.Nodes {
		at := d.at[name]
		if level > 0 {
			d.drawSwitch(c, at, name, named)
			continue
		}
		c.DrawGlyph(draw.GlyphStyle{Color: linkColor, Radius: hostRadius,
			Shape: draw.CircleGlyph{}}, at)
		if named.Width(name)+2 < d.gap[level] {
			c.FillText(named, vg.Point{X: at.X, Y: at.Y - 9}, name)
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
