// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
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

// Names of components.
const (
	controlPrefix = "control_"
	cgroupPrefix  = "cgroup_"
	npName        = "np"
	rpName        = "rp"
	stampName     = "stamp"
	firstRTTName  = "first_rtt"
	synName       = "syn"
	wredName      = "wred"
)

// plan returns the components that a configuration asks for on this host, in the order of loading.
func (h *Host) plan(ctx context.Context, c *Config) ([]component, error) {
	lineBps, err := lineRate(c)
	if err != nil {
		return nil, err
	}
	rtt, err := h.roundTrip(ctx, c)
	if err != nil {
		return nil, err
	}
	if c, err = c.withPeriod(lineBps, rtt); err != nil {
		return nil, err
	}
	components, err := controlComponents(c, lineBps, rtt)
	if err != nil {
		return nil, err
	}
	for _, add := range []func() (*component, error){
		func() (*component, error) { return npComponent(c, rtt) },
		func() (*component, error) { return rpComponent(c, lineBps) },
		func() (*component, error) { return stampComponent(c) },
		func() (*component, error) { return firstRTTComponent(c) },
		func() (*component, error) { return synComponent(c) },
		func() (*component, error) { return wredComponent(c) },
	} {
		one, err := add()
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

// lineRate returns the configured line rate, or the speed that all interfaces have; 0 if no control
// needs it.
func lineRate(c *Config) (config.Rate, error) {
	usesLineRate := func(o Control) bool { return o.uses("line_rate") }
	isNeeded := slices.ContainsFunc(c.Controls.all, usesLineRate) || c.hasAutoPeriod()
	if c.LineRate != 0 || !isNeeded {
		return c.LineRate, nil
	}
	var rate config.Rate
	var of string
	for _, name := range c.interfaceNames() {
		speed, err := linkSpeed(name)
		if err != nil {
			return 0, err
		}
		if rate != 0 && speed != rate {
			return 0, fmt.Errorf("%s has %s and %s %s: say which with line_rate", of, rate, name,
				speed)
		}
		rate, of = speed, name
	}
	if rate == 0 {
		return 0,
			errors.New("no interface is named whose link speed could be the line rate: add " +
				"line_rate: 10Gbps")
	}
	return rate, nil
}

func (c *Config) interfaceNames() []string {
	var names []string
	if c.NP != nil {
		names = append(names, c.NP.Interfaces...)
	}
	if c.RP != nil {
		names = append(names, c.RP.Interfaces...)
	}
	if c.Stamp != nil {
		names = append(names, c.Stamp.Interfaces...)
	}
	if c.FirstRTT != nil {
		names = append(names, c.FirstRTT.Interfaces...)
	}
	if c.WRED != nil {
		names = append(names, c.WRED.Interfaces...)
	}
	if c.ECN != nil {
		names = append(names, c.ECN.Interfaces...)
	}
	return names
}

// linkSpeed returns the speed of an interface of the thread's network namespace, which /sys need
// not show.
func linkSpeed(name string) (config.Rate, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return 0, fmt.Errorf("read the link speed of interface %s: %w", name, err)
	}
	defer e.Close()
	link, err := e.GetLinkSettings(name)
	if err == nil && link.Speed != 0 && link.Speed != math.MaxUint32 {
		return config.Rate(link.Speed) * 1e6, nil
	}
	return 0, notReady{fmt.Errorf("the link speed of interface %s is not known: is it there, and "+
		"up? or add line_rate: 10Gbps", name)}
}

// roundTrip returns the configured round trip, or that measured to the same services earlier, or
// measures it now. It returns 0 if the configuration has neither rtt nor rtt_to.
func (h *Host) roundTrip(ctx context.Context, c *Config) (config.Duration, error) {
	if c.RTT != 0 || len(c.RTTTo) == 0 {
		return c.RTT, nil
	}
	to := strings.Join(c.RTTTo, ",")
	names, err := h.components()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		s, err := h.folder(name).state()
		if err != nil || s == nil || s.setting("rtt_to") != to {
			continue
		}
		if rtt, err := config.ParseDuration(s.setting("rtt")); err == nil && rtt > 0 {
			return rtt, nil
		}
	}
	return MeasureRTT(ctx, c.RTTTo)
}

