// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// load returns hol, for 19 ms whatever the file says, and with the figures of Fig. 2 alone.
func load(t *testing.T) *experiment.Experiment {
	t.Helper()
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	e, err = e.With(experiment.Changes{Duration: new(19 * experiment.Millisecond)})
	qt.Assert(t, qt.IsNil(err))
	e.Compare, e.Figures.SendRate, e.Figures.Reference = nil, nil, nil
	return e
}

func fig2(e *experiment.Experiment) []*result.Run {
	return []*result.Run{resulttest.Fig2(e, "pfc"), resulttest.Fig2(e, "pcn")}
}

func render(t *testing.T, e *experiment.Experiment, runs []*result.Run) string {
	t.Helper()
	var buf bytes.Buffer
	qt.Assert(t, qt.IsNil(Write(&buf, Group{Experiment: e, Runs: runs})))
	return buf.String()
}

// rows returns the text of the cells of each row of every table.
func rows(page string) []string {
	tags := regexp.MustCompile(`<[^>]*>`)
	var texts []string
	for _, row := range regexp.MustCompile(`(?s)<tr>.*?</tr>`).FindAllString(page, -1) {
		cells := strings.NewReplacer("</td>", "|", "</th>", "|").Replace(row)
		texts = append(texts, tags.ReplaceAllString(cells, ""))
	}
	return texts
}

var svgElement = regexp.MustCompile(`(?s)<svg role=.*?</svg>`)

// Two runs on different machines, at different times, give the same bytes.
func TestReportIsTheSameBytesOnEveryMachine(t *testing.T) {
	e := load(t)
	elsewhere := fig2(e)
	for _, r := range elsewhere {
		r.Manifest.Wall = result.Wall{StartedAt: time.Unix(1e9, 0), TotalS: 8127.5, BootS: 913.25,
			Host: "some-other-machine"}
	}
	page := render(t, e, fig2(e))
	qt.Assert(t, qt.Equals(page, render(t, e, elsewhere)))
	qt.Assert(t, qt.Not(qt.StringContains(page, "nowhere"))) // the host of the made-up runs
}

// The page must do offline: nothing to fetch.
func TestReportIsSelfContained(t *testing.T) {
	e := load(t)
	page := regexp.MustCompile(`"data:[a-z/]*;base64,[^"]*"`).
		ReplaceAllString(render(t, e, fig2(e)), "") // files to save
	namespaces := strings.NewReplacer(`xmlns="http://www.w3.org/2000/svg"`, "",
		`xmlns:xlink="http://www.w3.org/1999/xlink"`, "")
	for _, outside := range []string{"http:", "https:", "//", "<script src", "<link", "<img",
		"@import", "url("} {
		qt.Check(t, qt.Not(qt.StringContains(namespaces.Replace(page), outside)))
	}
}

func TestFiguresAreWellFormed(t *testing.T) {
	e := load(t)
	figures := svgElement.FindAllString(render(t, e, fig2(e)), -1)
	qt.Assert(t, qt.HasLen(figures, 3))
	for _, svg := range figures {
		dec := xml.NewDecoder(strings.NewReader(svg))
		for {
			_, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			qt.Assert(t, qt.IsNil(err))
		}
		qt.Assert(t, qt.Not(qt.StringContains(svg, "NaN")))
		qt.Assert(t, qt.Not(qt.StringContains(svg, "Inf")))
	}
}

// Each figure has labelled axes with units, and names what it draws.
func TestFiguresAreLabelled(t *testing.T) {
	e := load(t)
	figures := svgElement.FindAllString(render(t, e, fig2(e)), -1)
	for i, want := range [][]string{
		{">PAUSE rate (Mpps)<", ">S1-&gt;S0<", ">S0-&gt;H0<", ">S0-&gt;H1<",
			">PFC: 2.8ms from the first to the last PAUSE of H0 and H1<",
			">PCN: no PAUSE stops H0 or H1<", ">paused<"},
		{">Throughput (Gbit/s)<", ">F0<", ">F1<", ">PFC: throughput loss 3.3ms<",
			">PCN: throughput loss 1.1ms<"},
		{">Queue (MB)<", ">S0-&gt;S1<", ">S1-&gt;R1<", ">PFC<", ">PCN<"},
	} {
		qt.Check(t, qt.Equals(strings.Count(figures[i], ">Time (ms)<"), 1))
		for _, text := range want {
			qt.Check(t, qt.StringContains(figures[i], text))
		}
	}
}

