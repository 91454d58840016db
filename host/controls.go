// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/jsonschema"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/loader"
)

const ControlPrefix = "control_" // of its component

// Control is a congestion control to register, with its parameters.
type Control struct {
	// Scheme is the scheme of its senders.
	Scheme scheme.Scheme
	// Settings hold the parameters that differ from their defaults.
	Settings scheme.Settings
	// MaxFlows is the size of the flow table. 1 to 10000000, default 65536.
	MaxFlows uint
}

// Controls holds the congestion controls to register. A file gives each a mapping of its
// parameters, as docs/schemes.md lists them.
type Controls struct{ all []Control }

// Add adds a control by name with its defaults; it fails for an unknown name.
func (c *Controls) Add(name string) error {
	s, ok := scheme.Builtin().ByControl(name)
	if !ok || s.TCD {
		return fmt.Errorf("unknown congestion control %q (hint: %s)", name,
			config.Suggest(name, ControlNames()))
	}
	if err := s.OnlySimulated(); err != nil {
		return fmt.Errorf("%w (hint: one of %s)", err, strings.Join(ControlNames(), ", "))
	}
	if c.Has(name) {
		return nil
	}
	c.AddScheme(s)
	return nil
}

// AddScheme adds the control of a scheme with its defaults.
func (c *Controls) AddScheme(s scheme.Scheme) { c.all = append(c.all, Control{Scheme: s}) }

// AddObject adds a compiled control of the user's own with its defaults.
func (c *Controls) AddObject(object []byte) error {
	_, s, err := scheme.Builtin().With(scheme.Own{Control: object})
	if err != nil {
		return err
	}
	if c.Has(s.Control) {
		return fmt.Errorf("congestion control %s is given twice: keep one of them", s.Control)
	}
	c.all = append(c.all, Control{Scheme: s})
	return nil
}

// readObjects adds the controls whose objects the file names.
func (c *Config) readObjects(d *config.Decoder) {
	for i, path := range c.Objects {
		at := fmt.Sprintf("objects[%d]", i)
		data, err := config.ReadFile(path, config.MaxFile)
		if err != nil {
			d.Fail(at, err.Error(),
				"write the path of a control that was compiled: pcn scheme compile")
			continue
		}
		if err := c.Controls.AddObject(data); err != nil {
			d.Fail(at, err.Error(), "")
		}
	}
}

// Has reports whether the control of this name is to be registered.
func (c *Controls) Has(name string) bool {
	return c.first(func(s *scheme.Scheme) bool { return s.Control == name }) != nil
}

// HearsCNPs reports whether flows of a configured control obey CNPs.
func (c *Config) HearsCNPs() bool { return c.Controls.hears() != nil }

// ControlNames returns the names of the controls that a host can register.
func ControlNames() []string {
	var names []string
	for _, s := range scheme.Builtin().OnLinux() {
		names = append(names, s.Control)
	}
	return names
}

// ExtraKeys returns the keys of the mapping "controls": the names of controls.
func (c *Controls) ExtraKeys() []string { return ControlNames() }

// refuseSimulated takes controls that only the simulator has out of the file, and says so: as
// unknown keys they would get no reason.
func refuseSimulated(d *config.Decoder, root *yaml.Node) {
	at := config.ValueIndex(root, "controls")
	if at < 0 || root.Content[at].Kind != yaml.MappingNode {
		return // there are none, or decoding reports the mistake
	}
	controls := root.Content[at]
	var kept []*yaml.Node
	for i := 0; i+1 < len(controls.Content); i += 2 {
		name, parameters := controls.Content[i], controls.Content[i+1]
		s, ok := scheme.Builtin().ByControl(name.Value)
		if why := s.OnlySimulated(); ok && why != nil {
			d.FailAt(name, why.Error(), "one of "+strings.Join(ControlNames(), ", "))
			continue
		}
		kept = append(kept, name, parameters)
	}
	controls.Content = kept
}

