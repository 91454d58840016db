// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/host"
)

func newTop() *cobra.Command {
	interval := time.Second
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch the live flows of this host",
		Long: `Show the live flows of this host's congestion controls, each with a small chart of
its rate over time.

Keys: s changes the sort column, p pauses, up and down scroll, q quits.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval < 50*time.Millisecond {
				return usageError{fmt.Errorf("invalid --interval %s: want 50ms or more", interval)}
			}
			m := newTopModel(host.New().Flows, interval)
			_, err := tea.NewProgram(m, tea.WithContext(cmd.Context())).Run()
			return err
		},
	}
	c.Flags().DurationVar(&interval, "interval", interval, "how often to read the flows")
	return c
}

// topColumns are the columns that flows can be sorted by.
var topColumns = []struct {
	name    string
	compare func(a, b host.LiveFlow) int
}{
	{"rate", func(a, b host.LiveFlow) int { return -cmp.Compare(a.SendRateBps, b.SendRateBps) }},
	{"marked", func(a, b host.LiveFlow) int {
		return -cmp.Compare(a.MarkedPackets, b.MarkedPackets)
	}},
	{"srtt", func(a, b host.LiveFlow) int { return -cmp.Compare(a.SRTT, b.SRTT) }},
	{"flow", compareKeys},
}

// sparklineLen is the number of readings in the small chart of a flow's rate.
const sparklineLen = 8

// topModel is the state of pcn top, in the sense of bubbletea.
type topModel struct {
	readFlows     func() ([]host.LiveFlow, error)
	interval      time.Duration
	flows         []host.LiveFlow
	rates         map[string][]uint64 // bit/s, by flow, the newest last
	sortColumn    int                 // index into topColumns
	top           int                 // index of the first flow shown
	paused        bool
	width, height int // of the terminal, in characters
	err           error
}

func newTopModel(readFlows func() ([]host.LiveFlow, error), interval time.Duration) topModel {
	return topModel{
		readFlows: readFlows, interval: interval, rates: map[string][]uint64{},
		width: 80, height: 24,
	}
}

// topTick tells the model to read the flows again.
type topTick struct{}

// topFlows carries one reading of the flows.
type topFlows struct {
	flows []host.LiveFlow
	err   error
}

func (m topModel) read() tea.Msg {
	flows, err := m.readFlows()
	return topFlows{flows, err}
}

func (m topModel) Init() tea.Cmd { return m.read }

func (m topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m.handleKey(msg.String())
	case topTick:
		if m.paused {
			return m, m.wait()
		}
		return m, m.read
	case topFlows:
		m.err = msg.err
		if msg.err == nil {
			m = m.withFlows(msg.flows)
		}
		return m, m.wait()
	}
	return m, nil
}

func (m topModel) wait() tea.Cmd {
	return tea.Tick(m.interval, func(time.Time) tea.Msg { return topTick{} })
}

func (m topModel) handleKey(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "ctrl+c", "esc":
		return m, tea.Quit
	case "s":
		m.sortColumn = (m.sortColumn + 1) % len(topColumns)
		m.sort()
	case "p", "space":
		m.paused = !m.paused
	case "down", "j":
		m.top = max(min(m.top+1, len(m.flows)-m.rows()), 0)
	case "up", "k":
		m.top = max(m.top-1, 0)
	}
	return m, nil
}

// withFlows returns the model after a reading. It drops the rates of flows that are gone.
func (m topModel) withFlows(flows []host.LiveFlow) topModel {
	rates := map[string][]uint64{}
	for _, f := range flows {
		name := f.FlowKey.String()
		history := append(slices.Clone(m.rates[name]), f.SendRateBps)
		rates[name] = history[max(len(history)-sparklineLen, 0):]
	}
	m.flows, m.rates = slices.Clone(flows), rates
	m.sort()
	m.top = max(min(m.top, len(m.flows)-m.rows()), 0)
	return m
}

func (m topModel) sort() {
	slices.SortStableFunc(m.flows, func(a, b host.LiveFlow) int {
		return cmp.Or(topColumns[m.sortColumn].compare(a, b), compareKeys(a, b))
	})
}

// rows returns the number of flows that fit between the two lines above and the one below.
func (m topModel) rows() int { return max(m.height-3, 1) }

// View fills the terminal's other screen, so that what was there before comes back.
func (m topModel) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	return v
}

func (m topModel) text() string {
	var b strings.Builder
	state := ""
	if m.paused {
		state = ", paused"
	}
	line := func(format string, args ...any) {
		text := []rune(fmt.Sprintf(format, args...))
		b.WriteString(string(text[:min(len(text), m.width)]) + "\n")
	}
	if n := withoutECN(m.flows); n > 0 {
		state += fmt.Sprintf("; %d with NO ECN: see pcn host doctor", n)
	}
	line("pcn: %d flows, by %s%s", len(m.flows), topColumns[m.sortColumn].name, state)
	nameWidth := max(m.width-58, 22)
	line("%-*s %7s %7s %6s %6s %6s %8s  %s",
		nameWidth, "FLOW", "RATE", "RECRATE", "MARKED", "CNP-", "CNP+", "SRTT", "RATES")
	last := min(m.top+m.rows(), len(m.flows))
	for _, f := range m.flows[m.top:last] {
		line("%-*s %7s %7s %6s %6s %6s %8s  %s", nameWidth, shortName(f, nameWidth),
			shortRate(f), shortNumber(f.RecRateBps), shortNumber(uint64(f.MarkedPackets)),
			shortNumber(f.CNPDecrease), shortNumber(f.CNPIncrease), f.SRTT,
			m.chart(f))
	}
	emptyRows := m.rows() - (last - m.top)
	if m.err != nil {
		line("ERROR: %v", m.err)
		emptyRows--
	} else if len(m.flows) == 0 {
		line("no live flow uses a congestion control of pcn: see pcn host status")
		emptyRows--
	}
	for range emptyRows {
		b.WriteString("\n")
	}
	keys := []rune("s sort  p pause  up/down scroll  q quit")
	b.WriteString(string(keys[:min(len(keys), m.width)]))
	return b.String()
}

// chart draws a flow's rates; for one without ECN, which has TCP's window, it says so.
func (m topModel) chart(f host.LiveFlow) string {
	if !f.ECN {
		return "NO ECN"
	}
	return sparkline(m.rates[f.FlowKey.String()])
}

func withoutECN(flows []host.LiveFlow) int {
	n := 0
	for _, f := range flows {
		if !f.ECN {
			n++
		}
	}
	return n
}

// shortRate returns a flow's rate or, for window-based controls, its window in packets ("12p").
func shortRate(f host.LiveFlow) string {
	if f.SendRateBps == 0 && f.Window != 0 {
		return fmt.Sprintf("%.3gp%s", f.Window, doubtMark(f))
	}
	return shortNumber(f.SendRateBps)
}

// doubtMark marks a flow that has a TCP window for doubt: pcn flows says why.
func doubtMark(f host.LiveFlow) string {
	if f.Doubt == "" || f.Doubt == "new" {
		return ""
	}
	return "!"
}

// shortNumber formats n in at most 6 characters, such as 123.5M.
func shortNumber(n uint64) string {
	for _, u := range []struct {
		scale uint64
		name  string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= u.scale {
			return fmt.Sprintf("%.4g%s", float64(n)/float64(u.scale), u.name)
		}
	}
	return fmt.Sprint(n)
}

// shortName cuts a flow's name to a width: first the source address goes, then the beginning.
func shortName(f host.LiveFlow, width int) string {
	text := []rune(f.FlowKey.String())
	if len(text) > width {
		text = []rune(fmt.Sprintf(":%d->%s", f.Src.Port(), f.Dst))
	}
	if len(text) > width {
		text = append([]rune("…"), text[len(text)-width+1:]...)
	}
	return string(text)
}

// sparkline draws a bar for each value, on a scale from 0 to the largest of them.
func sparkline(values []uint64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	if len(values) == 0 {
		return ""
	}
	top := max(slices.Max(values), 1)
	var b strings.Builder
	for _, v := range values {
		b.WriteRune(bars[int(float64(v)/float64(top)*float64(len(bars)-1)+0.5)])
	}
	return b.String()
}
