// SPDX-License-Identifier: Apache-2.0

// Command profile prints where a run's instructions went, out of what scripts/profile.sh collected.
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// packetSymbol is called once for each data packet that a sender sends for the first time.
const packetSymbol = "tcp_event_new_data_sent"

// mostFunctions is how many functions are printed.
const mostFunctions = 45

// groups are the rules by which functions are summed up; the first that matches counts. Those of Go
// start with "go:".
var groups = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"Go: runtime and our code", regexp.MustCompile(`^go:|^user$`)},
	{"qdisc programs", regexp.MustCompile(`^bpf_prog_\w+_(npecn_\w+|transmit|next_start|` +
		`arrive_by|lossless_start|carry|sample_flush|pfc_post|watch_data|watch_host)$`)},
	{"qdisc programs: entry, clock, kfuncs", regexp.MustCompile(`^bpf__Qdisc|^__bpf_prog_(enter|` +
		`exit)|bpf_ktime_get|ktime_get_mono_fast|^bpf_qdisc_|bpf_kptr_xchg|^bpf_trampoline`)},
	{"tcx programs", regexp.MustCompile(`^bpf_prog_\w+_(fabric|arrive|stamp|np_ingress|np_egress|` +
		`rp_ingress|cnm_egress|first_rtt|syn|make_\w+|reflect)$`)},
	{"tcx programs: maps, redirects", regexp.MustCompile(`^tc_run|htab_map|lookup_nulls|` +
		`^bpf_(redirect|clone_redirect|skb_|ringbuf)|__bpf_redirect|skb_do_redirect|__bpf_tx_skb|` +
		`^memcmp$|^jhash|skb_ensure_writable`)},
	{"congestion control", regexp.MustCompile(`^bpf_prog_|bpf__tcp_congestion`)},
	{"TCP", regexp.MustCompile(`^(__)?tcp_|^inet_(sendmsg|csk)|^__inet|bictcp|sock_[rw]free|` +
		`sk_(stream|reset_timer|pacing)|^_copy_from_iter|skb_page_frag|csum_partial`)},
	{"IP", regexp.MustCompile(`^(__)?ip_|ipv4|^inet_|^dst_|fib_|^neigh|^rt_|eth_header|nf_hook`)},
	{"skb and slab", regexp.MustCompile(`skb|kmem|slab|kmalloc|^kfree|free_(pages|unref)|` +
		`page_frag|get_page_from|alloc_pages`)},
	{"devices: veth, NAPI, qdisc core", regexp.MustCompile(`veth|netif|napi|backlog|` +
		`net_[rt]x_action|softirq|dev_|qdisc|sch_direct|eth_type_trans|local_bh|tasklet|llist`)},
	{"timers and clocks", regexp.MustCompile(`hrtimer|timer|clockevents|ktime|hpet|tick_|tsc|rb_|` +
		`timekeeping|jiffies`)},
	{"system calls", regexp.MustCompile(`syscall|SYSCALL|x64_sys|epoll|^ep_|futex|fdget|fput|` +
		`__sys_|sock_|release_sock|lock_sock|vfs_|ksys|copy_(to|from)_user|nanosleep`)},
	{"interrupts, idle", regexp.MustCompile(`irq|interrupt|error_entry|asm_|vector|apic|idle|` +
		`halt|native_iret|error_return|nohz`)},
	{"scheduler", regexp.MustCompile(`sched|switch|enqueue|dequeue|pick_|update_|wake|entity|` +
		`task|place_|worker|queue_work|balance`)},
	{"RCU, locks, lists", regexp.MustCompile(`rcu|lock|spin|mutex|preempt|__list_`)},
	{"memory", regexp.MustCompile(`mem(cpy|set|move)|page|fault|tlb|mm_|vma|pte|clear_`)},
}

func groupOf(symbol string) string {
	for _, g := range groups {
		if g.pattern.MatchString(symbol) {
			return g.name
		}
	}
	return "other"
}

// symbols finds the function of an address.
type symbols struct {
	addresses []uint64
	names     []string
}

// readSymbols reads lines of an address, a type and a name, as of nm and /proc/kallsyms.
func readSymbols(r io.Reader, prefix string) (*symbols, error) {
	type entry struct {
		at   uint64
		name string
	}
	var all []entry
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || !strings.ContainsAny(fields[1], "tTwW") {
			continue
		}
		at, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("symbol %q: %w", lines.Text(), err)
		}
		all = append(all, entry{at, prefix + fields[2]})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	s := &symbols{}
	for _, e := range all {
		s.addresses, s.names = append(s.addresses, e.at), append(s.names, e.name)
	}
	return s, lines.Err()
}

