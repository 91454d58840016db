// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pcn-linux/pcn/config"
)

// objectFiles are the controls of bpf/cc, compiled.
//
//go:embed objects
var objectFiles embed.FS

// Scheme is a congestion control with its marking, notification and parameters.
type Scheme struct {
	// Name is its name in experiments, such as dcqcn+tcd.
	Name string
	// Control is the name of the TCP congestion control of its senders.
	Control string
	// Section is the key of its parameters in experiments.
	Section string
	// Title describes it in one line. Source is the paper or code that it comes from.
	Title, Source string
	// Sender is how its senders are controlled.
	Sender Sender
	// TCD is true if switches mark by TCD.
	TCD bool
	// Object is the compiled control; nil for a control of the kernel's own.
	Object *Object
	// MarkingSection is the section with the values of its marking and notification: its own or a
	// borrowed one.
	MarkingSection string
	// Own holds the objects of a user's own scheme; nil for built-in schemes.
	Own *Own
}

// Sender is how a sender is controlled.
type Sender string

// The kinds of senders.
const (
	SenderRate   Sender = "rate"   // a rate, by which it is paced
	SenderWindow Sender = "window" // a window
	SenderLine   Sender = "line"   // nothing: it sends at line rate
)

// Setup is what a scheme with given parameters needs from a network.
type Setup struct {
	Marker string // how switches mark: none, npecn, red, fecn, qcn or own
	// AllAtKMax: red marks every packet at K_max itself, and not only above it
	AllAtKMax bool
	// how receivers answer marks: none, or the name of a notification point
	Notification string
	Hears        string // messages that the reaction point obeys: none, cnp or cnm
	NeedsECN     bool   // flows are useless without ECN
	AccECN       bool   // TCP negotiates Accurate ECN
	// the sender counts the marks that ACKs report, as a notification point would
	CountsACKs   bool
	DelayedACK   bool // receivers acknowledge every second packet
	DropFirstRTT bool // packets of the first round trip are not ECN-capable
}

// None marks a part that a scheme does not need, OwnPart one with the user's own object.
const (
	None    = "none"
	OwnPart = "own"
)

// tcdSuffix ends the names of schemes whose switches mark by TCD.
const tcdSuffix = "+tcd"

// ControlTCDSuffix ends the names of controls that read TCD's marks.
const ControlTCDSuffix = "_tcd"

// WithTCD returns the variant of the scheme whose switches mark by TCD and whose senders read these
// marks.
func (s Scheme) WithTCD() (Scheme, error) {
	if s.Object == nil || s.Object.attributes["tcd"].value != "yes" {
		return Scheme{}, fmt.Errorf("scheme %s does not know TCD's marks", s.Name)
	}
	s.TCD = true
	s.Name += tcdSuffix
	s.Title += "; switches mark by TCD"
	s.Control += ControlTCDSuffix
	if borrowed := s.Object.attributes["tcd.values"].value; borrowed != "" {
		s.MarkingSection = borrowed
	}
	return s, nil
}

// Setup returns what the scheme needs with these values of its parameters. v is nil for a control
// of the kernel's own.
func (s Scheme) Setup(v *Values) Setup {
	if s.Object == nil {
		return Setup{Marker: "red", Notification: None, Hears: None, NeedsECN: true}
	}
	is := func(name string) string {
		a, ok := s.Object.attributes[tcdPrefix+name]
		if !s.TCD || !ok {
			a = s.Object.attributes[name]
		}
		return a.valueFor(v)
	}
	or := func(text string) string {
		if text == "" {
			return None
		}
		if strings.HasPrefix(text, ownValue) {
			return OwnPart
		}
		return text
	}
	return Setup{
		Marker: or(is("marker")), Notification: or(is("notification")), Hears: or(is("hears")),
		AllAtKMax: is("at_kmax") == "all",
		NeedsECN:  is("ecn") == "needed", AccECN: is("accecn") == "yes",
		CountsACKs: is("counts_acks") == "yes", DelayedACK: is("delayed_ack") == "yes",
		DropFirstRTT: is("first_rtt") == "drop",
	}
}

