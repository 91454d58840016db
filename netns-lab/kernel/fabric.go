// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netns"

	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
	"github.com/pcn-linux/pcn/tc"
)

// fabric is a built plan: namespaces, links, qdiscs and programs.
type fabric struct {
	plan      *plan
	algorithm algorithm
	clock     clock
	options   npecn.Options
	reg       *registry
	nodes     namespaces
	links     *links
	linux     linuxNetwork
	roots     hostRoots
	programs
}

// newFabric builds the whole fabric, or leaves nothing behind.
func newFabric(p *plan, scheme string) (*fabric, error) {
	a, err := algorithmOf(p.exp, scheme)
	if err != nil {
		return nil, err
	}
	f := describeFabric(p, a)
	if f.linux, err = newLinuxNetwork(p); err != nil {
		return nil, err
	}
	if err := f.build(f.steps()...); err != nil {
		return nil, err
	}
	return f, nil
}

// describeFabric returns a fabric without building it.
func describeFabric(p *plan, a algorithm) *fabric {
	f := &fabric{
		plan: p, algorithm: a, clock: clock{p.exp.Dilation.Shift}, options: p.qdiscOptions(a),
	}
	f.roots.fabric = f
	return f
}

func (f *fabric) steps() []func() error {
	return append(append([]func() error{f.loadQdisc}, f.stepsWithoutQdisc()...), f.attachQdiscs,
		f.startLinux)
}

func (f *fabric) stepsWithoutQdisc() []func() error {
	return []func() error{
		f.createNamespaces, f.loadPrograms, f.createLinks, f.createStages, f.configureHosts,
		f.configureRouters, f.attachPrograms,
	}
}

// build claims the machine and takes the steps. If a step fails, it removes what they made.
func (f *fabric) build(steps ...func() error) (err error) {
	if f.reg, err = openRegistry(); err != nil {
		return err
	}
	err = f.reg.expedite(func() error {
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, f.close())
	}
	return nil
}

func (f *fabric) loadQdisc() (err error) {
	f.qdisc, err = npecn.Load(f.options)
	return err
}

func (f *fabric) createNamespaces() (err error) {
	names := make([]string, len(f.plan.nodes))
	for i, n := range f.plan.nodes {
		names[i] = n.name
	}
	if err := f.reg.claim(names); err != nil {
		return err
	}
	if err := allowFiles(f.files()); err != nil {
		return err
	}
	f.nodes, err = newNamespaces(names)
	return err
}

// files returns the number of files that a fabric has open: for each node a namespace and two
// sockets, and for each port its programs' links.
func (f *fabric) files() int {
	const programsOfPort = 8
	return 3*len(f.plan.nodes) + programsOfPort*len(f.plan.ports)
}

func (f *fabric) loadPrograms() error {
	if err := f.loadDatapath(f.plan, f.algorithm, f.clock); err != nil {
		return err
	}
	return f.loadControl()
}

func (f *fabric) createLinks() error {
	f.links = &links{plan: f.plan, nodes: f.nodes, ifindex: make([]int, len(f.plan.ports))}
	return f.links.create()
}

func (f *fabric) configureHosts() error {
	if err := f.reg.configureMachine(); err != nil {
		return fmt.Errorf("change the machine's settings: %w", err)
	}
	if f.plan.exp.OnlyPrograms() {
		if err := f.reg.allowControls(); err != nil {
			return fmt.Errorf("let hosts use all congestion controls: %w", err)
		}
	}
	s := hostSettingsOf(f.plan, f.algorithm, f.clock)
	return parallel(f.plan.hosts, func(i int) error {
		n := f.plan.nodes[i]
		port := n.ports[0]
		err := s.apply(f.nodes[i], f.links.ifindex[port], f.plan.device(port), n.addr)
		if err != nil {
			return fmt.Errorf("configure host %s: %w", n.name, err)
		}
		return nil
	})
}

// attachPrograms puts the programs on every port, and the routes into the switches.
func (f *fabric) attachPrograms() error {
	if err := parallel(len(f.nodes), func(i int) error {
		return f.nodes[i].do(func() error { return f.attachNode(i) })
	}); err != nil {
		return err
	}
	return f.setRoutes(f.plan.routes(), f.out)
}

// attachNode attaches the programs of a node's ports, from inside its namespace.
func (f *fabric) attachNode(i int) error {
	for _, id := range f.plan.nodes[i].ports {
		var err error
		if ifindex := f.links.ifindex[id]; f.plan.nodes[i].isHost {
			host := &f.plan.nodes[i]
			// any host may hear a CNM, and one that nobody takes in counts as lost
			hears := host.sends || f.algorithm.hearsCNMs()
			err = f.attachHostPort(ifindex, host.receives, hears)
		} else if f.linux.routers[i] {
			err = f.attachRouterPort(id)
		} else {
			err = f.switches.AddPort(netns.None(), ifindex, tc.FabricPort{
				ID: id, Node: uint32(i), FromHost: f.plan.fromHost(id), Seed: hashSeed(i),
			})
		}
		if err != nil {
			return fmt.Errorf("port %s: %w", f.plan.ports[id].name, err)
		}
	}
	return nil
}

func (f *fabric) attachQdiscs() error {
	return f.links.each(func(id uint32, n namespace, ifindex int) error {
		return npecn.Attach(n.nl, ifindex)
	})
}

// close removes everything, and gives the machine back last.
func (f *fabric) close() error {
	err := f.reg.expedite(func() error {
		return errors.Join(f.removeNamespaces(), f.programs.close())
	})
	if err := errors.Join(err, f.reg.restoreAll(), f.reg.unlock()); err != nil {
		return fmt.Errorf("remove the lab: %w", err)
	}
	return nil
}

// removeNamespaces returns when the kernel, which removes namespaces later, has removed their
// ports.
func (f *fabric) removeNamespaces() error {
	if err := errors.Join(f.nodes.close(), f.reg.clean()); err != nil {
		return err
	}
	return f.waitOrphaned()
}
