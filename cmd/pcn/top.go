// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/host"
)

func newTop() *cobra.Command {
	every := time.Second
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch the live flows of this host",
		Long: `Show the live flows of this host's congestion controls, with a line of each flow's rate over time.

Keys: s what to sort by, p pause, up and down scroll, q quit.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 50*time.Millisecond {
				return usageError{fmt.Errorf("--interval %s: want 50ms or more", every)}
			}
			_, err := tea.NewProgram(newTopModel(host.New().Flows, every), tea.WithContext(cmd.Context()), tea.WithAltScreen()).Run()
			return err
		},
	}
	c.Flags().DurationVar(&every, "interval", every, "how often to look")
	return c
}

// topSorts are what flows can be sorted by.
var topSorts = []struct {
	name string
	less func(a, b host.LiveFlow) int
}{
	{"rate", func(a, b host.LiveFlow) int { return -cmp.Compare(a.SendRateBps, b.SendRateBps) }},
	{"marked", func(a, b host.LiveFlow) int { return -cmp.Compare(a.MarkedPackets, b.MarkedPackets) }},
	{"srtt", func(a, b host.LiveFlow) int { return -cmp.Compare(a.SRTT, b.SRTT) }},
	{"flow", func(a, b host.LiveFlow) int { return strings.Compare(a.FlowKey.String(), b.FlowKey.String()) }},
}

// sparkLen is how many looks back the line of a flow goes.
const sparkLen = 8

// topModel is what pcn top shows.
type topModel struct {
	read          func() ([]host.LiveFlow, error)
	every         time.Duration
	flows         []host.LiveFlow
	rates         map[string][]uint64 // of each flow, the newest last
	sort, top     int
	paused        bool
	width, height int
	err           error
}

func newTopModel(read func() ([]host.LiveFlow, error), every time.Duration) topModel {
	return topModel{read: read, every: every, rates: map[string][]uint64{}, width: 80, height: 24}
}

// topTick says that it is time to look again.
type topTick struct{}

// topFlows are what a look saw.
type topFlows struct {
	flows []host.LiveFlow
	err   error
}

func (m topModel) look() tea.Msg {
	flows, err := m.read()
	return topFlows{flows, err}
}

func (m topModel) Init() tea.Cmd { return m.look }

func (m topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyMsg:
		return m.key(msg.String())
	case topTick:
		if m.paused {
			return m, m.wait()
		}
		return m, m.look
	case topFlows:
		m.err = msg.err
		if msg.err == nil {
			m = m.take(msg.flows)
		}
		return m, m.wait()
	}
	return m, nil
}

func (m topModel) wait() tea.Cmd {
	return tea.Tick(m.every, func(time.Time) tea.Msg { return topTick{} })
}

func (m topModel) key(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "ctrl+c", "esc":
		return m, tea.Quit
	case "s":
		m.sort = (m.sort + 1) % len(topSorts)
		m.order()
	case "p", " ":
		m.paused = !m.paused
	case "down", "j":
		m.top = max(min(m.top+1, len(m.flows)-m.rows()), 0)
	case "up", "k":
		m.top = max(m.top-1, 0)
	}
	return m, nil
}

// take takes in what a look saw, and forgets flows that are gone.
func (m topModel) take(flows []host.LiveFlow) topModel {
	rates := map[string][]uint64{}
	for _, f := range flows {
		name := f.FlowKey.String()
		seen := append(slices.Clone(m.rates[name]), f.SendRateBps)
		rates[name] = seen[max(len(seen)-sparkLen, 0):]
	}
	m.flows, m.rates = slices.Clone(flows), rates
	m.order()
	m.top = max(min(m.top, len(m.flows)-m.rows()), 0)
	return m
}

func (m topModel) order() {
	slices.SortStableFunc(m.flows, func(a, b host.LiveFlow) int {
		return cmp.Or(topSorts[m.sort].less(a, b), strings.Compare(a.FlowKey.String(), b.FlowKey.String()))
	})
}

// rows are how many flows fit, between two lines above and one below.
func (m topModel) rows() int { return max(m.height-3, 1) }

func (m topModel) View() string {
	var b strings.Builder
	state := ""
	if m.paused {
		state = ", paused"
	}
	line := func(format string, args ...any) {
		text := []rune(fmt.Sprintf(format, args...))
		b.WriteString(string(text[:min(len(text), m.width)]) + "\n")
	}
	line("pcn: %d flows, by %s%s", len(m.flows), topSorts[m.sort].name, state)
	wide := max(m.width-58, 22)
	line("%-*s %7s %7s %6s %6s %6s %8s  %s", wide, "FLOW", "RATE", "RECRATE", "MARKED", "CNP-", "CNP+", "SRTT", "RATES")
	last := min(m.top+m.rows(), len(m.flows))
	for _, f := range m.flows[m.top:last] {
		name := f.FlowKey.String()
		line("%-*s %7s %7s %6s %6s %6s %8s  %s", wide, shorten(f, wide), topRate(f), short(f.RecRateBps), short(uint64(f.MarkedPackets)),
			short(f.CNPDecrease), short(f.CNPIncrease), f.SRTT, spark(m.rates[name]))
	}
	if m.err != nil {
		line("ERROR: %v", m.err)
	} else if len(m.flows) == 0 {
		line("no live flow of a control of pcn's: see pcn host status")
	}
	for range m.rows() - (last - m.top) - boolToInt(m.err != nil || len(m.flows) == 0) {
		b.WriteString("\n")
	}
	keys := []rune("s sort  p pause  up/down scroll  q quit")
	b.WriteString(string(keys[:min(len(keys), m.width)]))
	return b.String()
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// topRate is a flow's rate, or its window in packets.
func topRate(f host.LiveFlow) string {
	if f.SendRateBps == 0 && f.Window != 0 {
		return fmt.Sprintf("%.3gp", f.Window)
	}
	return short(f.SendRateBps)
}

// short is a number in at most 6 characters.
func short(n uint64) string {
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

// shorten leaves of a flow's name what fits: without the source's address, then without its beginning.
func shorten(f host.LiveFlow, width int) string {
	text := []rune(f.FlowKey.String())
	if len(text) > width {
		text = []rune(fmt.Sprintf(":%d->%s", f.Src.Port(), f.Dst))
	}
	if len(text) > width {
		text = append([]rune("…"), text[len(text)-width+1:]...)
	}
	return string(text)
}

// spark draws values from 0 to the largest of them.
func spark(values []uint64) string {
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
