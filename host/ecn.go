// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

const synName = "syn" // of its component

// ECN says where SYNs become not ECN-capable, so that servers whose control does not need ECN agree
// to it.
type ECN struct {
	// Interfaces are where it runs. Default: those of NP and RP; an empty list is nowhere.
	Interfaces []string `yaml:"interfaces"`
}

func (e *ECN) at() []string { return e.Interfaces }

func (*ECN) required() []string { return nil }

func (e *ECN) fill(_ *config.Decoder, c *Config) {
	if e.Interfaces != nil {
		return
	}
	var names []string
	if c.NP != nil {
		names = append(names, c.NP.Interfaces...)
	}
	if c.RP != nil {
		names = append(names, c.RP.Interfaces...)
	}
	slices.Sort(names)
	e.Interfaces = slices.Compact(names)
}

func (e *ECN) validate(d *config.Decoder, c *Config) {
	distinct(d, "ecn", e.Interfaces)
	if !c.needsECN() {
		d.Fail("ecn", "there is no control that needs ECN", "add controls: {pcn: {}}")
	}
}

func (e *ECN) plan(*Config, measured) (*component, error) {
	if len(e.Interfaces) == 0 {
		return nil, nil
	}
	return tcComponent(synName, e.Interfaces, nil,
		func(old map[string]*ebpf.Map, _ map[string]*loader.Control) (tc.Object, error) {
			return tc.LoadPlainSYN(tc.Reuse(old))
		})
}

// tcpECNFile has the kernel's attitude to ECN in the thread's network namespace.
const tcpECNFile = "/proc/sys/net/ipv4/tcp_ecn"

// tcpECN returns net.ipv4.tcp_ecn.
func tcpECN() (string, error) {
	text, err := os.ReadFile(tcpECNFile)
	if err != nil {
		return "", fmt.Errorf("read net.ipv4.tcp_ecn: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// asksForECN reports whether connections ask for ECN with this net.ipv4.tcp_ecn, also if their
// control does not need it.
func asksForECN(value string) bool { return value != "0" && value != "2" && value != "5" }

// ecnAdvice says what happens with this net.ipv4.tcp_ecn, and what to do.
func ecnAdvice(value string) string {
	return fmt.Sprintf("net.ipv4.tcp_ecn is %s: a program that chooses its control after it has "+
		"connected, such as iperf3 -C pcn, gets no ECN, and so TCP's window instead of PCN; "+
		"sysctl -w net.ipv4.tcp_ecn=1, or choose the control by cgroup or by sysctl", value)
}

// fallbackFile says whether a SYN that is lost is repeated without asking for ECN.
const fallbackFile = "/proc/sys/net/ipv4/tcp_ecn_fallback"

// The advice about net.ipv4.tcp_ecn_fallback.
const (
	fallbackMeans = "a connection whose first packet is lost has no ECN for life, and so TCP's " +
		"window, beside others that slow down for marks"
	fallbackCommand = "sysctl -w net.ipv4.tcp_ecn_fallback=0"
)

// fallsBack reports whether connections whose SYN is lost go on without ECN.
func fallsBack() (bool, error) {
	text, err := os.ReadFile(fallbackFile)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read net.ipv4.tcp_ecn_fallback: %w", err)
	}
	return strings.TrimSpace(string(text)) != "0", nil
}

// Advice returns what this network namespace lacks for the configured controls, and what to do. Up
// does not change it.
func (c *Config) Advice() (advice []string, err error) {
	if !c.needsECN() {
		return nil, nil
	}
	value, err := tcpECN()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err == nil && !asksForECN(value) {
		advice = append(advice, ecnAdvice(value))
	}
	falls, err := fallsBack()
	if falls {
		advice = append(advice, fmt.Sprintf("net.ipv4.tcp_ecn_fallback is 1: %s; %s, where all "+
			"paths let ECN through", fallbackMeans, fallbackCommand))
	}
	return advice, err
}

// ecnNotes says which flows have no ECN, and whether others will.
func (s *Status) ecnNotes() []string {
	var notes []string
	needed := false
	for _, c := range s.Components {
		name, ok := strings.CutPrefix(c.Name, controlPrefix)
		if !ok || !needsECN(name) {
			continue
		}
		needed = true
		if n := c.Counts[noECNCount]; n > 0 {
			notes = append(notes, fmt.Sprintf("%d of %d flows of %s have no ECN, and so TCP's "+
				"window instead of %s: either the socket chose its control after it had "+
				"connected, or the peer or the path refuses ECN: see pcn host doctor", n,
				c.Counts[flowsCount], name, name))
		}
	}
	if value, err := tcpECN(); needed && err == nil && !asksForECN(value) {
		notes = append(notes, ecnAdvice(value))
	}
	return notes
}
