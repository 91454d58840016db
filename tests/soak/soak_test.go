// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

// TestMain lets this program be the parts of a run that a run starts.
func TestMain(m *testing.M) {
	if os.Getenv(selfEnv) != "" {
		if err := dispatch(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "soak:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A short run with every kind of thing that the long one has; it says so if a bound does not hold.
func TestSmoke(t *testing.T) {
	nstest.RequireRoot(t)
	for _, have := range []func() error{loader.HavePermission, loader.HaveBTF,
		loader.HaveTCPStructOps, loader.HaveStructOpsLink, loader.HaveTCX} {
		if err := have(); err != nil {
			t.Skip("this kernel can't run pcn host:", err)
		}
	}
	pcn := filepath.Join(t.TempDir(), "pcn")
	build := exec.Command("go", "build", "-o", pcn, "../../cmd/pcn")
	out, err := build.CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", out))
	nstest.Turn(t)
	args := []string{"-seconds", "10", "-seed", "1", "-pcn", pcn}
	for attempts := 3; ; attempts-- {
		var log strings.Builder
		err = supervise(context.Background(), args, &log)
		t.Log("\n" + log.String())
		if err != nil && attempts > 1 && releaseLeftOut(log.String()) {
			continue
		}
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.StringContains(log.String(), "All bounds hold."))
		return
	}
}

// releaseLeftOut says whether the only bound that does not hold is one that a kernel breaks which
// leaves out a control's release (KNOWN_ISSUES.md): an entry or two stay. What is a fault of ours
// is there again in the next run, which has the same plan.
func releaseLeftOut(log string) bool { return only(log, "VIOLATION: ", entriesStay) }

var entriesStay = regexp.MustCompile(
	`(?m)VIOLATION: round \d+: [12] flows of senders are left without clients\s*$`)

func TestOnlyLosses(t *testing.T) {
	const (
		lost = "control_ldcp\n" +
			"  PROBLEM: 1 of 2 live flows have a TCP window: they lost packets, and\n"
		full = "  PROBLEM: 3 live flows found the flow table full and have a TCP window\n"
	)
	for status, want := range map[string]bool{
		"": false, lost: true, lost + lost: true, full: false, lost + full: false,
	} {
		qt.Check(t, qt.Equals(onlyLosses(status), want), qt.Commentf("%s", status))
	}
}

func TestReleaseLeftOut(t *testing.T) {
	const left = "VIOLATION: round 0: 1 flows of senders are left without clients\n"
	for log, want := range map[string]bool{
		"":                         false,
		"    15.0s " + left + left: true,
		left + "VIOLATION: stuck":  false,
		strings.Replace(left, "1 flows", "3 flows", 1):   false,
		strings.Replace(left, "senders", "receivers", 1): false,
		"All bounds hold.\n":                             false,
	} {
		qt.Check(t, qt.Equals(releaseLeftOut(log), want), qt.Commentf("%s", log))
	}
}

// A program that somebody has holds its maps also when nobody else does.
func TestHeldByProgram(t *testing.T) {
	nstest.RequireRoot(t)
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	qt.Assert(t, qt.IsNil(err))
	info, err := m.Info()
	qt.Assert(t, qt.IsNil(err))
	id, _ := info.ID()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SocketFilter, License: "GPL",
		Instructions: asm.Instructions{
			asm.LoadMapValue(asm.R1, m.FD(), 0), asm.Mov.Imm(asm.R0, 0), asm.Return(),
		}})
	qt.Assert(t, qt.IsNil(errors.Join(err, m.Close())))
	held := heldObjects("/proc")
	qt.Check(t, qt.IsTrue(held[objectID{"map", uint32(id)}]))
	qt.Assert(t, qt.IsNil(p.Close()))
}

func TestPlanIsRepeated(t *testing.T) {
	p := planner{Seed: 7, Length: 30 * time.Second, Every: time.Second,
		Stay: 30 * time.Second, Clients: 100, Clock: true, CPU: true}
	qt.Check(t, qt.DeepEquals(p.round(3), p.round(3)))
	other := p
	other.Seed++
	qt.Check(t, qt.Not(qt.DeepEquals(p.round(3), other.round(3))))
	qt.Check(t, qt.Not(qt.DeepEquals(p.round(3), p.round(4))))

	// A round has every kind of event and of client, in order of time.
	r := p.round(3)
	for _, kind := range p.eventKinds() {
		qt.Check(t, qt.IsTrue(slices.ContainsFunc(r.Events, func(e event) bool {
			return e.Kind == kind
		})), qt.Commentf("%s", kind))
	}
	for _, w := range weights {
		qt.Check(t, qt.IsTrue(slices.ContainsFunc(r.Clients, func(c clientPlan) bool {
			return c.Kind == w.kind
		})), qt.Commentf("%s", w.kind))
	}
	qt.Check(t, qt.IsTrue(slices.IsSortedFunc(r.Clients, func(a, b clientPlan) int {
		return int(a.At - b.At)
	})))
}

