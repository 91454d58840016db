// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/loader"
)

var bedFlag = flag.String("bed", "", "what TestMeasure measures: KEY=VALUE, separated by spaces")

// measurement is what the flag -bed says.
type measurement struct {
	Options
	controls []string
	flows    int
	t        config.Duration
	measure  time.Duration
	settle   time.Duration
	runs     int
	recRate  bool              // hear CNPs, which takes CPU time
	given    map[string]string // parameters of controls
}

func parseMeasurement(text string) (m measurement, err error) {
	m = measurement{controls: []string{"pcn"}, flows: 2, t: config.Millisecond,
		measure: 8 * time.Second, settle: 2 * time.Second, runs: 1, given: map[string]string{}}
	m.Offloads, m.RateBps = None, 200e6
	for word := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(word, "=")
		var rate config.Rate
		var size config.Bytes
		var n int
		var d config.Duration
		switch key {
		case "offloads":
			m.Offloads = Offloads(value)
		case "control":
			m.controls = strings.Split(value, ",")
		case "ipv6":
			m.IPv6, err = strconv.ParseBool(value)
		case "nagle":
			m.Nagle, err = strconv.ParseBool(value)
		case "no_np":
			m.NoNP, err = strconv.ParseBool(value)
		case "default_ecn":
			m.DefaultECN, err = strconv.ParseBool(value)
		case "mtu", "flows", "runs", "senders":
			n, err = strconv.Atoi(value)
			*map[string]*int{"mtu": &m.MTU, "flows": &m.flows, "runs": &m.runs,
				"senders": &m.Senders}[key] = n
		case "receive_buffer":
			size, err = config.ParseBytes(value)
			m.ReceiveBuffer = int(size)
		case "limit":
			n, err = strconv.Atoi(value)
			m.LimitPackets = uint32(max(n, 0))
		case "recrate":
			m.recRate, err = strconv.ParseBool(value)
		case "rate":
			rate, err = config.ParseRate(value)
			m.RateBps = uint64(rate)
		case "kmin", "kmax", "drop":
			size, err = config.ParseBytes(value)
			*map[string]*uint64{"kmin": &m.KMin, "kmax": &m.KMax,
				"drop": &m.Drop}[key] = uint64(size)
		case "mark":
			m.Mark, err = strconv.ParseFloat(value, 64)
		case "pmax":
			m.PMax, err = strconv.ParseFloat(value, 64)
		case "T":
			m.t, err = config.ParseDuration(value)
		case "for", "settle":
			d, err = config.ParseDuration(value)
			*map[string]*time.Duration{"for": &m.measure, "settle": &m.settle}[key] =
				time.Duration(d)
		default:
			m.given[key] = value
		}
		if err != nil {
			return m, fmt.Errorf("%s: %w", word, err)
		}
	}
	if m.KMin == 0 && m.RateBps != 0 {
		m.KMin = thresholdOf(m.RateBps, m.t)
	}
	m.KMax = max(m.KMax, m.KMin)
	return m, nil
}

// thresholdOf returns the queue from which the router marks: what it sends in T, but not less than
// a few packets.
func thresholdOf(rateBps uint64, t config.Duration) uint64 {
	return max(uint64(float64(rateBps)/8*float64(t)/1e9), 15_000)
}

// network is what defaults of controls depend on.
func (m measurement) network() scheme.Network {
	return scheme.Network{LineRateBps: cmp.Or(m.RateBps, loader.MaxRateBps),
		BaseRTTNs: uint64(m.t), FrameBytes: 1514, Host: true}
}

// parameters are those of controls.
func (m measurement) parameters() map[string]string {
	given := map[string]string{"T": m.t.String()}
	maps.Copy(given, m.given)
	return given
}

// result is of one run.
type result struct {
	goodput []float64
	jain    float64
	// the share of CNPs that said decrease
	decreases float64
	cpu       float64 // ns a byte, see ownCPU
	note      string
}

