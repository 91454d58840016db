// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"gonum.org/v1/plot/vg"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

func networkOf(t *testing.T, topology string) *network.Network {
	t.Helper()
	e, err := experiment.Parse("t.yaml",
		[]byte("name: t\ntopology: "+topology+"\nschemes: [pfc]\nduration: 1ms\nflows: [{name: f, from: H0, to: H1}]\n"))
	qt.Assert(t, qt.IsNil(err))
	return e.Topology.Network()
}

// shipped returns the network of an experiment that comes along.
func shipped(t *testing.T, name string) *network.Network {
	t.Helper()
	e, err := experiments.Load(name)
	qt.Assert(t, qt.IsNil(err))
	return e.Topology.Network()
}

// drawn is the file, its texts, and how many of its lines are dashed.
func drawn(t *testing.T, n *network.Network) (svg string, texts []string, dashed int) {
	t.Helper()
	var buf bytes.Buffer
	qt.Assert(t, qt.IsNil(WriteTopology(&buf, n)))
	svg = buf.String()
	for dec := xml.NewDecoder(&buf); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		qt.Assert(t, qt.IsNil(err))
		if data, ok := token.(xml.CharData); ok && strings.TrimSpace(string(data)) != "" {
			texts = append(texts, strings.TrimSpace(string(data)))
		}
	}
	return svg, texts, len(regexp.MustCompile(`<path [^>]*stroke-dasharray`).FindAllString(svg, -1))
}

func TestTopologyIsDrawn(t *testing.T) {
	n := networkOf(t, "{kind: leaf-spine, spine_links: {parallel: 2}, failed: [L0-S1, L1-S0.1]}")
	svg, texts, dashed := drawn(t, n)
	qt.Check(t, qt.DeepEquals(texts, []string{"host: 4", "4 × 40Gbps, 5us", "H0", "H1", "H2",
		"H3", "leaf: 2", "5 × 40Gbps, 5us", "L0", "L1", "spine: 2", "S0", "S1"}))
	qt.Check(t, qt.Equals(dashed, 3))
	again, _, _ := drawn(t, n)
	qt.Check(t, qt.Equals(again, svg))
}

// TestLinksAreDrawnApart: parallel links, and one that has failed beside one that works, are
// different lines.
func TestLinksAreDrawnApart(t *testing.T) {
	n := networkOf(t, "{kind: leaf-spine, spine_links: {parallel: 3}, failed: [L0-S1.1]}")
	svg, _, _ := drawn(t, n)
	lines := regexp.MustCompile(`<path d="(M[^"]*L[^"Z]*)"`).FindAllStringSubmatch(svg, -1)
	seen := map[string]bool{}
	for _, l := range lines {
		seen[l[1]] = true
	}
	qt.Check(t, qt.IsTrue(len(lines) >= 4+12))
	qt.Check(t, qt.HasLen(seen, len(lines)))
}

// All 568 nodes have their names, in a picture that a screen can show.
func TestManyHostsHaveNames(t *testing.T) {
	n := shipped(t, "clos-full")
	_, texts, _ := drawn(t, n)
	for _, name := range n.Nodes() {
		qt.Check(t, qt.SliceContains(texts, name))
	}
	qt.Check(t, qt.SliceContains(texts, "512 × 10Gbps, 5us"))
	d := newTopologyDrawing(n, true)
	qt.Check(t, qt.IsTrue(d.width < 1600), qt.Commentf("%v points", d.width))
	taken := map[vg.Point]string{}
	for name, at := range d.at {
		qt.Check(t, qt.Equals(taken[at], ""), qt.Commentf("%s", name))
		taken[at] = name
		qt.Check(t, qt.IsTrue(at.X > topologyLabel && at.X < d.width && at.Y > 0 &&
			at.Y < d.height), qt.Commentf("%s at %v", name, at))
	}
}

// A link that is unlike the others of its tier has its own label.
func TestOtherLinksAreLabelled(t *testing.T) {
	_, texts, _ := drawn(t, shipped(t, "qcn-buffers"))
	qt.Check(t, qt.SliceContains(texts, "10Gbps, 30us"))
}