// MeasureRTT returns the largest round trip to the TCP services HOST:PORT. A service's round trip
// is the shortest of some handshakes.
func MeasureRTT(ctx context.Context, to []string) (config.Duration, error) {
	const handshakes = 5
	var largest time.Duration
	for _, service := range to {
		least := time.Duration(0)
		for range handshakes {
			rtt, err := handshake(ctx, service)
			if err != nil {
				return 0,
					notReady{fmt.Errorf("measure the round trip to %s: %w: is something listening "+
						"there? or add rtt: 50us", service, err)}
			}
			if least == 0 || rtt < least {
				least = rtt
			}
		}
		largest = max(largest, least)
	}
	return config.Duration(max(largest, time.Microsecond)), nil
}

// handshake opens a connection and returns the round trip that the kernel measured.
func handshake(ctx context.Context, service string) (time.Duration, error) {
	// one address after the other: goroutines would be in another network namespace
	dialer := net.Dialer{Timeout: 3 * time.Second, FallbackDelay: -1}
	c, err := dialer.DialContext(ctx, "tcp", service)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var info *unix.TCPInfo
	if controlErr := raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}); controlErr != nil {
		return 0, controlErr
	}
	if err != nil {
		return 0, err
	}
	return time.Duration(info.Rtt) * time.Microsecond, nil
}

// rttSettings returns the settings that record where the round trip comes from.
func rttSettings(c *Config, rtt config.Duration) []Setting {
	s := []Setting{{"rtt", rtt.String()}}
	if c.RTT == 0 && len(c.RTTTo) > 0 {
		s = append(s, Setting{"rtt_to", strings.Join(c.RTTTo, ",")})
	}
	return s
}

