// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// linkProgram sends datagrams to its peers, one every gap, and lists those that it gets: from whom,
// which, and when they were sent and came.
const linkProgram = `
import json, socket, sys, threading, time
count, gap, size, peers = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
s.bind(("", 5000))
got, began = [], time.monotonic_ns()
def receive():
    while True:
        data, peer = s.recvfrom(2000)
        now = time.monotonic_ns()
        got.append([peer[0]] + [int(n) for n in data.split()] + [now])
threading.Thread(target=receive, daemon=True).start()
to = [(socket.gethostbyname(p), 5000) for p in peers]
time.sleep(0.5)
for i in range(count):
    for address in to:
        s.sendto(b"%d %d".ljust(size) % (i, time.monotonic_ns()), address)
    if gap:
        time.sleep(gap)
time.sleep(2)
print(json.dumps({"began": began, "got": got}))
`

// datagram is one that came.
type datagram struct {
	from       string
	i          int
	sent, came int64
}

func datagramsOf(t *testing.T, run *result.Run, program string) (beganNs int64, all []datagram) {
	t.Helper()
	for _, p := range run.Programs {
		if p.Name != program {
			continue
		}
		var said struct {
			Began int64
			Got   [][]any
		}
		err := json.Unmarshal(p.Files[result.StdoutFile], &said)
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", p.Files[result.StderrFile]))
		for _, row := range said.Got {
			all = append(all, datagram{row[0].(string), int(row[1].(float64)),
				int64(row[2].(float64)), int64(row[3].(float64))})
		}
		return said.Began, all
	}
	t.Fatalf("no program %s", program)
	return 0, nil
}

// runLinks runs an experiment in a folder with the program and other files.
func runLinks(t *testing.T, text string, files map[string]string) *result.Run {
	t.Helper()
	dir := t.TempDir()
	files["links.py"], files["links.yaml"] = linkProgram, text
	for name, text := range files {
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)))
	}
	e, err := experiment.Load(filepath.Join(dir, "links.yaml"))
	qt.Assert(t, qt.IsNil(err))
	return runPrograms(t, e, "cubic")
}

// Hosts beyond a partition, and behind a link that is down, hear nothing, and all others do. What
// is sent to no host is lost, and the run is valid.
func TestPartitionsAndLinksThatFail(t *testing.T) {
	const everyNs = 100_000_000
	run := runLinks(t, `name: parted
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2, rate: 1Gbps, delay: 1ms}
schemes: [cubic]
switch: {pfc: {off: true}, port_buffer: 10MB}
duration: 10s
warmup: 0ms
sample: 10ms
partitions: [{hosts: [H0, H2], at: 1s, until: 3s}, {hosts: [H2], at: 2s, until: 4s}]
links:
  - {link: H1-L0, at: 5s, state: down}
  - {link: H1-L0, at: 5500ms, state: up}
  - {link: L0-S0, at: 1500ms, state: down}
programs:
  - {name: h0, host: H0, inputs: [links.py], command: [python3, links.py, "60", "0.1", "60",
      H1, H2, H3]}
  - {name: h1, host: H1, inputs: [links.py], command: [python3, links.py, "60", "0.1", "60",
      H0, H3]}
  - {name: h2, host: H2, inputs: [links.py], command: [python3, links.py, "60", "0.1", "60", H0]}
  - {name: h3, host: H3, inputs: [links.py], command: [python3, links.py, "60", "0.1", "60", H0, H1,
      10.0.0.99]}
`, map[string]string{})
	type gap struct{ fromNs, untilNs int64 } // from the start of the run
	for _, c := range []struct {
		at, from string
		gaps     []gap
	}{
		{"h0", "10.0.0.2", []gap{{1e9, 3e9}, {5e9, 5.5e9}}},
		{"h0", "10.0.0.3", []gap{{2e9, 4e9}}}, // both are within the first
		{"h0", "10.0.0.4", []gap{{1e9, 3e9}}},
		{"h3", "10.0.0.2", []gap{{5e9, 5.5e9}}}, // by the other spine when L0-S0 fails
		{"h3", "10.0.0.1", []gap{{1e9, 3e9}}},
		{"h1", "10.0.0.4", []gap{{5e9, 5.5e9}}},
		{"h2", "10.0.0.1", []gap{{2e9, 4e9}}},
	} {
		began, all := datagramsOf(t, run, c.at)
		var got, want []int
		for _, d := range all {
			if d.from == c.from {
				got = append(got, d.i)
			}
		}
		for i := range 60 {
			// the first is sent half a second after the start
			sentNs := int64(500_000_000 + i*everyNs)
			lost := slices.ContainsFunc(c.gaps, func(g gap) bool {
				return sentNs >= g.fromNs && sentNs < g.untilNs
			})
			if !lost {
				want = append(want, i)
			}
		}
		qt.Check(t, qt.DeepEquals(got, want),
			qt.Commentf("%s from %s, began %d", c.at, c.from, began))
	}
}