// run builds the bed, fills it, and measures. The control may be several with + between them, which
// flows choose in turn; the first one's counters are shown.
func (m measurement) run(t *testing.T, control string) (r result) {
	t.Run(control, func(t *testing.T) {
		b := New(t, m.Options)
		names := strings.Split(control, "+")
		c := b.Control(names[0], m.network(), m.parameters())
		for _, other := range names[1:] {
			b.Control(other, m.network(), m.parameters())
		}
		var conns []Connection
		for i := range m.flows {
			conns = append(conns, b.Connect(i%m.Senders, names[i%len(names)]))
		}
		var heard func() (int, float64)
		if m.recRate {
			heard = b.listen()
		}
		before, own := busy(t), ownCPU(t)
		r.goodput = b.Fill(conns, m.settle, m.measure)
		bytes := sum(r.goodput) / 8 * (m.settle + m.measure).Seconds()
		r.cpu = float64((ownCPU(t) - own).Nanoseconds()) / bytes
		r.note = fmt.Sprintf("CPU %.2f ns/B, its own %.2f ",
			float64((busy(t)-before).Nanoseconds())/bytes, r.cpu)
		r.note += fmt.Sprintf("skbs of %.1f KB, %.0f KB in flight ", b.superPacket(0)/1e3,
			b.inFlight/1e3)
		r.jain = Jain(r.goodput)
		r.note += fmt.Sprintf("retransmitted %d ", b.retransmitted)
		if heard != nil {
			cnps, sumMbps := heard()
			r.note += fmt.Sprintf("RecRates %.2f Mbit/s of %d CNPs ", sumMbps, cnps)
		}
		if c.np != nil {
			n := c.NPCounts()
			r.decreases = float64(n["cnp_decrease"]) /
				float64(max(n["cnp_decrease"]+n["cnp_increase"], 1))
			r.note += fmt.Sprintf("CNPs -%d +%d ", n["cnp_decrease"], n["cnp_increase"])
		}
		if b.wred != nil {
			counts, err := b.wred.Counts()
			b.ok(err)
			r.note += fmt.Sprint(counts)
		}
	})
	return r
}

// busy returns for how long all CPUs of the machine did something, interrupts included.
func busy(t *testing.T) (total time.Duration) {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	const tick, idle, iowait, steal = 10 * time.Millisecond, 3, 4, 7
	for i, field := range strings.Fields(strings.SplitN(string(text), "\n", 2)[0])[1 : steal+1] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		if i != idle && i != iowait {
			total += time.Duration(n) * tick
		}
	}
	return total
}

// ownCPU returns the CPU time of this process and of the kernel's threads that handle packets when
// interrupts may not. Interrupts over this process count as its own, those over others do not.
func ownCPU(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	total := u.Utime.Nano() + u.Stime.Nano()
	for _, path := range softirqThreads() {
		text, err := os.ReadFile(filepath.Join(path, "schedstat"))
		if err != nil {
			t.Fatal(err)
		}
		ran, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64) // ns
		if err != nil {
			t.Fatal(err)
		}
		total += ran
	}
	return time.Duration(total)
}

// softirqThreads returns the folders in /proc of the kernel's threads ksoftirqd, one a CPU.
var softirqThreads = sync.OnceValue(func() (paths []string) {
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, path := range all {
		name, err := os.ReadFile(filepath.Join(path, "comm"))
		if err == nil && strings.HasPrefix(string(name), "ksoftirqd/") {
			paths = append(paths, path)
		}
	}
	return paths
})

func TestMeasure(t *testing.T) {
	if *bedFlag == "" {
		t.Skip("nothing to measure: give -bed")
	}
	m, err := parseMeasurement(*bedFlag)
	if err != nil {
		t.Fatal(err)
	}
	if m.Senders == 0 {
		m.Senders = 2
	}
	all, cpu := map[string][]float64{}, map[string][]float64{}
	for range m.runs {
		for _, control := range m.controls {
			r := m.run(t, control)
			all[control] = append(all[control], r.jain)
			cpu[control] = append(cpu[control], r.cpu)
			fmt.Printf("%-10s Jain %.3f sum %.1f: %s %s\n", control, r.jain, sum(r.goodput)/1e6,
				mbps(r.goodput), r.note)
		}
	}
	for _, control := range m.controls {
		fairness, cost := all[control], cpu[control]
		slices.Sort(fairness)
		slices.Sort(cost)
		fmt.Printf("%-10s Jain least %.3f, median %.3f; "+
			"its own CPU median %.3f ns/B (%.3f to %.3f)\n",
			control, fairness[0], fairness[len(fairness)/2], cost[len(cost)/2], cost[0],
			cost[len(cost)-1])
	}
}

func sum(rates []float64) (total float64) {
	for _, r := range rates {
		total += r
	}
	return total
}

func mbps(rates []float64) string {
	var words []string
	for _, r := range rates {
		words = append(words, fmt.Sprintf("%.1f", r/1e6))
	}
	return strings.Join(words, " ")
}
