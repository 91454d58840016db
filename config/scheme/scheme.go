// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"embed"
	"fmt"
	"io/fs"
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

// Scheme is a congestion control with all that belongs to it in a network.
type Scheme struct {
	// Name is what experiments call it, such as dcqcn+tcd.
	Name string
	// Control is the name of the TCP congestion control of its senders.
	Control string
	// Section is the key of its parameters in experiments.
	Section string
	// Title says in one line what it is, and Source where it is from.
	Title, Source string
	// Sender is what its senders are controlled by.
	Sender Sender
	// TCD says whether switches mark by TCD.
	TCD bool
	// Object is the compiled control; nil for one of the kernel's own.
	Object *Object
	// MarkingSection is the section that has the values of its marking and notification: its own,
	// or another one's that it borrows.
	MarkingSection string
	// Own has the objects of a scheme of the user's own; nil if it comes along.
	Own *Own
}

// Sender says what a sender is controlled by.
type Sender string

// The kinds of senders.
const (
	SenderRate   Sender = "rate"   // a rate, by which it is paced
	SenderWindow Sender = "window" // a window
	SenderLine   Sender = "line"   // nothing: it sends at line rate
)

// Setup is what a scheme needs of a network, with the values that its parameters have.
type Setup struct {
	Marker string // how switches mark: none, npecn, red, fecn, qcn or own
	// what receivers answer marks with: none, or the name of a notification point
	Notification string
	Hears        string // what the reaction point takes: none, cnp or cnm
	NeedsECN     bool   // flows are useless without ECN
	AccECN       bool   // TCP negotiates Accurate ECN
	// the sender counts the marks that ACKs tell of, as a notification point would
	CountsACKs   bool
	DelayedACK   bool // receivers acknowledge every second packet
	DropFirstRTT bool // packets of the first round trip are not ECN-capable
}

// None stands for what a scheme does not need, OwnPart for what it has an object of its own for.
const (
	None    = "none"
	OwnPart = "own"
)

// tcdSuffix ends the names of schemes whose switches mark by TCD.
const tcdSuffix = "+tcd"

// ControlTCDSuffix ends the names of controls that go by TCD's marks.
const ControlTCDSuffix = "_tcd"

// WithTCD returns the scheme whose switches mark by TCD, and whose senders go by that.
func (s Scheme) WithTCD() (Scheme, error) {
	if s.Object == nil || s.Object.attributes["tcd"].value != "yes" {
		return Scheme{}, fmt.Errorf("scheme %s does not know TCD's marks", s.Name)
	}
	s.TCD = true
	s.Name += tcdSuffix
	s.Control += ControlTCDSuffix
	if borrowed := s.Object.attributes["tcd.values"].value; borrowed != "" {
		s.MarkingSection = borrowed
	}
	return s, nil
}

// Setup returns what the scheme needs, with these values of its own parameters. A control of the
// kernel's own has no values.
func (s Scheme) Setup(v *Values) Setup {
	if s.Object == nil {
		return Setup{Marker: "red", Notification: None, Hears: None, NeedsECN: true}
	}
	is := func(name string) string {
		a, ok := s.Object.attributes[tcdPrefix+name]
		if !s.TCD || !ok {
			a = s.Object.attributes[name]
		}
		return a.under(v)
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
		NeedsECN: is("ecn") == "needed", AccECN: is("accecn") == "yes",
		CountsACKs: is("counts_acks") == "yes", DelayedACK: is("delayed_ack") == "yes",
		DropFirstRTT: is("first_rtt") == "drop",
	}
}

// HearsCNPs reports whether the senders' rate follows CNPs.
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

// HasFirstRTT reports whether the scheme treats packets of the first round trip in a way of their
// own.
func (s Scheme) HasFirstRTT() bool {
	return s.Object != nil && s.Object.attributes["first_rtt"].value != ""
}

// MinRateBps returns the rate that no flow goes below with these values; 0 if the scheme says none.
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

// minRate is the parameter, or the attribute, that says which rate no flow goes below.
const minRate = "min_rate"

// newScheme makes a scheme of an object.
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
	sets, err := readPresets(s.Section)
	if err != nil {
		return s, err
	}
	return s, o.addPresets(sets)
}

// Catalogue is what schemes there are. It does not change once it is made.
type Catalogue struct {
	schemes []Scheme
}

// Builtin returns the schemes that come along.
func Builtin() *Catalogue { return builtin() }

// builtin reads the objects once. They are embedded and tested, so that an error is a mistake in
// the build.
var builtin = sync.OnceValue(func() *Catalogue {
	c := &Catalogue{}
	files, err := fs.Glob(objectFiles, "objects/*.o")
	if err != nil {
		panic(err)
	}
	for _, name := range files {
		data, err := objectFiles.ReadFile(name)
		if err == nil {
			err = c.add(data, nil)
		}
		if err != nil {
			panic(fmt.Sprintf("scheme: %s: %v", name, err))
		}
	}
	return c
})

// add reads an object into the catalogue.
func (c *Catalogue) add(data []byte, own *Own) error {
	o, err := NewObject(data)
	if err != nil {
		return err
	}
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

// With returns the catalogue with a scheme of the user's own, and that scheme.
func (c *Catalogue) With(own Own) (*Catalogue, Scheme, error) {
	more := &Catalogue{schemes: slices.Clone(c.schemes)}
	if err := more.add(own.Control, &own); err != nil {
		return nil, Scheme{}, err
	}
	i := slices.IndexFunc(more.schemes, func(s Scheme) bool { return s.Own == &own })
	return more, more.schemes[i], nil
}

// Names returns the names of all schemes of ours, those with TCD last.
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

// Schemes returns all schemes of ours, without TCD.
func (c *Catalogue) Schemes() []Scheme { return slices.Clone(c.schemes) }

// Lookup returns the scheme of a name: one of ours, one of these with TCD, or a control of the
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

// ByControl returns the scheme of ours whose senders have a congestion control, with TCD too.
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

// Sections returns the objects by the key of their parameters in experiments, of those that have
// parameters.
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