func TestTables(t *testing.T) {
	e := load(t)
	got := rows(render(t, e, fig2(e)))
	for _, want := range []string{
		"PFC|PAUSE reaches H0 and H1|3.1ms|2.8ms, 2.797ms|2.6ms to 3.4ms|yes|",
		"PFC|F0 and F1 both collapse in that time|great throughput loss (no number)|2.602Gbps, 2.401Gbps|at most 6Gbps|yes|",
		"PCN|no PAUSE reaches H0 or H1|none|0|at most 0|yes|",
		"PCN|F0 takes over what F1 leaves while the burst lasts|37.5Gbps (the ideal, section 2.2)|38.5Gbps|at least 30Gbps|yes|",
		"PCN|224 burst flows|→ R1|udp|0ns|2.9ms|14.34MB|14336|0|||||",
		"Dilation|1024 times slower|1024 times slower|",
		"Lateness p50, p99, max|20ns, 90ns, 260ns|20ns, 90ns, 260ns|",
		"Guest CPU busy|81.25%|81.25%|",
		"Warm-up, duration|1ms, 19ms|1ms, 19ms|",
	} {
		qt.Check(t, qt.SliceContains(got, want))
	}
}

func TestBufferOfPortsIsShown(t *testing.T) {
	e := load(t)
	qt.Check(t, qt.Not(qt.StringContains(render(t, e, fig2(e)), "queues of ports")))
	e.Switch.PortBuffer = 150e3
	qt.Check(t, qt.StringContains(render(t, e, fig2(e)), ", queues of ports up to 150KB</li>"))
}

func TestWhatWentWrongIsShown(t *testing.T) {
	e := load(t)
	runs := fig2(e)
	runs[1].Manifest.Verdict = result.Invalid
	runs[1].Manifest.Reasons = []string{"port S0->S1 dropped 3 packets"}
	runs[1].Manifest.LostPackets["switch: no route"] = 3
	runs[1].Flows[len(runs[1].Flows)-1].EndNs = nil
	page := render(t, e, runs)

	qt.Assert(t, qt.StringContains(page, "1 of 2 runs are not valid: do not use their numbers"))
	qt.Assert(t,
		qt.StringContains(page,
			`<b>PCN</b> <span class="invalid">run is invalid</span><br>port S0-&gt;S1 dropped 3 packets`))
	qt.Assert(t, qt.StringContains(page, "10 of 12 results are within their bounds; "+
		"not: F1 is back at 90% of 20 Gbit/s after the burst (PCN); no packet is lost (PCN)."))
	got := rows(page)
	qt.Assert(t, qt.SliceContains(got, "PCN|no packet is lost|lossless|3|at most 0|no|"))
	qt.Assert(t,
		qt.SliceContains(got,
			"PCN|F1 is back at 90% of 20 Gbit/s after the burst|about 10ms (read off Fig. 2b)|not measured: F1: burst flow burst-H15-15 did not end during the run|at most 15ms|no|"))
	qt.Assert(t,
		qt.SliceContains(got, "PCN|224 burst flows|→ R1|udp|0ns|not ended|14.34MB|14336|0|||||"))
	qt.Assert(t, qt.SliceContains(got, "Packets lost outside the ports|0|3|"))
}

// Text of a file that others wrote must not become markup.
func TestTextIsEscaped(t *testing.T) {
	e := load(t)
	e.Title = "<script>alert(1)</script>"
	runs := fig2(e)
	runs[0].Manifest.Reasons = []string{"<img src=x>"}
	runs[0].Manifest.Kernel = "</table>"
	page := render(t, e, runs)
	qt.Assert(t, qt.Not(qt.StringContains(page, "<script>alert")))
	qt.Assert(t, qt.Not(qt.StringContains(page, "<img")))
	qt.Assert(t, qt.StringContains(page, "&lt;script&gt;"))
	qt.Assert(t, qt.StringContains(page, "<td>&lt;/table&gt;</td>"))
}

