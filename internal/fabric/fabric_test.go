// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// sound has no mistake and no risk.
const sound = `name: sound
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 4, rate: 100Gbps, delay: 1us, ` +
	`spine_links: {rate: 200Gbps}}
schemes: [dcqcn]
engine: sim
frame: 1000B
duration: 1ms
marking: {kmin: 50KB, kmax: 200KB, pmax: 10%}
switch:
  buffer: 16MB
  port_buffer: 1MB
  pfc: {xoff: 400KB, xon: 300KB, pause_time: 100us, pause_repeat: 50us}
flows:
  - {name: f, from: H0..H3, to: H4..H7}
`

// dynamic is sound with thresholds that follow the free buffer.
var dynamic = strings.Replace(sound, "{xoff: 400KB, xon: 300KB,",
	"{dynamic: {alpha: 1/2, headroom: 2.2, reserve: 0B},", 1)

// shared is dynamic without headroom of its own.
var shared = strings.Replace(dynamic, "headroom: 2.2, reserve: 0B", "xon_offset: 2KB", 1)

// credited is sound with credits.
var credited = strings.NewReplacer("pfc: {xoff: 400KB, xon: 300KB, pause_time: 100us, "+
	"pause_repeat: 50us}", "flow_control: cbfc\n  cbfc: {buffer: 600KB, period: 20us}").
	Replace(sound)

// ring has switches in a circle, over which shortest paths lead.
func ring() string {
	text := `13 5 13\n8 9 10 11 12\n`
	for host := range 8 {
		text += fmt.Sprintf(`%d %d 100Gbps 0.001ms 0\n`, host, 8+host%5)
	}
	for sw := range 5 {
		text += fmt.Sprintf(`%d %d 100Gbps 0.001ms 0\n`, 8+sw, 8+(sw+1)%5)
	}
	return "topology: {file: ring.txt}\nfiles: {ring.txt: \"" + text + "\"}\n"
}

