// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"fmt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
)

// marker is how switches tell of congestion. Either function may be nil.
type marker struct {
	share  func(p *port, left float64) float64                 // of what leaves that is marked
	notify func(m *model, p *port, out []amount, left float64) // tells senders
}

func newMarker(e *experiment.Experiment, s scheme.Scheme) (marker, error) {
	switch rule := e.Setup(s).Marker; rule {
	case scheme.None:
		return marker{}, nil
	case "npecn":
		return marker{share: npecn}, nil
	case "red":
		r, _ := e.MarkingOf(s.Name)
		return marker{share: red(float64(r.KMin), float64(r.KMax), float64(r.PMax))}, nil
	case "qcn":
		return marker{notify: newQCNPoint(e.MarkingValues(s)).notify}, nil
	default:
		return marker{}, fmt.Errorf("scheme %s: marking by %s has no fluid model: run it with "+
			"`--engine sim`", s.Name, rule)
	}
}

// npecn is the congestion indicator of PCN, App. A, eq. (4), with PN of Fig. 7 in bytes: what stood
// in the queue at a RESUME is not marked, and then all is while the queue is not empty.
func npecn(p *port, left float64) float64 {
	spared := min(p.unmarked, left)
	p.unmarked -= spared
	if p.length == 0 {
		return 0
	}
	return 1 - spared/left
}

// red is RED on the instantaneous queue: see bpf/algo/red.h.
func red(kmin, kmax, pmax float64) func(p *port, left float64) float64 {
	return func(p *port, _ float64) float64 {
		switch q := p.length / p.copies; {
		case q > kmax:
			return 1
		case q <= kmin:
			return 0
		default:
			return pmax * (q - kmin) / (kmax - kmin)
		}
	}
}
