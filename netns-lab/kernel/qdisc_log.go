// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"

	"github.com/pcn-linux/pcn/internal/result"
)

// qdiscLog asks for what the qdiscs of Linux hold and have counted, at the end of each bin. A tc
// for each switch lives as long as the run: it is told of which devices, and reads them at once, as
// computing takes no time. To start one for each bin would take most of a run.
type qdiscLog struct {
	nodes []*qdiscNode
	asked []int64 // in ns since t = 0
}

// qdiscNode is a switch that has such qdiscs, and its tc.
type qdiscNode struct {
	names    []string // of the ports
	commands string   // of one time
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	said     bytes.Buffer // an array for each command, one after the other
	errors   bytes.Buffer
}

// startQdiscLog starts it. It has no nodes if no port has a qdisc of Linux.
func (f *fabric) startQdiscLog() (*qdiscLog, error) {
	byNode := map[int]*qdiscNode{}
	for _, id := range slices.Sorted(maps.Keys(f.linux.qdiscs)) {
		port := f.plan.ports[id]
		n := byNode[port.node]
		if n == nil {
			n = &qdiscNode{}
			byNode[port.node] = n
		}
		n.names = append(n.names, port.name)
		n.commands += fmt.Sprintf("qdisc show dev %s%d\n", stageDevice, id)
	}
	l := &qdiscLog{}
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		if err := byNode[node].start(f, f.plan.nodes[node].name); err != nil {
			return l, fmt.Errorf("watch qdiscs of %s: %w", f.plan.nodes[node].name, err)
		}
		l.nodes = append(l.nodes, byNode[node])
	}
	return l, nil
}

func (n *qdiscNode) start(f *fabric, node string) (err error) {
	root, err := f.roots.of(node, nil)
	if err != nil {
		return err
	}
	n.cmd = root.command("/", []string{"tc", "-s", "-j", "-batch", "-"})
	n.cmd.Stdout, n.cmd.Stderr = &n.said, &n.errors
	if n.stdin, err = n.cmd.StdinPipe(); err != nil {
		return err
	}
	return root.do(n.cmd.Start)
}

// sample asks for all qdiscs.
func (l *qdiscLog) sample(sinceNs int64) error {
	if len(l.nodes) == 0 {
		return nil
	}
	l.asked = append(l.asked, sinceNs)
	for _, n := range l.nodes {
		if _, err := io.WriteString(n.stdin, n.commands); err != nil {
			return fmt.Errorf("ask for qdiscs: %w", err)
		}
	}
	return nil
}

// close ends the processes, and is harmless after rows.
func (l *qdiscLog) close() error {
	var errs []error
	for _, n := range l.nodes {
		if n.cmd.ProcessState == nil {
			errs = append(errs, n.stdin.Close())
			if err := n.cmd.Wait(); err != nil {
				said := bytes.TrimSpace(n.errors.Bytes())
				errs = append(errs, fmt.Errorf("tc: %w: %s", err, said))
			}
		}
	}
	return errors.Join(errs...)
}

// tcQdisc is what tc prints of a qdisc. Kinds have their own words for packets that they marked.
type tcQdisc struct {
	Handle  string `json:"handle"`
	Backlog uint64 `json:"backlog"`
	Packets uint64 `json:"qlen"`
	Drops   uint64 `json:"drops"`
	ECNMark uint64 `json:"ecn_mark"` // codel, fq_codel, pie, fq_pie
	CEMark  uint64 `json:"ce_mark"`  // codel, fq_codel, fq: beyond ce_threshold
	Marked  uint64 `json:"marked"`   // red
	Tins    []struct {
		ECNMark uint64 `json:"ecn_mark"`
	} `json:"tins"` // cake
}

func (q *tcQdisc) marks() uint64 {
	marks := q.ECNMark + q.CEMark + q.Marked
	for _, t := range q.Tins {
		marks += t.ECNMark
	}
	return marks
}

// rows ends the processes, and returns what they said.
func (l *qdiscLog) rows() ([]result.QdiscSample, error) {
	if err := l.close(); err != nil {
		return nil, err
	}
	var rows []result.QdiscSample
	for _, n := range l.nodes {
		said := json.NewDecoder(&n.said)
		last := make([]tcQdisc, len(n.names))
		for _, atNs := range l.asked {
			for i, port := range n.names {
				q, err := decodeQdisc(said)
				if err != nil {
					return nil, fmt.Errorf("qdisc of port %s at %d ns: %w", port, atNs, err)
				}
				rows = append(rows, result.QdiscSample{
					TimeNs: atNs, Port: port, BacklogBytes: q.Backlog, BacklogPackets: q.Packets,
					DroppedPackets: q.Drops - last[i].Drops,
					MarkedPackets:  q.marks() - last[i].marks(),
				})
				last[i] = q
			}
		}
	}
	return rows, nil
}

// decodeQdisc reads the qdisc of a stage: the one below its shaper.
func decodeQdisc(said *json.Decoder) (tcQdisc, error) {
	var all []tcQdisc
	if err := said.Decode(&all); err != nil {
		return tcQdisc{}, fmt.Errorf("read what tc prints: %w", err)
	}
	i := slices.IndexFunc(all, func(q tcQdisc) bool { return q.Handle == stageQdisc })
	if i < 0 {
		return tcQdisc{}, fmt.Errorf("tc prints no qdisc %s", stageQdisc)
	}
	return all[i], nil
}
