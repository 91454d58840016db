// SPDX-License-Identifier: Apache-2.0

package goal

import (
	"bufio"
	"fmt"
	"io"
)

// Write writes the schedule in the form that [Parse] reads.
func (s *Schedule) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "num_ranks %d\n", len(s.Ranks))
	for r, ops := range s.Ranks {
		fmt.Fprintf(out, "rank %d {\n", r)
		for i, op := range ops {
			switch op.Kind {
			case Calc:
				fmt.Fprintf(out, "l%d: calc %d\n", i, op.Ns)
			case Send:
				fmt.Fprintf(out, "l%d: send %db to %d tag %d\n", i, op.Bytes, op.Peer, op.Tag)
			case Recv:
				fmt.Fprintf(out, "l%d: recv %db from %d tag %d\n", i, op.Bytes, op.Peer, op.Tag)
			}
		}
		for i, op := range ops {
			for _, k := range op.After {
				fmt.Fprintf(out, "l%d requires l%d\n", i, k)
			}
			for _, k := range op.Beside {
				fmt.Fprintf(out, "l%d irequires l%d\n", i, k)
			}
		}
		fmt.Fprintln(out, "}")
	}
	return out.Flush()
}
