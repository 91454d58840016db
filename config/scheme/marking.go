// SPDX-License-Identifier: Apache-2.0

package scheme

// Marking is a way of switches to mark packets: its name in papers, and what it is in one line.
type Marking struct{ Name, Title string }

// What ways to mark are.
const (
	TCDTitle = "ternary congestion detection: switches mark only where a port is congested, and " +
		"say undetermined (UE) where PAUSE hides whether it is"
	NPECNTitle = "PCN's switches mark packets that congestion delays, not those that PAUSE delays"
	FECNTitle  = "InfiniBand's switches mark packets that leave a queue over a threshold behind"
)

// Markings are the ways to mark that readers of reports may not know.
var Markings = []Marking{{"TCD", TCDTitle}, {"NP-ECN", NPECNTitle}, {"FECN", FECNTitle}}