// find returns the function that an address is in, and whether it is its first.
func (s *symbols) find(address uint64) (name string, first bool) {
	i := sort.Search(len(s.addresses), func(i int) bool { return s.addresses[i] > address }) - 1
	if i < 0 {
		return "user", false
	}
	return s.names[i], s.addresses[i] == address
}

// phase is what ran between two marks.
type phase struct {
	instructions map[string]uint64 // by function
	calls        map[string]uint64
}

func newPhase() phase { return phase{map[string]uint64{}, map[string]uint64{}} }

func (p phase) add(q phase) {
	for name, n := range q.instructions {
		p.instructions[name] += n
	}
	for name, n := range q.calls {
		p.calls[name] += n
	}
}

func (p phase) total() (sum uint64) {
	for _, n := range p.instructions {
		sum += n
	}
	return sum
}

// readCounts reads the plugin's counts. The first phase ends with the first mark, at 1 ms.
func readCounts(r io.Reader, kernel, program *symbols) ([]phase, error) {
	const kernelStart = 1 << 63
	var phases []phase
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			phases = append(phases, newPhase())
			continue
		}
		var address, length, times uint64
		if _, err := fmt.Sscanf(line, "%x %d %d", &address, &length, &times); err != nil {
			return nil, fmt.Errorf("count %q: %w", line, err)
		}
		s := program
		if address >= kernelStart {
			s = kernel
		}
		name, first := s.find(address)
		p := phases[len(phases)-1]
		p.instructions[name] += length * times
		if first {
			p.calls[name] += times
		}
	}
	return phases, lines.Err()
}

// report prints the tables, of the milliseconds from and to, if they are not 0.
func report(w io.Writer, phases []phase, from, to int) error {
	marks := len(phases) - 1
	if from == 0 && to == 0 {
		from, to = marks/2, marks-1
	}
	if marks < 2 || from < 0 || from >= to || to > marks {
		return fmt.Errorf("FROM=%d, TO=%d: the run has %d milliseconds: "+
			"want 0 <= FROM < TO <= that", from, to, marks)
	}
	fmt.Fprintf(w, "million instructions: %.0f until 1 ms is over, then each ms",
		millions(phases[0]))
	for _, p := range phases[1:marks] {
		fmt.Fprintf(w, " %.0f", millions(p))
	}
	fmt.Fprintf(w, ", %.0f after the last\n\n", millions(phases[marks]))

	sum := newPhase()
	for _, p := range phases[from:to] {
		sum.add(p)
	}
	packets := max(sum.calls[packetSymbol], 1)
	fmt.Fprintf(w, "from %d to %d ms: %.1f million instructions a ms, %d data packets a ms, "+
		"%.0f instructions a packet\n\n", from, to, millions(sum)/float64(to-from),
		packets/uint64(to-from), float64(sum.total())/float64(packets))
	byGroup := map[string]uint64{}
	for name, n := range sum.instructions {
		byGroup[groupOf(name)] += n
	}
	fmt.Fprintf(w, "%8s %6s  %s\n", "a packet", "", "group")
	for _, name := range descending(byGroup) {
		printShare(w, byGroup[name], sum.total(), packets)
		fmt.Fprintf(w, "  %s\n", name)
	}
	fmt.Fprintf(w, "\n%8s %6s %6s  %s\n", "a packet", "", "calls", "function")
	names := descending(sum.instructions)
	for _, name := range names[:min(len(names), mostFunctions)] {
		printShare(w, sum.instructions[name], sum.total(), packets)
		fmt.Fprintf(w, " %6.2f  %s\n", float64(sum.calls[name])/float64(packets), name)
	}
	return nil
}

func millions(p phase) float64 { return float64(p.total()) / 1e6 }

func printShare(w io.Writer, n, total, packets uint64) {
	fmt.Fprintf(w, "%8.0f %5.1f%%", float64(n)/float64(packets), 100*float64(n)/float64(total))
}

// descending returns the keys, by their values from the largest, and then by name.
func descending(m map[string]uint64) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("want COUNTS KALLSYMS NM FROM TO: scripts/profile.sh calls it")
	}
	var files [3]*os.File
	for i := range files {
		f, err := os.Open(args[i])
		if err != nil {
			return err
		}
		defer f.Close()
		files[i] = f
	}
	var span [2]int
	for i := range span {
		n, err := strconv.Atoi(args[3+i])
		if err != nil {
			return fmt.Errorf("FROM and TO are milliseconds: %w", err)
		}
		span[i] = n
	}
	kernel, err := readSymbols(files[1], "")
	if err != nil {
		return err
	}
	program, err := readSymbols(files[2], "go:")
	if err != nil {
		return err
	}
	phases, err := readCounts(files[0], kernel, program)
	if err != nil {
		return err
	}
	return report(os.Stdout, phases, span[0], span[1])
}
