// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pcn-linux/pcn/host"
)

// watch scrapes the hosts' metrics all the time, and checks what they say.
type watch struct {
	bed    *bed
	report *report

	mu      sync.Mutex
	servers map[string]*exec.Cmd
	last    map[string]scraped // by host
	resets  map[string]int     // how often counters of a host may have been reset
	sums    map[string]series  // increases of a host's counters in this round
	running bool
}

// series are samples of one scrape by their name and labels.
type series map[string]float64

// scraped is a scrape, and how often counters may have been reset before.
type scraped struct {
	series
	resets int
}

func newWatch(b *bed, r *report) *watch {
	return &watch{
		bed: b, report: r, servers: map[string]*exec.Cmd{}, last: map[string]scraped{},
		resets: map[string]int{}, sums: map[string]series{},
	}
}

const metricsAddress = "127.0.0.1:9818"

// serve starts pcn host serve on a host, if it does not run.
func (w *watch) serve(ctx context.Context, on, pcn string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.servers[on] != nil {
		return nil
	}
	c := command(ctx, on, w.bed.host(on).ns, pcn, "host", "serve", "--listen", metricsAddress,
		"--flows", "5")
	if err := c.Start(); err != nil {
		return fmt.Errorf("start pcn host serve on %s: %w", on, err)
	}
	closeFiles(c)
	w.servers[on] = c
	return nil
}

func (w *watch) kill(on string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.servers[on]; c != nil {
		_ = c.Process.Kill()
		_ = c.Wait()
		delete(w.servers, on)
	}
}

func (w *watch) stop() {
	for _, h := range withPCN {
		w.kill(h)
	}
}

// mayReset says that a host's counters may begin at zero now.
func (w *watch) mayReset(on string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resets[on]++
}

func (w *watch) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
}

// loop scrapes and looks for stuck flows until pause.
func (w *watch) loop(ctx context.Context, cs *clients) {
	w.mu.Lock()
	w.running = true
	clear(w.sums)
	clear(w.last)
	w.mu.Unlock()
	for sleep(ctx, 500*time.Millisecond) {
		w.mu.Lock()
		running := w.running
		w.mu.Unlock()
		if !running {
			return
		}
		cs.check()
		for _, h := range withPCN {
			w.observe(h)
		}
	}
}

// observe scrapes a host and compares its counters with those of the scrape before.
func (w *watch) observe(on string) {
	w.mu.Lock()
	before := w.resets[on]
	w.mu.Unlock()
	now, err := w.scrape(on)
	if err != nil {
		return // it starts, or was killed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.compare(on, before, now)
}

// compare takes a scrape that began after so many resets.
func (w *watch) compare(on string, resets int, now series) {
	if resets != w.resets[on] {
		return // the host began anew meanwhile
	}
	last := w.last[on]
	if w.sums[on] == nil {
		w.sums[on] = series{}
	}
	for name, value := range now {
		if !strings.HasPrefix(name, "pcn_events_total") {
			continue
		}
		increase := value - last.series[name]
		if increase < 0 {
			increase = value // it began anew, if it may
			if last.resets == resets {
				w.report.violation("counter of %s went back from %.0f to %.0f: %s", on,
					last.series[name], value, name)
			}
		}
		w.sums[on][name] += increase
	}
	if now["pcn_read_error"] == 0 { // else up changes the pins
		w.last[on] = scraped{now, resets}
	}
}

func (w *watch) scrape(on string) (series, error) {
	h := w.bed.host(on)
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, to string) (c net.Conn, err error) {
			err = h.do(func() (err error) {
				c, err = (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, to)
				return err
			})
			return c, err
		},
	}}
	r, err := client.Get("http://" + metricsAddress + "/metrics")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics of %s: %s", on, r.Status)
	}
	return parseMetrics(r.Body)
}

// parseMetrics reads Prometheus' text format.
func parseMetrics(r io.Reader) (series, error) {
	all := series{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		all[line[:at]] = value
	}
	return all, lines.Err()
}

