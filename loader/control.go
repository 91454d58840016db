// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
)

// Limits within which the BPF code's arithmetic is proven not to overflow.
const (
	MaxDilationShift = 20
	MaxRateBps       = 800_000_000_000

	// MinSendRateBps is the least rate that a host may have: RecRate is in units of 1 Mbit/s.
	MinSendRateBps = 1_000_000

	minBaseRTTNs = 1000
	maxBaseRTTNs = 1_000_000_000
)

// Control is a congestion control registered with the kernel.
type Control struct {
	scheme    scheme.Scheme
	variables map[string]any // of the object, by name
	hears     string

	coll   *ebpf.Collection
	ops    string // name of the map of its operations
	link   link.Link
	layout *flowLayout // nil if it keeps no flow table
	flows  *ebpf.Map
	limits limits

	fingerprint func() string // nil without an object
	types       func() ([]byte, error)
	// registered without a link (before 6.4): it outlives the process unless Close is called
	linkless bool
}

// limits of a flow's rate.
type limits struct{ minBps, lineBps uint64 }

// Name returns the name by which sockets select the control.
func (c *Control) Name() string { return c.scheme.Control }

// Scheme returns the scheme whose senders it controls.
func (c *Control) Scheme() scheme.Scheme { return c.scheme }

// Variables returns the values of the object's variables, for programs of the same object that are
// loaded beside the control.
func (c *Control) Variables() map[string]any { return c.variables }

// Hears returns the messages that the control's reaction point obeys: cnp, cnm or [scheme.None].
func (c *Control) Hears() string { return cmp.Or(c.hears, scheme.None) }

// Close unregisters the control, unless its link is pinned. Sockets that use it keep it until they
// end.
func (c *Control) Close() error {
	if c.coll == nil {
		return nil // owned by the kernel or another process
	}
	defer c.coll.Close()
	if c.linkless {
		if err := c.coll.Maps[c.ops].Delete(uint32(0)); err != nil {
			return fmt.Errorf("unregister congestion control %s: %w", c.Name(), err)
		}
		return nil
	}
	if c.link == nil {
		return nil // it is not registered
	}
	if err := c.link.Close(); err != nil {
		return fmt.Errorf("unregister congestion control %s: %w", c.Name(), err)
	}
	return nil
}

// Registration names the control to register and its parameters.
type Registration struct {
	// Scheme is the control's scheme, from a [scheme.Catalogue].
	Scheme scheme.Scheme
	// Settings hold the parameters that differ from their defaults.
	Settings scheme.Settings
	// Network is what defaults depend on. Flows start at its line rate, 1 to MaxRateBps.
	Network scheme.Network
	// DilationShift slows the papers' clock: 2^shift ns of the kernel are 1 ns of theirs. It is 0
	// on a real host.
	DilationShift uint32
	// MaxFlows is the size of the flow table; 0: 65536.
	MaxFlows uint32
	// NetnsKeys tells flows of different network namespaces apart that have the same addresses and
	// ports. It needs [HaveKernelContext].
	NetnsKeys bool
}