// HearsCNPs reports whether the senders obey CNPs.
func (s Scheme) HearsCNPs() bool {
	if s.Object == nil {
		return false
	}
	a := s.Object.attributes["hears"]
	if with, ok := s.Object.attributes["tcd.hears"]; ok && s.TCD {
		a = with
	}
	return a.value == "cnp"
}

// HasTelemetry reports whether switches write telemetry into the scheme's packets, which ACKs bring
// to senders.
func (s Scheme) HasTelemetry() bool {
	return s.Object != nil && s.Object.attributes["telemetry"].value != ""
}

// OnlySimulated fails if the scheme needs what only the simulator's switches do.
func (s Scheme) OnlySimulated() error {
	if !s.HasTelemetry() {
		return nil
	}
	return fmt.Errorf("scheme %s needs switches that write telemetry into packets, and only the "+
		"simulator's do", s.Name)
}

// HasFirstRTT reports whether the scheme treats packets of the first round trip specially.
func (s Scheme) HasFirstRTT() bool {
	return s.Object != nil && s.Object.attributes["first_rtt"].value != ""
}

// LimitsBursts reports whether the control's operation min_tso_segs can answer with these values
// what TCP would not by itself.
func (s Scheme) LimitsBursts(v *Values) bool {
	a, ok := s.Object.attributes[burstsBy]
	return !ok || slices.ContainsFunc(burstKeys(a), func(key string) bool {
		return v.Get(key).Number != 0
	})
}

// MinRateBps returns the lowest rate of a flow with these values; 0 if the scheme sets none.
func (s Scheme) MinRateBps(v *Values, n Network) (uint64, error) {
	if v.Has(minRate) {
		return uint64(v.Get(minRate).Number), nil
	}
	text := s.Object.attributes[minRate].value
	if text == "" {
		return 0, nil
	}
	f, err := parseFormula(text)
	if err != nil {
		return 0, fmt.Errorf("attribute %s: %w", minRate, err)
	}
	r := resolver{values: v, network: n, open: map[string]bool{}}
	number, err := f.eval(r.lookup)
	if err != nil {
		return 0, fmt.Errorf("attribute %s: %w", minRate, err)
	}
	return uint64(number), nil
}

// minRate names the parameter or attribute with the lowest rate of a flow.
const minRate = "min_rate"

// newScheme makes a scheme from an object.
func newScheme(o *Object) (Scheme, error) {
	text := func(name, byDefault string) string {
		if a, ok := o.attributes[name]; ok {
			return a.value
		}
		return byDefault
	}
	s := Scheme{
		Name: text("name", o.Control), Control: o.Control, Section: text("section", o.Control),
		Object: o,
		Title:  text("title", ""), Source: text("source", ""), Sender: Sender(text("sender", "")),
	}
	s.MarkingSection = s.Section
	if s.Sender == "" {
		return s, fmt.Errorf("control %s does not say its sender: want rate, window or line",
			o.Control)
	}
	if err := o.checkParts(); err != nil {
		return s, fmt.Errorf("control %s: %w", o.Control, err)
	}
	o.section = s.Section
	return s, nil
}

// Catalogue is an immutable set of schemes.
type Catalogue struct {
	schemes []Scheme
}

// Builtin returns PCN's own schemes.
func Builtin() *Catalogue { return builtin() }

// builtin makes the schemes of the embedded objects once, from descriptions. Tests cover them, so
// an error is a mistake in the build.
var builtin = sync.OnceValue(func() *Catalogue {
	c := &Catalogue{}
	for _, d := range descriptions {
		name := "objects/" + d.file
		file, err := objectFiles.Open(name)
		if err != nil {
			panic(err)
		}
		// not closed: its bytes are part of the program
		o, err := d.object(file.(io.ReaderAt))
		if err == nil {
			err = c.add(o, nil)
		}
		if err != nil {
			panic(fmt.Sprintf("scheme: %s: %v", name, err))
		}
	}
	return c
})

