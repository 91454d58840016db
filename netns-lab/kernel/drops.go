// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"os"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// kernelDrops counts the packets that the kernel lost between the ports: in the backlog, devices,
// TCP, UDP and IP, over all namespaces.
func kernelDrops(nodes namespaces) (map[string]uint64, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, err
	}
	backlogs, err := proc.NetSoftnetStat()
	if err != nil {
		return nil, fmt.Errorf("read backlog drops: %w", err)
	}
	drops := map[string]uint64{"backlog": 0}
	for _, cpu := range backlogs {
		drops["backlog"] += uint64(cpu.Dropped)
	}
	for _, n := range nodes {
		if err := n.do(func() error { return addNamespaceDrops(drops, proc) }); err != nil {
			return nil, fmt.Errorf("read drops in namespace %s: %w", n.name, err)
		}
	}
	return drops, nil
}

// addNamespaceDrops adds the counters of the thread's namespace.
func addNamespaceDrops(drops map[string]uint64, proc procfs.FS) error {
	for _, file := range []string{"netstat", "snmp"} {
		b, err := os.ReadFile("/proc/thread-self/net/" + file)
		if err != nil {
			return err
		}
		if err := addNetstat(drops, b); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	thread, err := proc.Thread(os.Getpid(), unix.Gettid())
	if err != nil {
		return err
	}
	devices, err := thread.NetDev()
	if err != nil {
		return err
	}
	for _, d := range devices { // a veth counts what its far end refused
		drops["device receive"] += d.RxDropped
		drops["device transmit"] += d.TxDropped
	}
	return nil
}