// Register registers the congestion control of a scheme. For one that is built into Linux it only
// checks that the kernel has it. The error wraps [ErrNotSupported] if this kernel can't run it.
func Register(r Registration, options ...Option) (*Control, error) {
	if r.Scheme.Object == nil {
		return KernelControl(r.Scheme.Control)
	}
	d := definition{Registration: r}
	for _, option := range options {
		option(&d)
	}
	c, err := d.load()
	if err != nil {
		return nil, fmt.Errorf("congestion control %s: %w", r.Scheme.Control, err)
	}
	if d.unregistered {
		return c, nil
	}
	if err := c.Register(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// definition joins a registration and its options.
type definition struct {
	Registration
	reuse        map[string]*ebpf.Map // flow table and counters to use; nil makes new ones
	unregistered bool
}

// Names in objects (bpf/include).
const (
	flowsMap      = "flows"
	shiftVariable = "dilation_shift"
	tcdVariable   = "tcd"
	setRate       = scheme.SetRate

	onHostVariable = "on_host" // bpf/include/point.h
	countsMap      = "control_counts"
	minTSOSegs     = "tcp_congestion_ops:min_tso_segs" // what the program is for

	// NetnsKeysVariable says whether keys of flows have the network namespace (bpf/include/flow.h).
	NetnsKeysVariable = "netns_keys"
)

func (d definition) check() error {
	if err := d.Scheme.OnlySimulated(); err != nil {
		return err
	}
	if n := d.Network.LineRateBps; n > MaxRateBps {
		return lineRateError(n)
	}
	if d.DilationShift > MaxDilationShift {
		return fmt.Errorf("dilation shift %d: want 0 to %d", d.DilationShift, MaxDilationShift)
	}
	return nil
}

func lineRateError(bps uint64) error {
	return fmt.Errorf("line rate %d bit/s: want 1 to %d bit/s", bps, uint64(MaxRateBps))
}

// checkUsed checks those properties of the network that the sender uses with these values.
func (d definition) checkUsed(v *scheme.Values) error {
	if v.Uses("line_rate") && d.Network.LineRateBps == 0 {
		return lineRateError(0)
	}
	if n := d.Network.BaseRTTNs; v.Uses("base_rtt") && (n < minBaseRTTNs || n > maxBaseRTTNs) {
		return fmt.Errorf("base RTT %d ns: want %d to %d ns", n, minBaseRTTNs, maxBaseRTTNs)
	}
	return nil
}

// values returns the object's variables and the parameters that they come from.
func (d definition) values() (map[string]any, *scheme.Values, error) {
	object, network := d.Scheme.Object, d.Network
	if network.LineRateBps == 0 {
		network.LineRateBps = MaxRateBps // checkUsed fails if the sender uses it
	}
	values, problems := object.Resolve(d.Settings, network)
	var errs []error
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s: %w", p.Key, config.Bad(p.Msg, p.Hint)))
	}
	if len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	if err := d.checkUsed(values); err != nil {
		return nil, nil, err
	}
	variables := map[string]any{shiftVariable: d.DilationShift}
	for _, name := range object.Variables() {
		value, err := values.Bytes(name, network, d.Scheme.TCD)
		if err != nil {
			return nil, nil, err
		}
		variables[name] = value
	}
	variables[tcdVariable] = d.Scheme.TCD
	variables[NetnsKeysVariable] = d.NetnsKeys
	variables[onHostVariable] = d.Network.Host
	return variables, values, nil
}

// SetVariables sets an object's variables by name. It ignores names that the object lacks.
func SetVariables(spec *ebpf.CollectionSpec, variables map[string]any) error {
	for name, value := range variables {
		v := spec.Variables[name]
		if v == nil {
			continue
		}
		if err := v.Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// load loads the control into the kernel without the object's tc programs.
func (d definition) load() (*Control, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	variables, values, err := d.values()
	if err != nil {
		return nil, err
	}
	spec, err := d.Scheme.Object.Spec()
	if err != nil {
		return nil, err
	}
	if err := SetVariables(spec, variables); err != nil {
		return nil, err
	}
	c := &Control{
		scheme: d.Scheme, variables: variables,
		hears: d.Scheme.Setup(values).Hears, linkless: HaveStructOpsLink() != nil,
	}
	if d.Scheme.Sender == scheme.SenderRate {
		c.limits.lineBps = d.Network.LineRateBps
		if c.limits.minBps, err = d.Scheme.MinRateBps(values, d.Network); err != nil {
			return nil, err
		}
	}
	if !d.Scheme.LimitsBursts(values) {
		maps.DeleteFunc(spec.Programs, func(_ string, p *ebpf.ProgramSpec) bool {
			return p.AttachTo == minTSOSegs
		})
	}
	if err := d.prepare(spec, c); err != nil {
		return nil, err
	}
	return c, d.create(spec, c)
}

// Prune removes all programs that are not wanted from an object, and the maps that only these use.
func Prune(spec *ebpf.CollectionSpec, wanted func(*ebpf.ProgramSpec) bool) {
	used := map[string]bool{}
	operations := false
	for name, p := range spec.Programs {
		if !wanted(p) {
			delete(spec.Programs, name)
			continue
		}
		operations = operations || p.Type == ebpf.StructOps
		for _, ins := range p.Instructions {
			if ins.IsLoadFromMap() {
				used[ins.Reference()] = true
			}
		}
	}
	for name, m := range spec.Maps {
		if keep := used[name] || m.Type == ebpf.StructOpsMap && operations; !keep {
			delete(spec.Maps, name)
		}
	}
	for name, v := range spec.Variables {
		if spec.Maps[v.SectionName] == nil {
			delete(spec.Variables, name)
		}
	}
}

// prepare adapts the object to this kernel and this registration.
func (d definition) prepare(spec *ebpf.CollectionSpec, c *Control) error {
	Prune(spec, func(p *ebpf.ProgramSpec) bool {
		return p.Type == ebpf.StructOps ||
			p.Name == setRate
	})
	ops, err := scheme.Operations(spec)
	if err != nil {
		return err
	}
	c.ops = ops.Name
	// The name is the scheme's: callers may register an object under another one.
	var flags byte
	if d.Scheme.TCD {
		flags = flagNeedsECN
	}
	if err := setOperations(ops, d.Scheme.Control, flags); err != nil {
		return err
	}
	if c.linkless {
		ops.Flags &^= unix.BPF_F_LINK
	}
	if d.MaxFlows != 0 && spec.Maps[flowsMap] != nil {
		spec.Maps[flowsMap].MaxEntries = d.MaxFlows
	}
	if c.layout, err = layoutOf(d.Scheme.Object, spec.Maps[flowsMap]); err != nil {
		return err
	}
	chooseHost(spec, d.Network.Host)
	return chooseCongControl(spec)
}

func (d definition) create(spec *ebpf.CollectionSpec, c *Control) (err error) {
	replace := map[string]*ebpf.Map{}
	for _, name := range []string{flowsMap, countsMap} {
		old, m := d.reuse[name], spec.Maps[name]
		if old != nil && m != nil && m.Compatible(old) == nil {
			replace[name] = old
		}
	}
	// slow, and no lab asks for it
	c.fingerprint = sync.OnceValue(func() string { return Fingerprint(spec) })
	c.types = sync.OnceValues(func() ([]byte, error) { return MarshalTypes(spec) })
	c.coll, err = ebpf.NewCollectionWithOptions(spec,
		ebpf.CollectionOptions{MapReplacements: replace, Cache: KernelTypes()})
	if c.linkless && errors.Is(err, unix.EEXIST) {
		return notRegistered(c.Name(), err)
	}
	if err != nil {
		return fmt.Errorf("load: %w", explain(err, HaveTCPStructOps))
	}
	c.flows = c.coll.Maps[flowsMap]
	return nil
}

// flagNeedsECN is TCP_CONG_NEEDS_ECN of tcp_congestion_ops.flags.
const flagNeedsECN = 2

// setOperations sets the name of a tcp_congestion_ops and adds flags.
func setOperations(ops *ebpf.MapSpec, name string, flags byte) error {
	value, ok := ops.Contents[0].Value.([]byte)
	layout, isStruct := btf.As[*btf.Struct](ops.Value)
	if !ok || !isStruct {
		return fmt.Errorf("map %s is not a struct_ops map", ops.Name)
	}
	for _, m := range layout.Members {
		field := value[m.Offset.Bytes():]
		switch m.Name {
		case "name":
			size, err := btf.Sizeof(m.Type)
			if err != nil || len(name) >= size {
				return fmt.Errorf("control name %q has %d bytes: want fewer than %d", name,
					len(name), size)
			}
			clear(field[:size])
			copy(field, name)
		case "flags":
			field[0] |= flags // little endian
		}
	}
	return nil
}

// Register registers a control that was loaded with [Unregistered]. Kernels before 6.4 have no
// links and register a control when it is loaded.
func (c *Control) Register() error {
	if c.linkless {
		return nil
	}
	l, err := link.AttachStructOps(link.StructOpsOptions{Map: c.coll.Maps[c.ops]})
	if err != nil {
		return notRegistered(c.Name(), explain(err, HaveTCPStructOps))
	}
	c.link = l
	return nil
}

func notRegistered(name string, err error) error {
	return fmt.Errorf("register congestion control %s (is the name taken? see "+
		"net.ipv4.tcp_available_congestion_control): %w",
		name, err)
}

// hostSuffix ends the name of a program that, on hosts, takes the place of the one without it. It
// does the same at less cost. Experiments keep the other: a program's instructions are part of the
// time that the microVM counts.
const hostSuffix = "_host"

// chooseHost keeps one of each two such programs.
func chooseHost(spec *ebpf.CollectionSpec, host bool) {
	for name, p := range spec.Programs {
		instead, ok := strings.CutSuffix(name, hostSuffix)
		switch {
		case ok && host:
			p.AttachTo = spec.Programs[instead].AttachTo
			delete(spec.Programs, instead)
		case ok:
			delete(spec.Programs, name)
		}
	}
}

// Suffixes of the two cong_control programs: it has 4 arguments from 6.10 on, and 2 before.
const (
	congControl4 = "_cong_control"
	congControl2 = "_cong_control_2"
)

// chooseCongControl keeps the cong_control program that fits the running kernel.
func chooseCongControl(spec *ebpf.CollectionSpec) error {
	var four, two string
	for name := range spec.Programs {
		switch {
		case strings.HasSuffix(name, congControl4):
			four = name
		case strings.HasSuffix(name, congControl2):
			two = name
		}
	}
	if four == "" || two == "" {
		return nil // it leaves the window to the TCP core
	}
	kernel, err := readKernelTypes()
	if err != nil {
		return HaveBTF()
	}
	if kernel.congControlArgs == 0 {
		return fmt.Errorf("find tcp_congestion_ops.cong_control in the kernel's types: %w",
			ErrNotSupported)
	}
	if kernel.congControlArgs == 4 {
		delete(spec.Programs, two)
		return nil
	}
	spec.Programs[two].AttachTo = spec.Programs[four].AttachTo
	delete(spec.Programs, four)
	return nil
}