// add adds an object's scheme to the catalogue.
func (c *Catalogue) add(o *Object, own *Own) error {
	s, err := newScheme(o)
	if err != nil {
		return err
	}
	s.Own = own
	for _, known := range c.schemes {
		if known.Name == s.Name || known.Section == s.Section || IsKernelControl(s.Name) {
			return fmt.Errorf("there is a scheme %s already: choose another name", s.Name)
		}
	}
	c.schemes = append(c.schemes, s)
	if borrowed := o.attributes["tcd.values"].value; borrowed != "" &&
		c.Sections()[borrowed] == nil {
		return fmt.Errorf("with TCD, scheme %s borrows section %q: there is none", s.Name, borrowed)
	}
	slices.SortFunc(c.schemes, func(a, b Scheme) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// With returns a catalogue with the user's own scheme added, and that scheme.
func (c *Catalogue) With(own Own) (*Catalogue, Scheme, error) {
	more := &Catalogue{schemes: slices.Clone(c.schemes)}
	o, err := NewObject(own.Control)
	if err != nil {
		return nil, Scheme{}, err
	}
	if err := more.add(o, &own); err != nil {
		return nil, Scheme{}, err
	}
	i := slices.IndexFunc(more.schemes, func(s Scheme) bool { return s.Own == &own })
	return more, more.schemes[i], nil
}

// Names returns the names of all schemes but the kernel's, those with TCD last.
func (c *Catalogue) Names() []string {
	var plain, tcd []string
	for _, s := range c.schemes {
		plain = append(plain, s.Name)
		if with, err := s.WithTCD(); err == nil {
			tcd = append(tcd, with.Name)
		}
	}
	return append(plain, tcd...)
}

// Schemes returns all schemes but the kernel's, without TCD variants.
func (c *Catalogue) Schemes() []Scheme { return slices.Clone(c.schemes) }

// OnLinux returns the schemes that Linux can run, without TCD variants.
func (c *Catalogue) OnLinux() []Scheme {
	return slices.DeleteFunc(c.Schemes(), func(s Scheme) bool { return s.OnlySimulated() != nil })
}

// Lookup returns a scheme by name: one of the catalogue, its TCD variant, or a control of the
// kernel's own.
func (c *Catalogue) Lookup(name string) (Scheme, error) {
	base, tcd := strings.CutSuffix(name, tcdSuffix)
	for _, s := range c.schemes {
		if s.Name != base {
			continue
		}
		if tcd {
			return s.WithTCD()
		}
		return s, nil
	}
	if IsKernelControl(name) {
		return Kernel(name), nil
	}
	return Scheme{}, config.Bad(fmt.Sprintf("unknown scheme %q", name),
		config.Suggest(name, c.known()))
}

func (c *Catalogue) known() []string { return slices.Concat(c.Names(), kernelControls) }

// ByControl returns the scheme of the catalogue, or its TCD variant, whose senders use a congestion
// control.
func (c *Catalogue) ByControl(control string) (Scheme, bool) {
	base, tcd := strings.CutSuffix(control, ControlTCDSuffix)
	for _, s := range c.schemes {
		if s.Control == control {
			return s, true
		}
		if with, err := s.WithTCD(); tcd && s.Control == base && err == nil {
			return with, true
		}
	}
	return Scheme{}, false
}

// Sections returns the objects that have parameters, by their section in experiments.
func (c *Catalogue) Sections() map[string]*Object {
	sections := map[string]*Object{}
	for _, s := range c.schemes {
		if len(s.Object.Params) > 0 {
			sections[s.Section] = s.Object
		}
	}
	return sections
}

// SectionNames returns the keys of Sections in their order.
func (c *Catalogue) SectionNames() []string { return slices.Sorted(maps.Keys(c.Sections())) }