// Whatever the variant, pcn host takes the configuration.
func TestConfigurationsAreValid(t *testing.T) {
	for _, on := range withPCN {
		seen := map[string]bool{}
		for variant := range uint32(300) {
			for _, eth1 := range []bool{true, false} {
				text := hostConfig(on, variant, eth1)
				_, err := host.Parse(on, []byte(text))
				qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", text))
				seen[text] = true
			}
		}
		qt.Check(t, qt.IsTrue(len(seen) >= 8), qt.Commentf("%s: %d", on, len(seen)))
	}
}

func TestGrowth(t *testing.T) {
	began := time.Unix(0, 0)
	var samples []*sample
	for i := range 24 { // one in five minutes
		s := &sample{at: began.Add(time.Duration(i) * 5 * time.Minute)}
		s.add("serve on client: open files", 10+float64(i))
		s.add("serve on client: resident bytes", 1e6)
		if i == 0 {
			s.values["serve on client: resident bytes"] = 0 // of the warm-up
		}
		samples = append(samples, s)
	}
	all := growths(samples)
	qt.Assert(t, qt.HasLen(all, 2))
	perHour := all[0].PerHour
	qt.Check(t, qt.IsTrue(perHour > 11.9 && perHour < 12.1), qt.Commentf("%+v", all[0]))
	qt.Check(t, qt.Equals(all[0].First, 16.))
	qt.Check(t, qt.Equals(all[0].check(len(samples)),
		"serve on client: open files: from 16 to 33: want at most 2 more"))
	qt.Check(t, qt.Equals(all[1].PerHour, 0))
	qt.Check(t, qt.Equals(all[1].check(len(samples)), ""))
	qt.Check(t, qt.HasLen(growths(samples[:1]), 2))
}

// Each counter of a flow that says more than TCP does is told.
func TestCheckEntry(t *testing.T) {
	info := &unix.TCPInfo{
		Bytes_sent: 10_000, Segs_out: 10, Delivered: 7, Total_retrans: 2,
	}
	good := loader.Flow{SentBytes: 11_000, Packets: 7, MarkedPackets: 3, Retransmissions: 2}
	qt.Check(t, qt.IsNil(checkEntry(good, info)))
	for want, change := range map[string]func(*loader.Flow){
		".*sent_bytes is 20000: .* at most 11140": func(f *loader.Flow) { f.SentBytes = 20_000 },
		".*: packets is 8: .* at most 7":          func(f *loader.Flow) { f.Packets = 8 },
		".*marked_packets is 9.*":                 func(f *loader.Flow) { f.MarkedPackets = 9 },
		".*retransmissions is 3.*":                func(f *loader.Flow) { f.Retransmissions = 3 },
	} {
		f := good
		change(&f)
		qt.Check(t, qt.ErrorMatches(checkEntry(f, info), want))
	}
}

func TestParseMetrics(t *testing.T) {
	got, err := parseMetrics(strings.NewReader(`# HELP x y
pcn_events_total{component="np",event="a b"} 1.5e+06
up 1
`))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(got, series{
		`pcn_events_total{component="np",event="a b"}`: 1.5e6, "up": 1,
	}))
	_, err = parseMetrics(strings.NewReader("x y\n"))
	qt.Check(t, qt.ErrorMatches(err, `metric "x y": .*`))
}

// A counter that falls is told, unless the host may have begun anew.
func TestCountersThatGoBack(t *testing.T) {
	const counter = `pcn_events_total{component="np",event="cnp_decrease"}`
	w := newWatch(nil, newReport(&strings.Builder{}))
	for _, step := range []struct {
		value float64
		reset bool
		want  int
	}{{5, false, 0}, {7, false, 0}, {3, true, 0}, {4, false, 0}, {2, false, 1}} {
		if step.reset {
			w.mayReset(clientHost)
		}
		w.compare(clientHost, w.resets[clientHost], series{counter: step.value})
		qt.Check(t, qt.HasLen(w.report.violations, step.want), qt.Commentf("%+v", step))
	}
	qt.Check(t, qt.Equals(w.sums[clientHost][counter], 5+2+3+1+2.))
}