// Each link does what it says, in both directions, and in no other. Bounds are five deviations.
func TestLinksDisturb(t *testing.T) {
	const (
		count     = 1000
		loss      = 0.05
		burst     = 4.0
		jitterNs  = 800_000
		reorder   = 0.1
		reorderNs = 5_000_000
		addresses = "10.0.0."
	)
	var programs strings.Builder
	for i := range 6 {
		fmt.Fprintf(&programs, "  - {name: h%d, host: H%d, inputs: [links.py], command: "+
			"[python3, links.py, %q, \"0.001\", \"60\", R0]}\n", i, i, fmt.Sprint(count))
	}
	run := runLinks(t, fmt.Sprintf(`name: links
topology: {kind: star, hosts: 6, rate: 1Gbps, delay: 1ms, links: [
  {link: H0-S0, error_rate: %[1]g}, {link: H1-S0, error_rate: %[1]g, error_burst: %[2]g},
  {link: H2-S0, jitter: 800us}, {link: H3-S0, jitter: 20ms},
  {link: H4-S0, reorder: %[3]g, reorder_delay: 5ms}]}
schemes: [cubic]
switch: {pfc: {off: true}, port_buffer: 10MB}
duration: 20s
warmup: 0ms
sample: 10ms
programs:
%[4]s  - {name: r0, host: R0, inputs: [links.py], command: [python3, links.py, "%[5]d", "0.001",
      "60", H0, H1, H2, H3, H4, H5]}
`, loss, burst, reorder, &programs, count), map[string]string{})

	const baseNs = 2_000_000 // and the time that frames take
	up := map[string][]datagram{}
	_, all := datagramsOf(t, run, "r0")
	for _, d := range all {
		up[d.from] = append(up[d.from], d)
	}
	for host := range 6 {
		_, down := datagramsOf(t, run, fmt.Sprintf("h%d", host))
		for way, got := range map[string][]datagram{
			"up": up[addresses+fmt.Sprint(host+1)], "down": down,
		} {
			t.Run(fmt.Sprintf("H%d %s", host, way), func(t *testing.T) {
				lost, longest, late, mixed := summarize(got, count, baseNs)
				near := func(value, want, deviation float64) {
					t.Helper()
					qt.Check(t, qt.IsTrue(math.Abs(value-want) <= 5*deviation),
						qt.Commentf("%g: want %g +- %g", value, want, 5*deviation))
				}
				wantLost, wantMixed := 0, 0
				switch host {
				case 0:
					near(float64(lost), count*loss, math.Sqrt(count*loss*(1-loss)))
					wantLost = lost
				case 1: // a chain: the correlation of neighbours makes the variance larger
					r := 1 - 1/burst - loss/(burst*(1-loss))
					near(float64(lost), count*loss,
						math.Sqrt(count*loss*(1-loss)*(1+r)/(1-r)))
					runs := count * loss / burst
					near(float64(longest), runs, math.Sqrt(runs)*2)
					wantLost = lost
				case 2:
					near(mean(late), jitterNs/2, jitterNs/math.Sqrt(12*count))
					qt.Check(t, qt.IsTrue(most(late) <= jitterNs+20_000))
				case 3:
					qt.Check(t, qt.IsTrue(most(late) > 10_000_000 && most(late) <= 20_020_000))
				case 4:
					var behind int
					for _, ns := range late {
						if ns >= reorderNs {
							behind++
						}
					}
					near(float64(behind), count*reorder,
						math.Sqrt(count*reorder*(1-reorder)))
					wantMixed = mixed
					qt.Check(t, qt.IsTrue(mixed > behind/2))
				case 5:
					qt.Check(t, qt.IsTrue(most(late) < 20_000))
				}
				qt.Check(t, qt.Equals(lost, wantLost))
				qt.Check(t, qt.Equals(mixed, wantMixed))
			})
		}
	}
}