// compareStatus checks that status and metrics have the same counters. Timers of programs may count
// between the two, so they get a second chance.
func (w *watch) compareStatus(
	ctx context.Context, on string, status func() (string, int, error),
) {
	var problem string
	for range 5 {
		if problem = w.differStatus(on, status); problem == "" || ctx.Err() != nil {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	w.report.violation("status and metrics of %s: %s", on, problem)
}

func (w *watch) differStatus(on string, status func() (string, int, error)) string {
	text, code, err := status()
	if err != nil || code != 0 {
		return fmt.Sprintf("status: %v, exit code %d: %s", err, code, text)
	}
	var s host.Status
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Sprintf("status: %v: %s", err, text)
	}
	metrics, err := w.scrape(on)
	if err != nil {
		return err.Error()
	}
	counters := 0
	for _, c := range s.Components {
		for name, n := range c.Counts {
			control := strings.TrimPrefix(c.Name, "control_")
			if _, is := metrics[fmt.Sprintf("pcn_%s{control=%q}", name, control)]; is {
				continue // of flows that live: they come and go
			}
			counters++
			key := fmt.Sprintf("pcn_events_total{component=%q,event=%q}", c.Name, name)
			if got, ok := metrics[key]; !ok || got != float64(n) {
				return fmt.Sprintf("%s is %.0f in the metrics (%v): status says %d",
					key, got, ok, n)
			}
		}
	}
	if counters == 0 {
		return "status shows no counter: " + text
	}
	return ""
}

// compareSums checks that the client's host heard no more CNPs than the server's host sent.
func (w *watch) compareSums(n int) {
	w.observe(clientHost)
	w.observe(serverHost)
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := func(on, component, events string) (total float64) {
		for name, value := range w.sums[on] {
			if strings.Contains(name, fmt.Sprintf("component=%q,event=\"%s", component, events)) {
				total += value
			}
		}
		return total
	}
	sent, heard := sum(serverHost, "np", "cnp_"), sum(clientHost, "rp", "")
	marked := sum(routerHost, "wred", "marked")
	w.report.add("CNPs sent", sent)
	w.report.add("CNPs heard", heard)
	w.report.add("packets marked", marked)
	if heard > sent {
		w.report.violation("round %d: RP heard %.0f CNPs: NP sent %.0f", n, heard, sent)
	}
}

// slabs whose objects are worth a line of their own.
var slabs = []string{"TCP", "TCPv6", "tw_sock_TCP", "tw_sock_TCPv6", "net_namespace",
	"sock_inode_cache", "skbuff_head_cache", "ip_dst_cache"}

// sample measures what may grow: the machine's memory, and the programs that run all the time.
func (w *watch) sample() *sample {
	s := &sample{at: time.Now()}
	for _, h := range withPCN {
		m, err := w.scrape(h)
		if err != nil {
			w.report.violation("pcn host serve on %s does not answer: %v", h, err)
			continue
		}
		s.add("serve on "+h+": resident bytes", m["process_resident_memory_bytes"])
		s.add("serve on "+h+": open files", m["process_open_fds"])
		s.add("serve on "+h+": goroutines", m["go_goroutines"])
	}
	for _, key := range []string{"SUnreclaim", "Percpu", "VmallocUsed", "KernelStack"} {
		s.add("machine: "+key+" bytes", meminfo(key))
	}
	active := slabObjects()
	for _, name := range slabs {
		if n, ok := active[name]; ok {
			s.add("slab "+name+": objects", n)
		}
	}
	files, _ := os.ReadDir("/proc/self/fd")
	s.add("this program: open files", float64(len(files)))
	s.add("this program: goroutines", float64(runtime.NumGoroutine()))
	return s
}

func meminfo(key string) float64 {
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[0] == key+":" {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			return kib * 1024
		}
	}
	return 0
}

func slabObjects() map[string]float64 {
	active := map[string]float64{}
	text, _ := os.ReadFile("/proc/slabinfo")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 2 {
			active[fields[0]], _ = strconv.ParseFloat(fields[1], 64)
		}
	}
	return active
}
