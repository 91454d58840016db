// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/loader/ns"
)

// netstatDrops are the counters of /proc/net/netstat and snmp that mean a lost packet, by protocol.
var netstatDrops = map[string][]string{
	"TcpExt": {"TCPBacklogDrop", "TCPRcvQDrop", "TCPOFODrop", "TCPMinTTLDrop", "PFMemallocDrop", "PruneCalled",
		"RcvPruned", "OfoPruned", "TCPTimeouts", "TCPLossProbes", "TCPLostRetransmit", "TCPWqueueTooBig"},
	"Tcp": {"RetransSegs", "InErrs"},
	"Udp": {"InErrors", "RcvbufErrors", "SndbufErrors", "InCsumErrors"},
	"Ip":  {"InHdrErrors", "InAddrErrors", "InDiscards", "OutDiscards", "OutNoRoutes"},
}

// kernelDrops counts what the kernel lost between the ports: backlog, devices, TCP, UDP and IP, over all
// namespaces.
func (f *fabric) kernelDrops() (map[string]uint64, error) {
	drops := map[string]uint64{}
	backlog, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return nil, fmt.Errorf("read backlog drops: %w", err)
	}
	if drops["backlog"], err = softnetDrops(backlog); err != nil {
		return nil, err
	}
	for i, n := range f.nodes {
		if err := ns.Do(n.ns, func() error { return namespaceDrops(drops) }); err != nil {
			return nil, fmt.Errorf("read drops in namespace %s: %w", f.plan.nodes[i].name, err)
		}
	}
	return drops, nil
}

// namespaceDrops adds the counters of the thread's namespace.
func namespaceDrops(drops map[string]uint64) error {
	for _, file := range []string{"netstat", "snmp"} {
		b, err := os.ReadFile("/proc/thread-self/net/" + file)
		if err != nil {
			return err
		}
		if err := addNetstat(drops, b); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	b, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return err
	}
	return addDevices(drops, b)
}

// softnetDrops sums the second column, hexadecimal, of /proc/net/softnet_stat: packets dropped for a full backlog.
func softnetDrops(b []byte) (uint64, error) {
	var total uint64
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			return 0, fmt.Errorf("softnet_stat: line %q has no second column", line)
		}
		n, err := strconv.ParseUint(fields[1], 16, 64)
		if err != nil {
			return 0, fmt.Errorf("softnet_stat: %w", err)
		}
		total += n
	}
	return total, nil
}

// addNetstat reads pairs of lines: "Proto: names", "Proto: values".
func addNetstat(drops map[string]uint64, b []byte) error {
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		names := strings.Fields(sc.Text())
		if !sc.Scan() {
			return fmt.Errorf("names of %q have no values", names)
		}
		values := strings.Fields(sc.Text())
		if len(names) == 0 || len(names) != len(values) || names[0] != values[0] {
			return fmt.Errorf("names %q do not fit values %q", names, values)
		}
		proto := strings.TrimSuffix(names[0], ":")
		for i, name := range names {
			if !contains(netstatDrops[proto], name) {
				continue
			}
			n, err := strconv.ParseUint(values[i], 10, 64)
			if err != nil {
				return fmt.Errorf("%s %s: %w", proto, name, err)
			}
			drops[strings.ToLower(proto)+" "+name] += n
		}
	}
	return sc.Err()
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// Columns of /proc/net/dev after the name: 8 of receive, 8 of transmit.
const (
	devReceiveDrop  = 3
	devTransmitDrop = 11
)

// addDevices sums the drops of all devices. A veth counts what its far end refused.
func addDevices(drops map[string]uint64, b []byte) error {
	for line := range strings.Lines(string(b)) {
		name, rest, ok := strings.Cut(line, ":")
		if !ok {
			continue // the header
		}
		fields := strings.Fields(rest)
		if len(fields) <= devTransmitDrop {
			return fmt.Errorf("device %s: %d columns", name, len(fields))
		}
		for what, column := range map[string]int{"device receive": devReceiveDrop, "device transmit": devTransmitDrop} {
			n, err := strconv.ParseUint(fields[column], 10, 64)
			if err != nil {
				return fmt.Errorf("device %s: %w", name, err)
			}
			drops[what] += n
		}
	}
	return nil
}

// cpuTimes are the busy and total ticks of all CPUs since boot.
func cpuTimes() (busy, total uint64, err error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("read CPU times: %w", err)
	}
	return parseCPU(b)
}

// parseCPU reads the first line of /proc/stat: cpu user nice system idle iowait irq softirq steal ...
func parseCPU(b []byte) (busy, total uint64, err error) {
	line, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	const idle, iowait = 3, 4
	for i, s := range fields[1:9] {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/stat: %w", err)
		}
		total += n
		if i != idle && i != iowait {
			busy += n
		}
	}
	return busy, total, nil
}

// kernelRelease is uname -r.
func kernelRelease() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "", fmt.Errorf("read the kernel's release: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
