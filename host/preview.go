// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Preview returns what Up would do, with the settings that would change in the notes. It loads and
// verifies all programs, and changes nothing.
func (h *Host) Preview(ctx context.Context, c *Config) (changes []Change, err error) {
	if err := haveKernel(); err != nil {
		return nil, err
	}
	if err := checkMount(h.root); err != nil {
		return nil, err
	}
	components, err := h.plan(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := c.checkCgroups(); err != nil {
		return nil, err
	}
	s, err := h.survey()
	if err != nil {
		return nil, err
	}
	var t transaction // nothing to undo, much to free
	defer func() { err = t.end(err) }()
	objects, err := h.load(&t, s, components)
	if err != nil {
		return nil, err
	}
	for i, one := range components {
		d, err := s.decide(h.folder(one.folderIn(s.here)), one, objects[i])
		if err != nil {
			return nil, err
		}
		change := d.Change
		change.Note = strings.Join(append(d.details(), nonEmpty(change.Note)...), "; ")
		changes = append(changes, change)
	}
	removed, err := h.removals(s, s.unwanted(components))
	if err != nil {
		return nil, err
	}
	for _, one := range removed {
		changes = append(changes, one.Change)
	}
	return append(changes, wouldReselect(changes)...), nil
}

// checkCgroups fails where Up would fail to attach.
func (c *Config) checkCgroups() error {
	for _, g := range c.Cgroups {
		var fsinfo unix.Statfs_t
		if err := unix.Statfs(g.Path, &fsinfo); err != nil {
			return fmt.Errorf("cgroup %s: %w", g.Path, err)
		}
		if fsinfo.Type != unix.CGROUP2_SUPER_MAGIC {
			return fmt.Errorf("cgroup %s is no cgroup of version 2: want a folder such as "+
				"/sys/fs/cgroup/storage.slice", g.Path)
		}
	}
	return nil
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// details says what a change would be, by the settings.
func (d decision) details() []string {
	if d.What == Kept {
		return nil
	}
	var before state
	if d.now != nil {
		before = *d.now
	}
	var out []string
	for _, s := range d.want.Settings {
		switch was := before.setting(s.Key); {
		case d.What == Added && s.Value != "":
			out = append(out, s.Key+" "+s.Value)
		case d.What == Changed && was != s.Value:
			out = append(out, fmt.Sprintf("%s %s to %s", s.Key, orNone(was), orNone(s.Value)))
		}
	}
	if d.What == Changed && len(out) == 0 {
		out = append(out, "other programs, or other places")
	}
	return []string{strings.Join(out, ", ")}
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

// wouldReselect returns the namespaces that chose a control which gets new programs.
func wouldReselect(changes []Change) []Change {
	var controls []string
	for _, c := range changes {
		name, ok := strings.CutPrefix(c.Component, controlPrefix)
		if ok && c.What != Kept && c.What != Removed {
			controls = append(controls, name)
		}
	}
	chosen, _, err := choices(controls)
	if err != nil {
		return nil
	}
	var out []Change
	for _, c := range chosen {
		out = append(out, Change{Component: controlPrefix + c.Control, What: Reselected,
			Namespace: c.Namespace.String()})
	}
	return out
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