// Without a choice in the file: the flows under control, and the links and ports with most to show.
func TestFiguresChooseWhatToDraw(t *testing.T) {
	e := load(t)
	e.Figures = experiment.Figures{}
	figures := svgElement.FindAllString(render(t, e, fig2(e)), -1)
	qt.Assert(t, qt.HasLen(figures, 3))
	qt.Assert(t, qt.StringContains(figures[0], ">S1-&gt;S0<"))
	qt.Assert(t, qt.StringContains(figures[0], ">S0-&gt;H1<"))
	qt.Assert(t, qt.Not(qt.StringContains(figures[0], ">S1-&gt;H2<")))
	qt.Assert(t, qt.StringContains(figures[1], ">F0<"))
	qt.Assert(t, qt.StringContains(figures[2], ">S1-&gt;R1<"))
}

func TestFiguresWithoutData(t *testing.T) {
	e := load(t)
	e.Figures = experiment.Figures{}
	r := resulttest.Fig2(e, "pcn")
	r.PFC = nil
	for i := range r.Series {
		r.Series[i].QueueMaxBytes = 0
	}
	page := render(t, e, []*result.Run{r})
	qt.Assert(t, qt.HasLen(svgElement.FindAllString(page, -1), 1))
	qt.Assert(t, qt.StringContains(page, "<b>(a) Throughput is lost for 1.1 ms with PCN.</b>"))

	// What the file asks for is drawn, also if it is nothing.
	e.Figures.Pause = []string{"S1->S0"}
	page = render(t, e, []*result.Run{r})
	qt.Assert(t, qt.StringContains(page, "<b>(a) The link S1-&gt;S0 is never paused.</b>"))
	qt.Assert(t, qt.Not(qt.StringContains(page, "NaN")))
}

func TestLabels(t *testing.T) {
	run := func(scheme string, seed uint64) *result.Run {
		return &result.Run{Manifest: result.Manifest{Scheme: scheme, Seed: seed}}
	}
	for _, tc := range []struct {
		name string
		runs []*result.Run
		want []string
	}{
		{"schemes", []*result.Run{run("pfc", 1), run("pcn", 1)}, []string{"PFC", "PCN"}},
		{"seeds", []*result.Run{run("pcn", 1), run("pcn", 2), run("pfc", 1)},
			[]string{"PCN, seed 1", "PCN, seed 2", "PFC"}},
		{"the same again", []*result.Run{run("pcn", 1), run("pcn", 1)},
			[]string{"PCN, seed 1, run 1", "PCN, seed 1, run 2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, v := range viewsOf(tc.runs) {
				got = append(got, v.Label)
			}
			qt.Assert(t, qt.DeepEquals(got, tc.want))
		})
	}
}

// Runs of the same scheme must not be drawn with each other's queues.
func TestRunsOfOneSchemeAreDrawnApart(t *testing.T) {
	e := load(t)
	page := render(t, e, []*result.Run{resulttest.Fig2(e, "pcn"), resulttest.Fig2(e, "pcn")})
	qt.Assert(t, qt.StringContains(page, ">PCN, seed 1, run 2: throughput loss 1.1ms<"))
}

