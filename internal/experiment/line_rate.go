// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"

	"github.com/pcn-linux/pcn/internal/network"
)

// HostRate returns the line rate of a host's flows: the rate of its own link, of the fastest if it
// has several. For a name that is no host it is the rate of the topology.
func (e *Experiment) HostRate(host string) Rate {
	if rate, ok := e.hostRates[host]; ok {
		return rate
	}
	return e.Topology.Rate
}

// hostRates returns the rate of the fastest link of each host.
func hostRates(n *network.Network) map[string]Rate {
	rates := make(map[string]Rate, len(n.Hosts))
	for _, host := range n.Hosts {
		rates[host] = 0
	}
	// a link that failed still is what the host's adapter can do
	for _, l := range slices.Concat(n.Links, n.Failed) {
		for _, end := range []string{l.A, l.B} {
			if rate, ok := rates[end]; ok {
				rates[end] = max(rate, Rate(l.RateBps))
			}
		}
	}
	return rates
}

// limitTo limits a flow to a line rate, which are also its rates if it has none.
func (f *Flow) limitTo(line Rate) {
	if f.LimitRate == 0 || f.LimitRate > line {
		f.LimitRate = line
	}
	if f.InitialRate == 0 || f.InitialRate > f.LimitRate {
		f.InitialRate = f.LimitRate
	}
}

// fastest returns the highest line rate of the hosts.
func (e *Experiment) fastest(hosts []string) Rate {
	var rate Rate
	for _, host := range hosts {
		rate = max(rate, e.HostRate(host))
	}
	return rate
}

// chooseReference makes the rate of a topology out of a file that of its fastest host with traffic:
// a host without any must not change what the others do.
func (d *decoder) chooseReference(e *Experiment) {
	if e.Topology.Imported == nil {
		return
	}
	var rate Rate
	e.EachPath(func(from, to string) {
		rate = max(rate, e.HostRate(from), e.HostRate(to))
	})
	for _, s := range e.specs { // by chance some of their hosts may have no flow
		rate = max(rate, e.fastest(s.Senders), e.fastest(s.Receivers))
	}
	if rate != 0 {
		e.Topology.Rate = rate
	}
}

// senderRates returns the line rates of hosts that send, the topology's first.
func (e *Experiment) senderRates() []Rate {
	rates := []Rate{e.Topology.Rate}
	for _, f := range e.Flows {
		if rate := e.HostRate(f.From); !slices.Contains(rates, rate) {
			rates = append(rates, rate)
		}
	}
	return rates
}

// checkSenders fails for values of a scheme that are out of range at the line rate of a host that
// sends, and not at the topology's.
func (d *decoder) checkSenders(e *Experiment, section string) {
	for _, rate := range e.senderRates()[1:] {
		n := e.network()
		n.LineRateBps = uint64(rate)
		_, problems := e.parameters.objects[section].Resolve(e.parameters.settings[section], n)
		for _, p := range problems {
			d.fail(section+"."+p.Key, fmt.Sprintf("%s for a host at %s", p.Msg, rate), p.Hint)
		}
		if len(problems) > 0 {
			return
		}
	}
}
