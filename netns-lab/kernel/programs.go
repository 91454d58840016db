// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/loader"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
	"github.com/pcn-linux/pcn/tc"
)

// programs holds the BPF objects in the kernel; nil for those that the scheme does not need.
type programs struct {
	qdisc    *npecn.Qdisc
	control  *loader.Control
	switches *tc.Fabric
	stamp    *tc.Stamp
	router   *tc.Router // nil where nothing is Linux's own
	arrive   *tc.Arrive
	np       *tc.NP
	rp       *tc.RP
	// firstRTT makes LDCP's packets of the first round trip not ECN-capable.
	firstRTT *tc.FirstRTT
}

// loadDatapath loads the programs that every scheme needs: forwarding at switches, stamping and
// counting at hosts.
func (p *programs) loadDatapath(plan *plan, a algorithm, c clock) (err error) {
	unsampled := markers[a.Marker] != npecn.QCN
	if p.switches, err = tc.LoadFabric(tc.FabricOptions{
		HostBase: network.HostAddr(0), Hosts: uint32(plan.targets()), AnyIP: plan.hasPrograms(),
		Nodes: uint32(len(plan.nodes)), Ports: uint32(len(plan.ports)), Unsampled: unsampled,
		Partitions: len(plan.exp.Partitions) > 0,
	}); err != nil {
		return err
	}
	if p.stamp, err = tc.LoadStamp(tc.StampOptions{
		DataDSCP: roceDSCP, ControlDSCP: controlDSCP, DataClasses: plan.exp.DataClasses(),
		AddressMAC: a.hearsCNMs(), ECT1: a.TCD, OnlyPlain: !plan.ipv6(),
		Fragments:  plan.hasPrograms(),
		AcksAsData: plan.exp.Transport.Acks == experiment.ReplyData,
		CNPsAsData: plan.exp.Transport.CNP == experiment.ReplyData,
	}); err != nil {
		return err
	}
	arrive := tc.ArriveOptions{
		SinkPort: sinkPort, MaxFlows: plan.flows(), DilationShift: uint32(c.shift),
		Unsampled: unsampled,
	}
	if p.qdisc != nil {
		arrive.SampleNs, arrive.Events = uint64(plan.exp.Sample), p.qdisc.Events()
		arrive.HostArrivals = p.qdisc.HostArrivals()
	}
	p.arrive, err = tc.LoadArrive(arrive)
	return err
}

// setRoutes tells every switch its devices towards every host and router: routes[switch
// node][host].
func (p *programs) setRoutes(routes map[int][][]uint32, device func(port uint32) int) error {
	for n, toHost := range routes {
		for host, ports := range toHost {
			if len(ports) == 0 {
				continue // failed links may cut a switch off: a port whose link is down loses all
			}
			out := make([]int, len(ports))
			for i, id := range ports {
				out[i] = device(id)
			}
			if err := p.switches.SetRoute(uint32(n), uint32(host), out...); err != nil {
				return err
			}
		}
	}
	return nil
}

// attachHostPort attaches the programs of a port in the thread's namespace: NP where flows come in,
// RP where notifications do.
func (p *programs) attachHostPort(ifindex int, receives, hears bool) error {
	here := netns.None()
	if err := p.arrive.Attach(here, ifindex); err != nil {
		return err
	}
	if p.np != nil && receives {
		if err := p.np.Attach(here, ifindex); err != nil {
			return err
		}
	}
	if p.rp != nil && hears {
		if err := p.rp.Attach(here, ifindex); err != nil {
			return err
		}
	}
	if p.firstRTT != nil {
		if err := p.firstRTT.Attach(here, ifindex); err != nil {
			return err
		}
	}
	return p.stamp.Attach(here, ifindex)
}

// waitOrphaned waits until the ports that programs were attached to are gone.
func (p *programs) waitOrphaned() error {
	const patience = time.Minute
	for began := time.Now(); time.Since(began) < patience; time.Sleep(time.Millisecond) {
		if gone, err := p.orphaned(); gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("ports are still there %s after their namespaces: "+
		"does another process use one of these (lsns -t net)?", patience)
}

func (p *programs) orphaned() (bool, error) {
	if p.switches != nil {
		if gone, err := p.switches.Orphaned(); !gone || err != nil {
			return false, err
		}
	}
	if p.router != nil {
		if gone, err := p.router.Orphaned(); !gone || err != nil {
			return false, err
		}
	}
	if p.arrive != nil {
		return p.arrive.Orphaned()
	}
	return true, nil
}

// close unloads the programs: those on ports first, the qdisc whose maps they share last.
func (p *programs) close() error {
	return errors.Join(
		closeLoaded(p.firstRTT), closeLoaded(p.rp), closeLoaded(p.np), closeLoaded(p.arrive),
		closeLoaded(p.stamp), closeLoaded(p.router), closeLoaded(p.switches),
		closeLoaded(p.control), closeLoaded(p.qdisc))
}

func closeLoaded[T any, P interface {
	*T
	Close() error
}](object P) error {
	if object == nil {
		return nil
	}
	return object.Close()
}

// cnms counts the CNMs of QCN that switches and hosts sent, or failed to send.
func (p *programs) cnms() (tc.CNMCounts, error) {
	switches, err := p.switches.CNMs()
	if err != nil {
		return tc.CNMCounts{}, err
	}
	hosts, err := p.arrive.CNMs()
	return tc.CNMCounts{Sent: switches.Sent + hosts.Sent, Lost: switches.Lost + hosts.Lost}, err
}

// checkEvents fails if the series miss an event.
func (p *programs) checkEvents() error {
	ports, err := p.qdisc.EventsLost()
	if err != nil {
		return err
	}
	flows, err := p.arrive.EventsLost()
	if err != nil {
		return err
	}
	if ports+flows > 0 {
		return fmt.Errorf("%d events found the ring buffer full: "+
			"the run is too dense for it (raise `sample`)", ports+flows)
	}
	return nil
}

// changeRates gives the ports their future rates.
func (p *programs) changeRates(plan *plan, t0Ns uint64) error {
	for id := uint32(1); id < uint32(len(plan.ports)); id++ {
		if err := p.qdisc.ChangeRates(id, plan.rateChanges(id, t0Ns)); err != nil {
			return err
		}
	}
	return nil
}