func TestBusiestPorts(t *testing.T) {
	e := load(t)
	var names []string
	for _, p := range busiest(resulttest.Fig2(e, "pfc").Ports) {
		names = append(names, p.Name)
	}
	qt.Assert(t, qt.HasLen(names, maxPortRows))
	qt.Assert(t, qt.DeepEquals(names[:2], []string{"S1->R1", "S0->S1"}))
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrors(t *testing.T) {
	e := load(t)
	qt.Assert(t, qt.ErrorMatches(Write(io.Discard, Group{Experiment: e, Runs: nil}),
		`report: there are no runs \(hint: give the folder of a run\)`))

	other := resulttest.Fig2(e, "pcn")
	other.Manifest.ExperimentSHA256 = "0123"
	qt.Assert(t, qt.ErrorMatches(Write(io.Discard,
		Group{Experiment: e, Runs: []*result.Run{other}}),
		`report: a run of scheme pcn has experiment hol, SHA-256 0123, but others have hol, SHA-256 .* \(hint: report them separately\)`))

	noSeries := resulttest.Fig2(e, "pcn")
	noSeries.Series = nil
	qt.Assert(t, qt.ErrorMatches(Write(io.Discard,
		Group{Experiment: e, Runs: []*result.Run{noSeries}}),
		`draw figures of experiment hol: throughput of run PCN: series has no flow F0`))

	qt.Assert(t, qt.ErrorMatches(Write(failingWriter{}, Group{Experiment: e, Runs: fig2(e)}),
		`write report of experiment hol: disk full`))
}

func TestFormatBytes(t *testing.T) {
	for b, want := range map[uint64]string{0: "0B", 999: "999B", 1000: "1KB", 512_000: "512KB",
		14_336_000: "14.34MB"} {
		qt.Check(t, qt.Equals(formatBytes(b), want))
	}
}

// A large group is one row, a small one a row for each flow.
func TestRowsOfGroups(t *testing.T) {
	group := func(name string, count int) []result.Flow {
		var flows []result.Flow
		for i := range count {
			flows = append(flows, result.Flow{
				Name: fmt.Sprintf("%s-H0-%d", name, i), Group: name, Src: "H0", Dst: "R0",
				Proto: result.TCP, StartNs: int64(i), EndNs: new(int64(100 + i)),
				ReceivedBytes: 1000, Packets: 2, MarkedPackets: 1, CNPDecrease: 3, CNPIncrease: 4,
				Retransmissions: 5, ECN: true,
			})
		}
		return flows
	}
	rows := flowRows(slices.Concat(group("small", 16), group("large", 17)))
	qt.Assert(t, qt.HasLen(rows, 17))
	qt.Check(t, qt.Equals(rows[15].Name, "small-H0-15"))
	qt.Check(t, qt.Equals(rows[16], flowRow{
		Name: "large, 17 flows", Route: "→ R0", Proto: "tcp", Start: "0ns", End: "116ns",
		Received: "17KB",
		Packets:  34, Marked: 17, CNPs: "51, 68", Retransmissions: "85", ECN: "yes",
	}))

	older := group("", 17)
	qt.Check(t, qt.HasLen(flowRows(older), 17))
}

// A reader who knows nothing finds near the top what is run, and what each scheme is.
func TestAbout(t *testing.T) {
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	a := aboutOf(e.About, []string{"pfc", "pcn", "mine"}, scheme.Builtin())
	qt.Check(t, qt.StringContains(a.Text, "F0 is the victim"))
	pcn, err := scheme.Builtin().Lookup("pcn")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(a.Schemes, 2)) // what no catalogue has is not explained
	qt.Check(t, qt.Equals("PCN: "+a.Schemes[1].Title, pcn.Title))
	page := render(t, e, fig2(e))
	qt.Check(t, qt.Not(qt.StringContains(page, "<dt>TCD</dt>"))) // nothing mentions it
	about := strings.Index(page, `<p class="about">H0 sends flow F0`)
	qt.Check(t, qt.IsTrue(0 < about && about < strings.Index(page, "<svg")))
}

// Flows with a control of their own are named beside the schemes.
func TestControlsAreExplained(t *testing.T) {
	var a about
	a.addControls([]experiment.FlowGroup{{Name: "A"}, {Name: "B", Control: "bbr"}})
	qt.Check(t, qt.DeepEquals(a.Schemes, []schemeInLine{
		{"B", "has Linux's own bbr in place of the scheme's control"}}))
}

// Who has not heard of TCD reads what it is, wherever a report first says it.
func TestMarkingsAreExplained(t *testing.T) {
	in := func(text string, schemes ...string) []schemeInLine {
		a := aboutOf(text, schemes, scheme.Builtin())
		a.explain("Marks of NP-ECN")
		return a.Schemes
	}
	npecn := schemeInLine{"NP-ECN", scheme.NPECNTitle}
	tcd := schemeInLine{"TCD", scheme.TCDTitle}
	qt.Check(t, qt.DeepEquals(in("TCDs are none"), []schemeInLine{npecn}))
	qt.Check(t, qt.DeepEquals(in("TCD does not"), []schemeInLine{tcd, npecn}))
	dcqcn, err := scheme.Builtin().Lookup("dcqcn")
	qt.Assert(t, qt.IsNil(err))
	title := strings.TrimPrefix(dcqcn.Title, "DCQCN: ")
	qt.Check(t, qt.DeepEquals(in("", "dcqcn", "dcqcn+tcd"), []schemeInLine{{"DCQCN", title},
		{"DCQCN+TCD", title + "; switches mark by TCD"}, tcd, npecn}))
}
