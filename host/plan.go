// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

// component is one part of PCN on the host, with its own folder of pins.
type component struct {
	name     string
	settings []Setting
	// interfaces are where it is attached; none for a component of the machine
	interfaces []string
	// load loads the component. It reuses maps of an earlier one and the controls that are loaded
	// already.
	load func(old map[string]*ebpf.Map, controls map[string]*loader.Control) (*object, error)
	// applied, which may be nil, is called after the object has replaced an earlier one.
	applied func() error
}

// folderIn returns the component's folder when it belongs to a namespace.
func (c component) folderIn(n Namespace) string {
	if isMachineWide(c.name) {
		return c.name
	}
	return n.folderOf(c.name)
}

// object is a loaded component that is not yet attached.
type object struct {
	fingerprint string
	programs    map[string]*ebpf.Program
	maps        map[string]*ebpf.Map
	types       []byte // of the maps
	attachments []attachment
	close       func() error
}

// attachment is one link of a component.
type attachment struct {
	pin     string // its name
	device  int    // index of the interface; 0 for those at none
	program string // at the interface
	attach  func(ours linkIDs) (link.Link, error)
	update  func(link.Link) error          // to the object's
	restore func(link.Link, *pinned) error // to what was pinned
}

// isAt reports whether a link is where the attachment belongs: at its interface, in this network
// namespace, and before all programs of others.
func (a attachment) isAt(l link.Link, ours linkIDs) bool {
	if a.device == 0 {
		return true
	}
	p, ok := tcxOf(l)
	if !ok || p.device != a.device {
		return false
	}
	c, isHere := p.chain()
	return isHere && len(c.strangers(p.id, ours)) == 0
}

// The name of a pin at an interface is INTERFACE:PROGRAM. Interfaces have no colon in their names;
// the BPF file system takes no dot. Earlier versions wrote INDEX_PROGRAM.
const pinMark = ":"

var (
	pinEscapes   = strings.NewReplacer("%", "%25", ".", "%2e")
	pinUnescapes = strings.NewReplacer("%25", "%", "%2e", ".")
)

func pinAt(device, program string) string {
	return pinEscapes.Replace(device) + pinMark + program
}

// programOf returns the program of a pin at an interface.
func programOf(pin string) string {
	if _, program, ok := strings.Cut(pin, pinMark); ok {
		return program
	}
	_, program, _ := strings.Cut(pin, "_")
	return program
}

// plan returns the components that a configuration asks for on this host, in the order of loading.
func (h *Host) plan(ctx context.Context, c *Config) ([]component, error) {
	lineRate, err := lineRate(c)
	if err != nil {
		return nil, err
	}
	rtt, err := h.roundTrip(ctx, c)
	if err != nil {
		return nil, err
	}
	if c, err = c.withPeriod(lineRate, rtt); err != nil {
		return nil, err
	}
	n := measured{lineRate, rtt}
	components, err := controlComponents(c, n)
	if err != nil {
		return nil, err
	}
	for _, p := range c.parts() {
		one, err := p.plan(c, n)
		if err != nil {
			return nil, err
		}
		if one != nil {
			components = append(components, *one)
		}
	}
	for _, g := range c.Cgroups {
		one, err := cgroupComponent(g)
		if err != nil {
			return nil, err
		}
		components = append(components, *one)
	}
	return components, nil
}

// tcComponent returns a component of tc programs at interfaces.
func tcComponent(name string, interfaces []string, settings []Setting,
	load func(old map[string]*ebpf.Map, controls map[string]*loader.Control) (tc.Object,
		error)) (*component, error) {
	return &component{
		name:       name,
		settings:   append([]Setting{{"interfaces", strings.Join(interfaces, ",")}}, settings...),
		interfaces: interfaces,
		load: func(old map[string]*ebpf.Map, controls map[string]*loader.Control) (*object, error) {
			devices, err := devicesOf(interfaces)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			o, err := load(old, controls)
			if err != nil {
				return nil, err
			}
			return tcObject(o, devices)
		},
	}, nil
}

func devicesOf(interfaces []string) ([]*net.Interface, error) {
	var devices []*net.Interface
	for _, name := range interfaces {
		device, err := net.InterfaceByName(name)
		if err != nil {
			return nil, notReady{fmt.Errorf("interface %s: %w: see ip link", name, err)}
		}
		devices = append(devices, device)
	}
	return devices, nil
}

func tcObject(o tc.Object, devices []*net.Interface) (*object, error) {
	types, err := o.Types()
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	out := &object{fingerprint: o.Fingerprint(), programs: o.Programs(), maps: o.Maps(),
		types: types, close: o.Close}
	if flows := o.Maps()["flows"]; flows != nil { // a control's
		out.fingerprint += mapID(flows)
	}
	for _, device := range devices {
		for _, p := range o.Places() {
			pin := pinAt(device.Name, p.Program)
			out.attachments = append(out.attachments, tcAttachment(pin, o, device.Index, p))
		}
	}
	return out, nil
}

// tcAttachment returns the attachment of one of the object's programs at a device.
func tcAttachment(pin string, o interface {
	Programs() map[string]*ebpf.Program
}, device int,
	p tc.Place) attachment {
	return attachment{
		pin:     pin,
		device:  device,
		program: p.Program,
		attach: func(ours linkIDs) (link.Link, error) {
			c, err := chainAt(device, p.Where)
			if err != nil {
				return nil, err
			}
			l, err := link.AttachTCX(link.TCXOptions{
				Interface: device, Program: o.Programs()[p.Program], Attach: p.Where,
				Anchor: c.anchor(p.Anchor, ours),
			})
			if err != nil && loader.HaveTCX() != nil {
				return nil, loader.HaveTCX()
			}
			return l, err
		},
		update: func(l link.Link) error { return l.Update(o.Programs()[p.Program]) },
		restore: func(l link.Link, old *pinned) error {
			return l.Update(old.programs[p.Program])
		},
	}
}

func mapID(m *ebpf.Map) string {
	info, err := m.Info()
	if err != nil {
		return ""
	}
	id, _ := info.ID()
	return fmt.Sprintf(" with map %d", id)
}
