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
	thread, err := proc.Thread(os.Getpid(), unix.Gettid())
	if err != nil {
		return err
	}
	netstat, err := thread.Netstat()
	if err != nil {
		return err
	}
	snmp, err := thread.Snmp()
	if err != nil {
		return err
	}
	devices, err := thread.NetDev()
	if err != nil {
		return err
	}
	addProtocolDrops(drops, &netstat, &snmp)
	for _, d := range devices { // a veth counts what its far end refused
		drops["device receive"] += d.RxDropped
		drops["device transmit"] += d.TxDropped
	}
	return nil
}

// addProtocolDrops adds the counters that a kernel has. One without a counter does not drop there.
func addProtocolDrops(drops map[string]uint64, n *procfs.ProcNetstat, s *procfs.ProcSnmp) {
	for place, count := range protocolDrops(n, s) {
		if count != nil {
			drops[place] += uint64(*count)
		}
	}
}

// protocolDrops are the counters of /proc/net/netstat and snmp that mean a lost packet, by place.
func protocolDrops(n *procfs.ProcNetstat, s *procfs.ProcSnmp) map[string]*float64 {
	return map[string]*float64{
		"tcpext TCPBacklogDrop":    n.TCPBacklogDrop,
		"tcpext TCPRcvQDrop":       n.TCPRcvQDrop,
		"tcpext TCPOFODrop":        n.TCPOFODrop,
		"tcpext TCPMinTTLDrop":     n.TCPMinTTLDrop,
		"tcpext PFMemallocDrop":    n.PFMemallocDrop,
		"tcpext PruneCalled":       n.PruneCalled,
		"tcpext RcvPruned":         n.RcvPruned,
		"tcpext OfoPruned":         n.OfoPruned,
		"tcpext TCPTimeouts":       n.TCPTimeouts,
		"tcpext TCPLossProbes":     n.TCPLossProbes,
		"tcpext TCPLostRetransmit": n.TCPLostRetransmit,
		"tcpext TCPWqueueTooBig":   n.TCPWqueueTooBig,
		"tcp RetransSegs":          s.RetransSegs,
		"tcp InErrs":               s.InErrs,
		"udp InErrors":             s.Udp.InErrors,
		"udp RcvbufErrors":         s.Udp.RcvbufErrors,
		"udp SndbufErrors":         s.Udp.SndbufErrors,
		"udp InCsumErrors":         s.Udp.InCsumErrors,
		"ip InHdrErrors":           s.InHdrErrors,
		"ip InAddrErrors":          s.InAddrErrors,
		"ip InDiscards":            s.InDiscards,
		"ip OutDiscards":           s.OutDiscards,
		"ip OutNoRoutes":           s.OutNoRoutes,
	}
}
