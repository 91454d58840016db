// SPDX-License-Identifier: Apache-2.0

// Package tcpecn reads the kernel's settings of ECN in the thread's network namespace.
package tcpecn

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// file has the kernel's attitude to ECN in the thread's network namespace.
const file = "/proc/sys/net/ipv4/tcp_ecn"

// Get returns net.ipv4.tcp_ecn.
func Get() (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read net.ipv4.tcp_ecn: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// AsksForECN reports whether connections ask for ECN with this net.ipv4.tcp_ecn, also if their
// control does not need it.
func AsksForECN(value string) bool { return value != "0" && value != "2" && value != "5" }

// Advice says what happens with this net.ipv4.tcp_ecn, and what to do.
func Advice(value string) string {
	return fmt.Sprintf("net.ipv4.tcp_ecn is %s: a program that chooses its control after it has "+
		"connected, such as iperf3 -C pcn, gets no ECN, and so TCP's window instead of PCN; "+
		"sysctl -w net.ipv4.tcp_ecn=1, or choose the control by cgroup or by sysctl", value)
}

// fallbackFile says whether a SYN that is lost is repeated without asking for ECN.
const fallbackFile = "/proc/sys/net/ipv4/tcp_ecn_fallback"

// The advice about net.ipv4.tcp_ecn_fallback.
const (
	FallbackMeans = "a connection whose first packet is lost has no ECN for life, and so TCP's " +
		"window, beside others that slow down for marks"
	FallbackCommand = "sysctl -w net.ipv4.tcp_ecn_fallback=0"
)

// FallsBack reports whether connections whose SYN is lost go on without ECN.
func FallsBack() (bool, error) {
	text, err := os.ReadFile(fallbackFile)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read net.ipv4.tcp_ecn_fallback: %w", err)
	}
	return strings.TrimSpace(string(text)) != "0", nil
}
