// SPDX-License-Identifier: Apache-2.0

// Command profile prints where a run's time went, out of the samples that scripts/profile.sh took.
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
	"strings"
)

// mostFunctions is how many functions are printed.
const mostFunctions = 45

// groups are the rules by which functions are summed up; the first that matches counts.
var groups = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"verifier", regexp.MustCompile(`^(do_)?check_|verif|^bpf_check|arg_track|^compute_subprog|` +
		`liveness|^btf_|states_|^(mark|push|pop)_|reg_bounds|is_state`)},
	{"BPF: entry, clock, kfuncs", regexp.MustCompile(`^bpf__Qdisc|^__bpf_prog_(enter|` +
		`exit)|bpf_ktime_get|ktime_get_mono_fast|^bpf_qdisc_|bpf_kptr_xchg|^bpf_trampoline`)},
	{"BPF: maps, redirects", regexp.MustCompile(`^tc_run|htab_map|lookup_nulls|` +
		`^bpf_(redirect|clone_redirect|skb_|ringbuf)|__bpf_redirect|skb_do_redirect|__bpf_tx_skb|` +
		`^memcmp$|^jhash|skb_ensure_writable`)},
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

// groupOf returns the group of a function of the guest's kernel.
func groupOf(symbol string) string {
	for _, g := range groups {
		if g.pattern.MatchString(symbol) {
			return g.name
		}
	}
	return "other"
}

// The processes of a run: User Mode Linux is one for its kernel, and one for each program of it.
const (
	kernelProcess  = "linux"
	programProcess = "uml-userspace"
)

// sample is where a process was.
type sample struct{ process, function, file string }

// group returns what a sample counts for. The guest's memory is a file, in which the programs lie
// that it loaded.
func (s sample) group() string {
	onHost := strings.Contains(s.file, "[kernel")
	inMemory := strings.Contains(s.file, "memfd:")
	switch {
	case s.process == kernelProcess && onHost:
		return "host: memory and turns of the guest's kernel"
	case s.process == kernelProcess && inMemory:
		return "BPF programs"
	case s.process == kernelProcess:
		return groupOf(s.function)
	case s.process == programProcess && onHost:
		return "host: memory and turns of the guest's programs"
	case s.process == programProcess:
		return "Go in the guest"
	case onHost:
		return "host: pcn"
	}
	return "pcn"
}

// readSamples reads lines of process, address, function and file, as perf script prints them.
func readSamples(r io.Reader) ([]sample, error) {
	line := regexp.MustCompile(`^\s*(\S+)\s+[0-9a-f]+ (.*?) \((.*)\)$`)
	var samples []sample
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		m := line.FindStringSubmatch(lines.Text())
		if m == nil {
			return nil, fmt.Errorf("sample %q: want process, address, function (file)", lines.Text())
		}
		samples = append(samples, sample{m[1], m[2], m[3]})
	}
	if len(samples) == 0 && lines.Err() == nil {
		return nil, fmt.Errorf("there are no samples: is perf allowed to take them?")
	}
	return samples, lines.Err()
}

// report prints the tables.
func report(w io.Writer, samples []sample) {
	byGroup, byFunction := map[string]int{}, map[string]int{}
	for _, s := range samples {
		byGroup[s.group()]++
		byFunction[s.process+": "+s.function]++
	}
	for _, counts := range []map[string]int{byGroup, byFunction} {
		names := descending(counts)
		for _, name := range names[:min(len(names), mostFunctions)] {
			fmt.Fprintf(w, "%5.1f%%  %s\n", 100*float64(counts[name])/float64(len(samples)), name)
		}
		fmt.Fprintln(w)
	}
}

// descending returns the keys, by their values from the largest, and then by name.
func descending(m map[string]int) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
}

func main() {
	samples, err := readSamples(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
	report(os.Stdout, samples)
}