// DecodeExtra decodes the parameters of a control.
func (c *Controls) DecodeExtra(d *config.Decoder, path, key string, n *yaml.Node) {
	s, ok := scheme.Builtin().ByControl(key)
	if !ok {
		return // not one of ExtraKeys
	}
	control := Control{Scheme: s}
	section := sectionOf(s)
	if control.hasFlowTable() {
		section.Extra = map[string]func(string, *yaml.Node){
			maxFlowsKey: func(path string, value *yaml.Node) {
				d.DecodeAt(path, value,
					&control.MaxFlows)
			},
		}
	}
	control.Settings = section.Decode(d, path, n)
	c.all = append(c.all, control)
}

// maxFlowsKey is a key of every control, beside its parameters.
const maxFlowsKey = "max_flows"

// sectionOf returns the section of a control in a host file: the parameters of its sender.
func sectionOf(s scheme.Scheme) scheme.Section {
	return scheme.Section{Object: s.Object, Takes: scheme.Param.IsSender}
}

// first returns the first control whose scheme is wanted; nil if there is none.
func (c *Controls) first(wanted func(*scheme.Scheme) bool) *Control {
	for i := range c.all {
		if wanted(&c.all[i].Scheme) {
			return &c.all[i]
		}
	}
	return nil
}

// hears returns the control whose flows obey CNPs; nil if there is none.
func (c *Controls) hears() *Control { return c.first((*scheme.Scheme).HearsCNPs) }

// withFirstRTT returns the control that treats the first round trip specially; nil if there is
// none.
func (c *Controls) withFirstRTT() *Control { return c.first((*scheme.Scheme).HasFirstRTT) }

// fill gives what the file does not give its default.
func (c *Controls) fill(d *config.Decoder) {
	for i := range c.all {
		control := &c.all[i]
		given := d.Has("controls." + control.Scheme.Control + ".max_flows")
		if control.hasFlowTable() && !given {
			control.MaxFlows = defaultFlows
		}
	}
}

// fillFeedback gives controls whose default is to go by ACKs too, in windows of T, one without
// T where T is not known.
func (c *Config) fillFeedback() {
	const key = "feedback"
	if c.RTT != 0 || len(c.RTTTo) > 0 || c.NP != nil && c.NP.T != 0 {
		return
	}
	for i := range c.Controls.all {
		control := &c.Controls.all[i]
		p := control.Scheme.Object.Param(key)
		if _, given := control.Settings.Given[key]; given || p == nil || p.OnHosts == "" {
			continue
		}
		v, err := p.Parse(p.Default)
		if err != nil {
			continue // the object's default was checked when it was read
		}
		control.Settings.Given = maps.Clone(control.Settings.Given)
		if control.Settings.Given == nil {
			control.Settings.Given = map[string]scheme.Value{}
		}
		control.Settings.Given[key] = v
	}
}

const hintRTT = "add rtt: 50us, or rtt_to: [HOST:PORT] to measure it"

// validateControls fails for values that are out of range, and for a missing round trip or line
// rate.
func (c *Config) validateControls(d *config.Decoder) {
	var hear []string
	for _, control := range c.Controls.all {
		path := "controls." + control.Scheme.Control
		if control.hasFlowTable() {
			config.CountInRange(d, path+".max_flows", control.MaxFlows, 1, maxFlows)
		}
		values, problems := control.Scheme.Object.Resolve(control.Settings,
			c.network(loader.MaxRateBps, 0))
		for _, p := range problems {
			d.Fail(path+"."+p.Key, p.Msg, p.Hint)
		}
		setup := control.Scheme.Setup(values)
		hasRTT := c.RTT != 0 || len(c.RTTTo) > 0
		switch {
		case values.Uses("base_rtt") && !hasRTT:
			d.Fail(path, control.Scheme.Control+" needs the round trip", hintRTT)
		case values.Uses("flows") && c.Flows == 0:
			d.Fail(path, "auto needs the number of flows", hintFlows)
		case setup.CountsACKs && !hasRTT && (c.NP == nil || c.NP.T == 0):
			d.Fail(path+".feedback", "ACKs are gone by in windows of T", hintRTT)
		}
		if control.Scheme.HearsCNPs() {
			hear = append(hear, control.Scheme.Control)
		}
	}
	if c.RP != nil && len(hear) > 1 {
		d.Fail("rp", fmt.Sprintf("CNPs could be for %s or %s", hear[0], hear[1]),
			"keep one of these controls")
	}
}