// controlComponents returns the components of the controls to register.
func controlComponents(c *Config, line config.Rate, rtt config.Duration) ([]component, error) {
	var all []component
	for _, control := range c.Controls.all {
		one, err := controlComponent(c, control, line, rtt)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func controlComponent(
	c *Config, control Control, line config.Rate, rtt config.Duration,
) (component, error) {
	name := control.Scheme.Control
	given, acks := withWindows(c, control, rtt)
	// A control that does not use the line rate has none here.
	network := c.network(cmp.Or(line, loader.MaxRateBps), rtt)
	values, problems := control.Scheme.Object.Resolve(given, network)
	if len(problems) > 0 {
		p := problems[0]
		return component{}, fmt.Errorf("control %s: %s: %w", name, p.Key, config.Bad(p.Msg, p.Hint))
	}
	network.LineRateBps = uint64(line)
	r := loader.Registration{
		Scheme: control.Scheme, Settings: given, Network: network,
		MaxFlows: uint32(control.MaxFlows), NetnsKeys: loader.HaveKernelContext() == nil,
	}
	settings := append(controlSettings(control, values, line), acks...)
	if values.Uses("base_rtt") {
		settings = append(settings, rttSettings(c, rtt)...)
	}
	return component{
		name:     controlPrefix + name,
		settings: settings,
		load: func(old map[string]*ebpf.Map, controls map[string]*loader.Control) (*object, error) {
			registered, err := loader.Register(r, loader.Unregistered(), loader.Reuse(old))
			if err != nil {
				return nil, err
			}
			controls[name] = registered
			return controlObject(registered)
		},
	}, nil
}

// controlSettings returns the parameters of a control as settings.
func controlSettings(control Control, values *scheme.Values, line config.Rate) []Setting {
	var settings []Setting
	if values.Uses("line_rate") {
		settings = append(settings, Setting{"line_rate", line.String()})
	}
	for _, p := range control.Scheme.Object.Params {
		if p.IsSender() {
			settings = append(settings, Setting{p.Key, values.Get(p.Key).String()})
		}
	}
	if control.hasFlowTable() {
		settings = append(settings, Setting{"max_flows", fmt.Sprint(control.MaxFlows)})
	}
	return settings
}

// withWindows gives a control the window T and the share of the notification points that it hears,
// or whose work it does itself when it counts marks in ACKs. It assumes that all hosts have the NP
// settings of this one.
func withWindows(c *Config, control Control, rtt config.Duration) (scheme.Settings, []Setting) {
	s := control.Settings
	t, share := rtt, config.Ratio(defaultShare)
	if c.NP != nil {
		t, share = cmp.Or(config.Duration(c.NP.T), rtt), c.NP.CongestedShare
	}
	if t == 0 || control.Scheme.Object.Param("T") == nil {
		return s, nil
	}
	s.Given = maps.Clone(s.Given)
	if s.Given == nil {
		s.Given = map[string]scheme.Value{}
	}
	s.Given["T"] = scheme.Value{Kind: scheme.KindTime, Number: float64(t)}
	s.Given["congested_share"] = scheme.Value{Kind: scheme.KindRatio, Number: float64(share)}
	if !control.setup().CountsACKs {
		return s, nil
	}
	settings := []Setting{{"T", t.String()}, {"congested_share", share.String()}}
	return s, append(settings, rttSettings(c, rtt)...)
}

func controlObject(c *loader.Control) (*object, error) {
	types, err := c.Types()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &object{
		fingerprint: c.Fingerprint(),
		maps:        c.Maps(),
		types:       types,
		close:       c.Close,
		attachments: []attachment{{
			pin: "registration",
			attach: func(linkIDs) (link.Link, error) {
				if err := registerSoon(c); err != nil {
					return nil, err
				}
				return c.Link(), nil
			},
			update: c.Replace,
			restore: func(l link.Link, old *pinned) error {
				return loader.UpdateStructOps(l, old.maps[loader.OperationsMap])
			},
		}},
	}, nil
}

// registerSoon registers a control and retries while the name is taken: the registration of a
// killed process disappears a moment later.
func registerSoon(c *loader.Control) error {
	const patience = 2 * time.Second
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := c.Register()
		if !errors.Is(err, unix.EEXIST) || time.Since(began) > patience {
			return err
		}
	}
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

// ErrNotReady reports that something is not there, such as an interface, that may still come while
// the machine boots.
var ErrNotReady = errors.New("not ready")

type notReady struct{ error }

func (notReady) Is(target error) bool { return target == ErrNotReady }
func (e notReady) Unwrap() error      { return e.error }

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

func npComponent(c *Config, rtt config.Duration) (*component, error) {
	if c.NP == nil {
		return nil, nil
	}
	n := *c.NP
	settings := []Setting{{"congested_share", n.CongestedShare.String()},
		{"max_flows", fmt.Sprint(n.MaxFlows)}}
	if n.T == 0 {
		n.T = Period(rtt)
		settings = append(settings, rttSettings(c, rtt)...)
	}
	settings = append([]Setting{{"T", n.T.String()}, {"idle", n.Idle.String()}}, settings...)
	var ports []uint16
	for _, p := range n.UDPPorts {
		ports = append(ports, uint16(p))
	}
	settings = append(settings, Setting{"udp_ports", strings.Trim(fmt.Sprint(n.UDPPorts), "[]")})
	params, err := c.npParams(n)
	if err != nil {
		return nil, fmt.Errorf("np: %w", err)
	}
	return tcComponent(npName, n.Interfaces, settings,
		func(old map[string]*ebpf.Map, _ map[string]*loader.Control) (tc.Object, error) {
			return tc.LoadHostNP(tc.HostNPOptions{
				TNs: uint64(n.T), CongestedShare: float64(n.CongestedShare),
				MaxFlows: uint32(n.MaxFlows),
				Idle:     time.Duration(n.Idle), UDPPorts: ports, Params: params,
				NetnsKeys: loader.HaveKernelContext() == nil,
			}, tc.Reuse(old))
		})
}

// npParams returns the parameters of PCN's notification point as C lays them out. What the file
// can't set has its default for hosts.
func (c *Config) npParams(n NP) ([]byte, error) {
	s, ok := scheme.Builtin().ByControl("pcn")
	if !ok {
		return nil, errors.New("there is no scheme pcn")
	}
	network := c.network(loader.MaxRateBps, 0)
	values, problems := s.Object.Resolve(scheme.Settings{Given: map[string]scheme.Value{
		"T":               {Kind: scheme.KindTime, Number: float64(n.T)},
		"congested_share": {Kind: scheme.KindRatio, Number: float64(n.CongestedShare)},
	}}, network)
	if len(problems) > 0 {
		p := problems[0]
		return nil, fmt.Errorf("%s: %w", p.Key, config.Bad(p.Msg, p.Hint))
	}
	return values.Bytes(scheme.NotificationVariable, network, false)
}

func rpComponent(c *Config, line config.Rate) (*component, error) {
	if c.RP == nil {
		return nil, nil
	}
	r := *c.RP
	hears := c.Controls.hears()
	network := c.network(cmp.Or(line, loader.MaxRateBps), 0)
	values, _ := hears.Scheme.Object.Resolve(hears.Settings, network)
	floorBps, err := hears.Scheme.MinRateBps(values, network)
	if err != nil {
		return nil, fmt.Errorf("rp: %w", err)
	}
	r.MinRate = cmp.Or(r.MinRate, config.Rate(floorBps))
	var prefixes []netip.Prefix
	for _, text := range r.Prefixes {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("rp: %w", err)
		}
		prefixes = append(prefixes, p)
	}
	settings := []Setting{
		{"prefixes", strings.Join(r.Prefixes, ",")}, {"cnp_interval", r.CNPInterval.String()},
		{"cnp_burst", fmt.Sprint(r.CNPBurst)},
		{"min_rate", r.MinRate.String()}, {"require_tag", fmt.Sprint(r.RequireTag)},
		{"tag_window", r.TagWindow.String()},
	}
	var rp *tc.RP
	allow := func() error {
		devices, err := devicesOf(r.Interfaces)
		if err != nil {
			return fmt.Errorf("rp: %w", err)
		}
		for _, device := range devices {
			if err := rp.Allow(device.Index, prefixes...); err != nil {
				return err
			}
		}
		return nil
	}
	one, err := tcComponent(rpName, r.Interfaces, settings, func(old map[string]*ebpf.Map,
		controls map[string]*loader.Control) (_ tc.Object, err error) {
		old = maps.Clone(old)
		// do not reuse them: the new rules are in new maps
		for _, rules := range []string{"rp_sources", "rp_interfaces"} {
			delete(old, rules)
		}
		rp, err = tc.LoadHostRP(controls[hears.Scheme.Control], tc.HostRPOptions{
			RequireTag: r.RequireTag, Window: time.Duration(r.TagWindow),
			CNPInterval: time.Duration(r.CNPInterval),
			CNPBurst:    int(r.CNPBurst), FloorBps: uint64(r.MinRate),
		}, tc.Reuse(old))
		if err != nil {
			return nil, err
		}
		return rp, allow()
	})
	if err != nil {
		return nil, err
	}
	// Flows may have cached the old rules until the links were updated.
	one.applied = allow
	return one, nil
}

func stampComponent(c *Config) (*component, error) {
	if c.Stamp == nil {
		return nil, nil
	}
	s := *c.Stamp
	return tcComponent(stampName, s.Interfaces, s.settings(),
		func(old map[string]*ebpf.Map, _ map[string]*loader.Control) (tc.Object, error) {
			return tc.LoadStamp(tc.StampOptions{DataDSCP: uint8(s.DataDSCP),
				ControlDSCP: uint8(s.ControlDSCP)}, tc.Reuse(old))
		})
}

func (s Stamp) settings() []Setting {
	return []Setting{{dataDSCPKey, fmt.Sprint(s.DataDSCP)},
		{controlDSCPKey, fmt.Sprint(s.ControlDSCP)}}
}

// Settings of stamp.
const (
	dataDSCPKey    = "data_dscp"
	controlDSCPKey = "control_dscp"
)

// classesOf returns the DSCPs of a stamp that runs, nil if they cannot be read.
func classesOf(settings []Setting) *classes {
	data, err := strconv.ParseUint(settingIn(settings, dataDSCPKey), 10, 8)
	control, err2 := strconv.ParseUint(settingIn(settings, controlDSCPKey), 10, 8)
	if err != nil || err2 != nil {
		return nil
	}
	return &classes{uint8(data), uint8(control)}
}

func firstRTTComponent(c *Config) (*component, error) {
	if c.FirstRTT == nil {
		return nil, nil
	}
	return tcComponent(firstRTTName, c.FirstRTT.Interfaces, nil,
		func(old map[string]*ebpf.Map, controls map[string]*loader.Control) (tc.Object, error) {
			return tc.LoadFirstRTT(controls[c.Controls.withFirstRTT().Scheme.Control],
				tc.Reuse(old))
		})
}

func synComponent(c *Config) (*component, error) {
	if c.ECN == nil || len(c.ECN.Interfaces) == 0 {
		return nil, nil
	}
	return tcComponent(synName, c.ECN.Interfaces, nil,
		func(old map[string]*ebpf.Map, _ map[string]*loader.Control) (tc.Object, error) {
			return tc.LoadPlainSYN(tc.Reuse(old))
		})
}

func wredComponent(c *Config) (*component, error) {
	if c.WRED == nil {
		return nil, nil
	}
	w := *c.WRED
	return tcComponent(wredName, w.Interfaces, w.settings(), func(
		old map[string]*ebpf.Map, _ map[string]*loader.Control,
	) (tc.Object, error) {
		return w.load(old)
	})
}

func (w *WRED) settings() []Setting {
	return []Setting{
		{"kmin", w.KMin.String()}, {"kmax", w.KMax.String()}, {"pmax", w.PMax.String()},
		{"k", w.K.String()},
	}
}

func (w *WRED) load(old map[string]*ebpf.Map) (tc.Object, error) {
	return tc.LoadWRED(tc.WREDOptions{
		KMinBytes: uint64(w.KMin), KMaxBytes: uint64(w.KMax), PMax: float64(w.PMax),
		WREDBytes: uint64(w.K),
	}, tc.Reuse(old))
}

// cgroupComponent returns the component of a cgroup, named by its inode, which is its id.
func cgroupComponent(g Cgroup) (*component, error) {
	var st unix.Stat_t
	if err := unix.Stat(g.Path, &st); err != nil {
		return nil, notReady{fmt.Errorf("cgroup %s: %w", g.Path, err)}
	}
	return &component{
		name:     fmt.Sprintf("%s%d", cgroupPrefix, st.Ino),
		settings: []Setting{{"path", g.Path}, {"control", g.Control}},
		load: func(_ map[string]*ebpf.Map, controls map[string]*loader.Control) (*object, error) {
			if controls[g.Control] == nil {
				if _, err := loader.KernelControl(g.Control); err != nil {
					return nil, fmt.Errorf("cgroup %s: %w", g.Path, err)
				}
			}
			return chooseObject(g)
		},
	}, nil
}

func chooseObject(g Cgroup) (*object, error) {
	spec, err := loadChoose()
	if err != nil {
		return nil, err
	}
	var name [16]byte
	copy(name[:], g.Control)
	if err := spec.Variables["control"].Set(name); err != nil {
		return nil, fmt.Errorf("cgroup %s: set the control: %w", g.Path, err)
	}
	fingerprint := loader.Fingerprint(spec)
	types, err := loader.MarshalTypes(spec)
	if err != nil {
		return nil, fmt.Errorf("cgroup %s: %w", g.Path, err)
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("load the program that chooses congestion controls: %w", err)
	}
	return &object{
		fingerprint: fingerprint, programs: coll.Programs, maps: coll.Maps, types: types,
		close: func() error { coll.Close(); return nil },
		attachments: []attachment{{
			pin: "choose",
			attach: func(linkIDs) (link.Link, error) {
				return link.AttachCgroup(link.CgroupOptions{Path: g.Path,
					Attach: ebpf.AttachCGroupSockOps, Program: coll.Programs["choose"]})
			},
			update: func(l link.Link) error { return l.Update(coll.Programs["choose"]) },
			restore: func(l link.Link,
				old *pinned) error {
				return l.Update(old.programs["choose"])
			},
		}},
	}, nil
}
