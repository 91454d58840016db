// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/loader"
)

func liveFlow(port uint16, rateBps uint64) host.LiveFlow {
	return host.LiveFlow{Control: "pcn", Flow: loader.Flow{
		FlowKey: loader.FlowKey{
			Src: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), port),
			Dst: netip.MustParseAddrPort("10.0.0.2:5001"), Protocol: 6,
		},
		SendRateBps: rateBps, RecRateBps: 123_456_789, MarkedPackets: 7 + uint32(port),
		CNPDecrease: 12, CNPIncrease: 3456,
		SRTT: 1234 * time.Microsecond, ECN: true,
	}}
}

// after is the model after these messages.
func after(m topModel, messages ...tea.Msg) topModel {
	for _, msg := range messages {
		next, _ := m.Update(msg)
		m = next.(topModel)
	}
	return m
}

func keyMsg(s string) tea.Msg {
	return tea.KeyPressMsg{Code: []rune(s)[0], Text: s}
}

func TestTopShowsFlows(t *testing.T) {
	m := newTopModel(nil, time.Second)
	m = after(m, topFlows{flows: []host.LiveFlow{liveFlow(1, 1e9), liveFlow(2, 4e9)}},
		topFlows{flows: []host.LiveFlow{liveFlow(1, 2e9), liveFlow(2, 4e9)}})
	lines := strings.Split(m.text(), "\n")
	qt.Assert(t, qt.HasLen(lines, 24))
	for _, l := range lines {
		qt.Check(t, qt.IsTrue(utf8.RuneCountInString(l) <= 80), qt.Commentf("%q", l))
	}
	qt.Check(t, qt.Equals(lines[0], "pcn: 2 flows, by rate"))
	qt.Check(t, qt.StringContains(lines[2], "10.0.0.2:5001"))
	qt.Check(t, qt.StringContains(lines[2], "4G"))
	qt.Check(t, qt.StringContains(lines[2], "123.5M"))
	qt.Check(t, qt.StringContains(lines[2], "██"))
	qt.Check(t, qt.StringContains(lines[3], "2G"))
	qt.Check(t, qt.StringContains(lines[3], "▅█")) // half, then all

	m = after(m, keyMsg("s"), keyMsg("s"), keyMsg("s"))
	qt.Check(t, qt.Equals(strings.Split(m.text(), "\n")[0], "pcn: 2 flows, by flow"))
	qt.Check(t, qt.StringContains(strings.Split(m.text(), "\n")[2], "2G"))
	// A flow that is gone leaves nothing.
	m = after(m, topFlows{flows: []host.LiveFlow{liveFlow(2, 4e9)}})
	qt.Check(t, qt.HasLen(m.rates, 1))
}

// A flow without ECN has a window in place of a rate, and the table says why.
func TestTopSaysNoECN(t *testing.T) {
	f := liveFlow(3, 0)
	f.ECN, f.Window = false, 12
	m := after(newTopModel(nil, time.Second), topFlows{flows: []host.LiveFlow{liveFlow(1, 1e9), f}})
	lines := strings.Split(m.text(), "\n")
	qt.Check(t, qt.Equals(lines[0], "pcn: 2 flows, by rate; 1 with NO ECN: see pcn host doctor"))
	qt.Check(t, qt.Not(qt.StringContains(lines[2], "NO ECN")))
	qt.Check(t, qt.StringContains(lines[3], "12p"))
	qt.Check(t, qt.StringContains(lines[3], "NO ECN"))
}

// A flow in doubt has its window marked, and pcn flows says why. One that is new is in no doubt.
func TestFlowsInDoubt(t *testing.T) {
	lost, fresh := liveFlow(3, 0), liveFlow(4, 0)
	lost.Window, lost.Doubt = 12, "no_marks"
	fresh.Window, fresh.Doubt = 10, "new"
	flows := []host.LiveFlow{lost, fresh}
	view := after(newTopModel(nil, time.Second), topFlows{flows: flows}).text()
	qt.Check(t, qt.StringContains(view, " 12p! "))
	qt.Check(t, qt.StringContains(view, " 10p "))
	var table strings.Builder
	qt.Assert(t, qt.IsNil(printFlows(&table, append(flows, liveFlow(5, 1e9)))))
	lines := strings.Split(table.String(), "\n")
	for i, want := range []string{"DOUBT", "no marks", "new", "-"} {
		qt.Check(t, qt.Matches(lines[i], `.*  `+want+` *`))
	}
}

func TestTopScrolls(t *testing.T) {
	var flows []host.LiveFlow
	for i := range uint16(50) {
		flows = append(flows, liveFlow(10000+i, uint64(i+1)*1e6))
	}
	m := after(newTopModel(nil, time.Second), tea.WindowSizeMsg{Width: 80, Height: 10},
		topFlows{flows: flows})
	first := func() string { return strings.Split(m.text(), "\n")[2] }
	qt.Check(t, qt.StringContains(first(), "50M"))
	m = after(m, tea.KeyPressMsg{Code: tea.KeyDown}, keyMsg("j"))
	qt.Check(t, qt.StringContains(first(), "48M"))
	for range 100 {
		m = after(m, keyMsg("j"))
	}
	qt.Check(t, qt.StringContains(first(), "7M")) // seven fit
	m = after(m, topFlows{flows: flows[:3]})
	qt.Check(t, qt.StringContains(first(), "3M"))
	qt.Assert(t, qt.HasLen(strings.Split(m.text(), "\n"), 10))
	for range 100 {
		m = after(m, keyMsg("k"))
	}
	qt.Check(t, qt.Equals(m.top, 0))
}

func TestTopPausesAndEnds(t *testing.T) {
	looks := 0
	m := newTopModel(func() ([]host.LiveFlow, error) { looks++; return nil, nil }, time.Millisecond)
	_, look := m.Update(topTick{})
	look()
	qt.Check(t, qt.Equals(looks, 1))
	m = after(m, keyMsg("p"))
	qt.Check(t, qt.StringContains(m.text(), "paused"))
	_, wait := m.Update(topTick{})
	qt.Check(t, qt.Equals(wait(), tea.Msg(topTick{})))
	qt.Check(t, qt.Equals(looks, 1))
	_, quit := m.Update(keyMsg("q"))
	qt.Check(t, qt.Equals(quit(), tea.Quit()))
	m = after(m, topFlows{err: errors.New("no permission")})
	qt.Check(t, qt.StringContains(m.text(), "ERROR: no permission"))
}

func TestShort(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1k", 123456: "123.5k",
		39_840_000_000: "39.84G", 1e12: "1T"} {
		qt.Check(t, qt.Equals(shortNumber(n), want))
	}
	qt.Check(t, qt.Equals(sparkline(nil), ""))
	qt.Check(t, qt.Equals(sparkline([]uint64{0, 0}), "▁▁"))
	f := liveFlow(40112, 1)
	for width, want := range map[int]string{40: "10.0.0.1:40112->10.0.0.2:5001",
		22: ":40112->10.0.0.2:5001", 5: "…5001"} {
		qt.Check(t, qt.Equals(shortName(f, width), want))
	}
}