const fullFrameBytes = 1514 // of Ethernet

// network returns what the controls' defaults depend on. lineBps may be a placeholder before the
// rate is known.
func (c *Config) network(lineBps config.Rate, rtt config.Duration) scheme.Network {
	if c.LineRate != 0 {
		lineBps = c.LineRate
	}
	if c.RTT != 0 {
		rtt = c.RTT
	}
	return scheme.Network{LineRateBps: uint64(lineBps), BaseRTTNs: uint64(rtt),
		FrameBytes: fullFrameBytes, Flows: uint64(c.Flows), Host: true}
}

// needsECN reports whether a configured control needs ECN.
func (c *Config) needsECN() bool {
	return slices.ContainsFunc(c.Controls.all, Control.needsECN)
}

func (o Control) needsECN() bool {
	return o.Scheme.Sender != scheme.SenderLine && o.setup().NeedsECN
}

// hasFlowTable reports whether the control keeps state of its flows.
func (o Control) hasFlowTable() bool { return o.Scheme.Sender != scheme.SenderLine }

// setup returns what the control's scheme needs, with the configured parameters.
func (o Control) setup() scheme.Setup { return o.Scheme.Setup(o.values()) }

// values returns the parameters; those that depend on the network are placeholders.
func (o Control) values() *scheme.Values {
	n := scheme.Network{LineRateBps: loader.MaxRateBps, FrameBytes: fullFrameBytes, Host: true}
	values, _ := o.Scheme.Object.Resolve(o.Settings, n)
	return values
}

// controlComponents returns the components of the controls to register.
func controlComponents(c *Config, n measured) ([]component, error) {
	var all []component
	for _, control := range c.Controls.all {
		one, err := controlComponent(c, control, n)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func controlComponent(c *Config, control Control, n measured) (component, error) {
	name := control.Scheme.Control
	given, acks := withWindows(c, control, n.rtt)
	// A control that does not use the line rate has none here.
	network := c.network(cmp.Or(n.lineRate, loader.MaxRateBps), n.rtt)
	values, problems := control.Scheme.Object.Resolve(given, network)
	if len(problems) > 0 {
		p := problems[0]
		return component{}, fmt.Errorf("control %s: %s: %w", name, p.Key, config.Bad(p.Msg, p.Hint))
	}
	network.LineRateBps = uint64(n.lineRate)
	r := loader.Registration{
		Scheme: control.Scheme, Settings: given, Network: network,
		MaxFlows: uint32(control.MaxFlows), NetnsKeys: loader.HaveKernelContext() == nil,
	}
	settings := append(controlSettings(control, values, n.lineRate), acks...)
	if values.Uses("base_rtt") {
		settings = append(settings, rttSettings(c, n.rtt)...)
	}
	return component{
		name:     ControlPrefix + name,
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

// ExtraSchemas returns the schemas of the controls' parameters.
func (c *Controls) ExtraSchemas() map[string]*jsonschema.Schema {
	flows := &jsonschema.Schema{
		Type: jsonschema.Integer, Minimum: new(1.0), Maximum: new(float64(maxFlows)),
		Description: "Size of the flow table. Default: 65536.",
	}
	all := map[string]*jsonschema.Schema{}
	for _, s := range scheme.Builtin().OnLinux() {
		extra := map[string]*jsonschema.Schema{}
		if (Control{Scheme: s}).hasFlowTable() {
			extra[maxFlowsKey] = flows
		}
		all[s.Control] = sectionOf(s).JSONSchema(extra)
		all[s.Control].Description = s.Title + "."
	}
	return all
}

// NeedsECN reports whether a control of ours is of no use without ECN.
func NeedsECN(name string) bool {
	s, ok := scheme.Builtin().ByControl(name)
	return ok && Control{Scheme: s}.needsECN()
}
