// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// netstatDrops are the counters of /proc/net/netstat and snmp that mean a lost packet, by protocol.
// They are not read through procfs: v0.22 skips TCPBacklogDrop, TCPMinTTLDrop and
// PFMemallocDrop, although it has fields for them.
var netstatDrops = map[string][]string{
	"TcpExt": {
		"TCPBacklogDrop", "TCPRcvQDrop", "TCPOFODrop", "TCPMinTTLDrop", "PFMemallocDrop",
		"PruneCalled", "RcvPruned", "OfoPruned", "TCPTimeouts", "TCPLossProbes",
		"TCPLostRetransmit", "TCPWqueueTooBig",
	},
	"Tcp": {"RetransSegs", "InErrs"},
	"Udp": {"InErrors", "RcvbufErrors", "SndbufErrors", "InCsumErrors"},
	"Ip":  {"InHdrErrors", "InAddrErrors", "InDiscards", "OutDiscards", "OutNoRoutes"},
}

// addNetstat reads pairs of lines, "Proto: names" and "Proto: values".
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
			if !slices.Contains(netstatDrops[proto], name) {
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