func check(t *testing.T, file string) []Finding {
	t.Helper()
	e, err := experiment.Parse("f.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	r, err := Check(e)
	qt.Assert(t, qt.IsNil(err))
	return r.Findings
}

func TestSoundFilesHaveNoFindings(t *testing.T) {
	for name, file := range map[string]string{
		"static": sound, "dynamic": dynamic, "shared": shared, "credits": credited,
	} {
		qt.Check(t, qt.HasLen(check(t, file), 0), qt.Commentf("%s", name))
	}
}

// Each of these is one mistake in a sound file.
func TestPlantedMistakes(t *testing.T) {
	topology := sound[strings.Index(sound, "topology"):strings.Index(sound, "schemes")]
	twoSpines := "leaves: 2, spines: 2, hosts: 4"
	for _, tc := range []struct {
		name, file, old, new string
		severity             Severity
		key                  string
		line                 int
		want                 string // part of the message
	}{
		{"circle of links", sound, topology, ring(), Mistake, "topology", 2,
			"routes make a circle of buffers"},
		{"circle after two failures", sound, twoSpines, "leaves: 4, spines: 2, hosts: 4",
			Risk, "topology", 2, "fail, routes make a circle of buffers"},
		{"circle of a file with one failure", sound, twoSpines,
			"leaves: 4, spines: 2, hosts: 4, failed: [L0-S0]", Risk, "topology", 2,
			"routes make a circle of buffers"},
		{"a lossy class without a bound", sound, "buffer: 16MB",
			"classes: [{priority: 0, lossy: true}]\n  buffer: 16MB", Risk, "switch.classes", 9,
			"lossy queues may leave 0B of L0's buffer"},
		{"a lossy class with a high alpha", sound, "buffer: 16MB",
			"classes: [{priority: 0, lossy: true, alpha: 1}]\n  buffer: 16MB", Risk,
			"switch.classes", 9, "lossy queues may leave 2.285714MB of L0's buffer"},
		{"small buffer", sound, "buffer: 16MB", "buffer: 1.5MB", Mistake, "switch.buffer",
			9, "of L0 may hold"},
		{"high xoff", sound, "xoff: 400KB", "xoff: 4.1MB", Mistake, "switch.buffer", 9,
			"before all senders have stopped"},
		{"long cables", sound, "delay: 1us", "delay: 200us", Mistake, "switch.buffer", 9,
			"before all senders have stopped"},
		{"xoff above the queue's limit", sound, "port_buffer: 1MB", "port_buffer: 300KB",
			Mistake, "switch.port_buffer", 10,
			"a queue drops at 300KB, before PAUSE begins at 400KB"},
		{"low xon", sound, "xon: 300KB", "xon: 10KB", Risk, "switch.pfc.xon", 11,
			"are gone before data comes"},
		{"PAUSE is not repeated", sound, "pause_repeat: 50us", "pause_repeat: 0s",
			Mistake, "switch.pfc.pause_repeat", 11, "senders go on meanwhile"},
		{"PAUSE is repeated late", sound, "pause_repeat: 50us", "pause_repeat: 99.99us",
			Mistake, "switch.pfc.pause_repeat", 11, "10ns to arrive"},
		{"marks above xoff", sound, "kmin: 50KB, kmax: 200KB", "kmin: 500KB, kmax: 600KB",
			Mistake, "marking.kmin", 7, "it hears of no queue"},
		{"marks in part above xoff", sound, "kmax: 200KB", "kmax: 1MB", Risk,
			"marking.kmax", 7, "marks reach their full rate at 1MB"},
		{"marks above drops", lossy(), "kmin: 50KB, kmax: 200KB", "kmin: 5MB, kmax: 6MB",
			Mistake, "marking.kmin", 7, "and drops at 1MB"},
		{"marks above the buffer", lossy(), "kmin: 50KB, kmax: 200KB",
			"kmin: 17MB, kmax: 18MB", Mistake, "marking.kmin", 7,
			"marks from a queue of 17MB"},
		{"marks above a dynamic xoff", dynamic, "kmin: 50KB, kmax: 200KB",
			"kmin: 5.4MB, kmax: 6MB", Mistake, "marking.kmin", 7,
			"it hears of no queue"},
		{"little headroom", dynamic, "headroom: 2.2", "headroom: 1.5", Mistake,
			"switch.pfc.dynamic.headroom", 11, "arrives after a PAUSE"},
		{"headroom for short frames", dynamic, "frame: 1000B", "frame: 9000B", Mistake,
			"switch.pfc.dynamic.headroom", 11, "arrives after a PAUSE"},
		{"high alpha", shared, "alpha: 1/2", "alpha: 16", Mistake,
			"switch.pfc.dynamic.alpha", 11, "at their threshold leave"},
		{"few credits", credited, "buffer: 600KB", "buffer: 100KB", Mistake,
			"switch.cbfc.buffer", 12, "which then idles"},
		{"oversubscription", sound, "hosts: 4", "hosts: 8", Risk, "topology", 2,
			"tier leaf is oversubscribed by 2:1"},
		{"slow links between switches", sound, "spine_links: {rate: 200Gbps}",
			"spine_links: {rate: 50Gbps}", Risk, "topology", 2,
			"has 50Gbps, and one host sends 100Gbps"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.StringContains(tc.file, tc.old))
			findings := check(t, strings.Replace(tc.file, tc.old, tc.new, 1))
			for _, f := range findings {
				if f.Severity == tc.severity && f.Key == tc.key && f.Line == tc.line &&
					strings.Contains(f.Message, tc.want) {
					qt.Check(t, qt.Not(qt.Equals(f.Hint, "")))
					qt.Check(t, qt.StringContains(f.Show, "pcn "))
					return
				}
			}
			t.Errorf("not found, but %+v", findings)
		})
	}
}

// lossy is sound without PFC.
func lossy() string {
	return strings.Replace(sound,
		"{xoff: 400KB, xon: 300KB, pause_time: 100us, pause_repeat: 50us}", "{off: true}", 1)
}

// The built-in experiments have two mistakes: one is what the experiment is about. In the other
// xoff is meant to be out of reach of its scheme, and four ports that reach it need more than the
// buffer: TestFoundDropsAreReal of internal/sim.
func TestMistakesOfBuiltInExperiments(t *testing.T) {
	want := map[string]string{"deadlock": "topology", "appendix-a": "switch.buffer"}
	for _, name := range experiments.Names() {
		e, err := experiments.Load(name)
		qt.Assert(t, qt.IsNil(err))
		r, err := Check(e)
		qt.Assert(t, qt.IsNil(err))
		for _, f := range r.Findings {
			if f.Severity == Mistake {
				qt.Check(t, qt.Equals(f.Key, want[name]), qt.Commentf("%s: %+v", name, f))
				delete(want, name)
			}
		}
	}
	qt.Check(t, qt.HasLen(want, 0))
}