// summarize counts lost datagrams and runs of them, those that came behind a later one, and how
// much longer than baseNs each was under way.
func summarize(
	got []datagram, count int, baseNs int64,
) (lost, runs int, late []float64, mixed int) {
	came := make([]bool, count)
	last := -1
	for _, d := range got {
		came[d.i] = true
		late = append(late, float64(d.came-d.sent-baseNs))
		if d.i < last {
			mixed++
		}
		last = max(last, d.i)
	}
	for i, ok := range came {
		if ok {
			continue
		}
		lost++
		if i == 0 || came[i-1] {
			runs++
		}
	}
	return lost, runs, late, mixed
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func most(values []float64) float64 {
	var most float64
	for _, v := range values {
		most = max(most, v)
	}
	return most
}

// A port with a trace sends as mahimahi's own loop does: at each time of the trace up to 1500 bytes
// of what waits.
func TestLinkFollowsATrace(t *testing.T) {
	const (
		count   = 60
		frame   = 742 // two to a moment, and 16 bytes
		takesNs = frame * 8
		delayNs = 1_000_000
	)
	momentsMs := []int64{3, 3, 3, 10, 11, 40, 40, 55, 90} // and from the last on again
	trace := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(momentsMs), "[]")), "\n")
	run := runLinks(t, `name: trace
topology: {kind: dumbbell, senders: 1, receivers: 1, rate: 1Gbps, delay: 1ms}
schemes: [cubic]
switch: {pfc: {off: true}, port_buffer: 10MB}
links: [{link: S0->S1, trace: lte.trace}]
duration: 20s
warmup: 0ms
sample: 10ms
programs:
  - {name: b, host: B0, inputs: [links.py], command: [python3, links.py, "0", "0", "700"]}
  - {name: a, host: A0, inputs: [links.py],
      command: [python3, links.py, "60", "0.007", "700", B0]}
`, map[string]string{"lte.trace": trace + "\n"})
	beganNs, got := datagramsOf(t, run, "b")
	qt.Assert(t, qt.HasLen(got, count))

	const sampleNs = 10_000_000
	beganNs -= beganNs % sampleNs // t = 0 is on a bin of the series
	next, left, freeNs := 0, int64(frame), int64(0)
	for i := 0; next < count; i++ {
		round, at := i/len(momentsMs), momentsMs[i%len(momentsMs)]
		nowNs := beganNs + (int64(round)*momentsMs[len(momentsMs)-1]+at)*1_000_000
		// a host's frames are there without its link's delay, which is counted on the way back
		for budget := int64(1500); next < count && got[next].sent+takesNs <= nowNs; {
			if left > budget {
				left -= budget
				break
			}
			budget -= left
			freeNs = max(freeNs, nowNs+delayNs) + takesNs // of the link behind
			lateNs := got[next].came - freeNs - 2*delayNs
			qt.Check(t, qt.IsTrue(lateNs >= 0 && lateNs < 1000), // the program's clock has us
				qt.Commentf("datagram %d is %d ns late", next, lateNs))
			next, left = next+1, frame
		}
	}
}
