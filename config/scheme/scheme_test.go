// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// setupOf returns what a scheme needs by default, or with values.
func setupOf(t *testing.T, name string, texts map[string]string) Setup {
	t.Helper()
	s := findScheme(t, name)
	return s.Setup(resolve(t, s.Object, "", texts))
}

func TestSetups(t *testing.T) {
	for _, tc := range []struct {
		name  string
		given map[string]string
		want  Setup
	}{
		{"pfc", nil, Setup{Marker: None, Notification: None, Hears: None, NeedsECN: true}},
		{"pcn", nil, Setup{Marker: "npecn", Notification: "pcn", Hears: "cnp", NeedsECN: true}},
		{"pcn", map[string]string{"feedback": "ack"}, Setup{
			Marker: "npecn", Notification: None, Hears: "cnp", NeedsECN: true,
			AccECN: true, CountsACKs: true,
		}},
		{"pcn", map[string]string{"feedback": "ece"}, Setup{
			Marker: "npecn", Notification: None, Hears: "cnp", NeedsECN: true, CountsACKs: true,
		}},
		{"pcn", map[string]string{"feedback": "auto"}, Setup{
			Marker: "npecn", Notification: "pcn", Hears: "cnp", NeedsECN: true,
			AccECN: true, CountsACKs: true,
		}},
		{"dcqcn", nil, Setup{Marker: "red", Notification: "marked", Hears: "cnp", NeedsECN: true}},
		{
			"dcqcn+tcd", nil,
			Setup{Marker: "red", Notification: "marked", Hears: "cnp", NeedsECN: true},
		},
		{"timely", nil, Setup{Marker: None, Notification: None, Hears: None}},
		{
			"timely+tcd", nil,
			Setup{Marker: "red", Notification: "marked", Hears: "cnp", NeedsECN: true},
		},
		{"qcn", nil, Setup{Marker: "qcn", Notification: None, Hears: "cnm"}},
		{
			"dctcp_rate", nil,
			Setup{
				Marker: "red", Notification: None, Hears: None, NeedsECN: true,
				AccECN: true,
			},
		},
		{"hpcc", nil, Setup{Marker: None, Notification: None, Hears: None}},
		{"pcn_dctcp", nil, Setup{Marker: "red", Notification: None, Hears: None, NeedsECN: true}},
		{
			"ldcp", nil,
			Setup{
				Marker: "red", AllAtKMax: true, Notification: None, Hears: None, NeedsECN: true,
				DropFirstRTT: true,
			},
		},
		{"ldcp", map[string]string{
			"first_rtt": "ect", "feedback": "accecn", "ack_every": "2",
		}, Setup{
			Marker: "red", AllAtKMax: true, Notification: None, Hears: None, NeedsECN: true,
			AccECN: true, DelayedACK: true,
		}},
		{"ibcc", nil, Setup{Marker: "fecn", Notification: "marked", Hears: "cnp", NeedsECN: true}},
		{
			"ibcc+tcd", nil,
			Setup{Marker: "fecn", Notification: "marked", Hears: "cnp", NeedsECN: true},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.Equals(setupOf(t, tc.name, tc.given), tc.want))
		})
	}
	s := findScheme(t, "cubic")
	want := Setup{Marker: "red", Notification: None, Hears: None, NeedsECN: true}
	qt.Assert(t, qt.Equals(s.Setup(nil), want))
	qt.Assert(
		t, qt.IsTrue(s.Object == nil && s.MarkingSection == "dctcp" && s.Sender == SenderWindow),
	)
}

func TestWithTCD(t *testing.T) {
	// Which schemes know TCD, and whose marking they have.
	knows := map[string]string{"dcqcn": "dcqcn", "timely": "dcqcn", "ibcc": "ibcc"}
	for _, s := range Builtin().Schemes() {
		t.Run(s.Name, func(t *testing.T) {
			qt.Check(t, qt.Equals(s.MarkingSection, s.Section))
			with, err := s.WithTCD()
			section, ok := knows[s.Name]
			if !ok {
				qt.Assert(t, qt.ErrorMatches(err, `scheme `+s.Name+` does not know TCD's marks`))
				_, err = Builtin().Lookup(s.Name + "+tcd")
				qt.Assert(t, qt.IsNotNil(err))
				return
			}
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(with.Name, s.Name+"+tcd"))
			qt.Check(t, qt.Equals(with.Control, s.Control+"_tcd"))
			qt.Check(t, qt.Equals(with.Section, s.Section))
			qt.Check(t, qt.Equals(with.MarkingSection, section))
			qt.Check(t, qt.IsTrue(with.TCD && !s.TCD && with.Object == s.Object))
			qt.Check(t, qt.IsTrue(with.HearsCNPs()))

			again, err := Builtin().Lookup(with.Name)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(again, with))
			again, ok = Builtin().ByControl(with.Control)
			qt.Check(t, qt.IsTrue(ok))
			qt.Check(t, qt.Equals(again, with))
		})
	}
	_, err := findScheme(t, "cubic").WithTCD()
	qt.Assert(t, qt.ErrorMatches(err, `scheme cubic does not know TCD's marks`))
}

func TestLookup(t *testing.T) {
	c := Builtin()
	for _, name := range slices.Concat(c.Names(), KernelControls()) {
		qt.Check(t, qt.Equals(findScheme(t, name).Name, name))
	}
	for _, s := range c.Schemes() {
		found, ok := c.ByControl(s.Control)
		qt.Check(t, qt.IsTrue(ok && found == s), qt.Commentf("%s", s.Control))
		qt.Check(
			t, qt.IsTrue(len(s.Control)+len(ControlTCDSuffix) < 16),
			qt.Commentf("the kernel's names have 15 bytes"),
		)
	}
	_, ok := c.ByControl("cubic")
	qt.Check(t, qt.IsFalse(ok))
	_, ok = c.ByControl("pcn_tcd")
	qt.Check(t, qt.IsFalse(ok))
	_, err := c.Lookup("timly")
	qt.Check(t, qt.ErrorMatches(err, `unknown scheme "timly" \(hint: did you mean "timely"\?\)`))
	_, err = c.Lookup("dcqcn+tcp")
	qt.Check(
		t,
		qt.ErrorMatches(err, `unknown scheme "dcqcn\+tcp" \(hint: did you mean "dcqcn\+tcd"\?\)`),
	)
	sections := c.SectionNames()
	qt.Check(t, qt.IsTrue(slices.IsSorted(sections)))
	for _, s := range c.Schemes() { // pfc has no parameters
		qt.Check(t, qt.Equals(slices.Contains(sections, s.Section), s.Name != "pfc"))
	}
}

func TestCatalogueRefusesASchemeThatItHas(t *testing.T) {
	for _, data := range builtinData(t) {
		_, _, err := Builtin().With(Own{Control: data})
		qt.Assert(t, qt.ErrorMatches(err, `there is a scheme \w+ already: choose another name`))
	}
	_, _, err := (&Catalogue{}).With(Own{Control: []byte("nothing")})
	qt.Assert(t, qt.ErrorMatches(err, `read the object: .*`))

	// A catalogue of one's own has what it is given, and nothing that is borrowed from elsewhere.
	var names []string
	for _, data := range builtinData(t) {
		c, s, err := (&Catalogue{}).With(Own{Control: data})
		if err != nil {
			qt.Assert(t, qt.ErrorMatches(err,
				`with TCD, scheme timely borrows section "dcqcn": there is none`))
			names = append(names, "timely")
			continue
		}
		names = append(names, s.Name)
		qt.Assert(t, qt.HasLen(c.Schemes(), 1))
		qt.Assert(t, qt.IsNotNil(s.Own))
	}
	slices.Sort(names)
	var builtin []string
	for _, s := range Builtin().Schemes() {
		builtin = append(builtin, s.Name)
	}
	slices.Sort(builtin)
	qt.Assert(t, qt.DeepEquals(names, builtin))
}

// A scheme must have the parameters that its marker and its notification point go by.
func TestPartsHaveTheirParameters(t *testing.T) {
	good := structOf(param("a_ns", u64, "0 to 1s", "1us"))
	for _, tc := range []struct{ tag, want string }{
		{
			"marker=red",
			`marker "red" of the scheme goes by parameter "marking.kmin", and there is none`,
		},
		{"marker=qcn", `marker "qcn" of the scheme goes by parameter "qeq", and there is none`},
		{
			"notification=pcn",
			`notification "pcn" of the scheme goes by parameter "T", and there is none`,
		},
		{
			"first_rtt=drop",
			`first_rtt "drop" of the scheme goes by parameter "wred_k", and there is none`,
		},
		{
			"tcd.marker=red",
			`tcd.marker "red" of the scheme goes by parameter "marking.kmin", and there is none`,
		},
		{"marker=npecn", ""},
		{"marker=own ./mark.h", ""},
	} {
		t.Run(tc.tag, func(t *testing.T) {
			_, err := newScheme(mustRead(t, good, "scheme:sender=rate", "scheme:"+tc.tag))
			if tc.want == "" {
				qt.Assert(t, qt.IsNil(err))
				return
			}
			qt.Assert(t, qt.ErrorMatches(err, "control test: "+tc.want))
		})
	}
	_, err := newScheme(mustRead(t, good))
	qt.Assert(
		t, qt.ErrorMatches(err, `control test does not say its sender: want rate, window or line`),
	)
}

func TestPresets(t *testing.T) {
	for name, want := range map[string][]string{
		"dcqcn": {"paper", "ns3-rdma", "hpcc"}, "timely": {"snippet", "paper", "ns3-rdma", "hpcc"},
		"pcn": nil, "qcn": nil,
	} {
		qt.Check(t, qt.DeepEquals(findScheme(t, name).Object.PresetNames(), want))
	}
	// Every value of every set says where it is from, and every set is in range on every link.
	for _, s := range Builtin().Schemes() {
		for _, set := range s.Object.Presets() {
			qt.Check(t, qt.IsNil(s.Object.checkDefaults(set.Name)))
			for key, v := range set.Values {
				qt.Check(
					t, qt.IsTrue(v.From != "" || set.Source != ""),
					qt.Commentf("%s %s %s", s.Name, set.Name, key),
				)
			}
			for _, rate := range []uint64{1e6, 999e6, 10e9, 400e9, 800e9} {
				_, problems := s.Object.Resolve(
					Settings{Set: set.Name}, Network{LineRateBps: rate, FrameBytes: 1000},
				)
				qt.Check(
					t, qt.HasLen(problems, 0), qt.Commentf("%s %s at %d", s.Name, set.Name, rate),
				)
			}
		}
	}
}

func TestErrorsOfPresets(t *testing.T) {
	for _, tc := range []struct{ name, file, want string }{
		{
			"unknown parameter", "sets: [{name: a, values: {b: {is: 1us}}}]",
			`preset a of control test: there is no parameter "b"`,
		},
		{
			"no value", "sets: [{name: a, values: {a: {is: 1 us}}}]",
			`preset a of control test: a: .*`,
		},
		{
			"no choice", "sets: [{name: a, values: {c: {is: blue}}}]",
			`preset a of control test: c: unknown value "blue" .*`,
		},
		{
			"out of range", "sets: [{name: a, values: {a: {is: 2s}}}]",
			`the default of a: 2s is out of range`,
		},
		{
			"later set out of range", "sets: [{name: a}, {name: b, values: {a: {is: 2s}}}]",
			`the default of a: 2s is out of range`,
		},
		{"no name", "sets: [{values: {a: {is: 1us}}}]", `preset of control test has no name`},
		{"name twice", "sets: [{name: a}, {name: a}]", `duplicate preset a of control test`},
		{"unknown key", "sets: [{name: a, vals: {}}]", `a.yaml:1:18: unknown key "vals" .*`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := mustRead(
				t, structOf(param("a_ns", u64, "0 to 1s", "1us"), param("c", colour, "", "red")),
			)
			sets, err := parsePresets("a.yaml", []byte(tc.file))
			if err == nil {
				err = o.addPresets(sets)
			}
			for _, set := range sets {
				if err == nil {
					err = o.checkDefaults(set.Name)
				}
			}
			qt.Assert(t, qt.IsNotNil(err))
			qt.Assert(t, qt.Matches(strings.Split(err.Error(), "\n")[0], tc.want))
		})
	}
}

// Only HPCC's and PowerTCP's switches write telemetry. They are named everywhere, but not among
// Linux's.
func TestSimulatedSchemes(t *testing.T) {
	simulated := []string{"hpcc", "powertcp"}
	for _, name := range Builtin().Names() {
		s, err := Builtin().Lookup(name)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(s.HasTelemetry(), slices.Contains(simulated, name)))
		qt.Check(t, qt.Equals(s.OnlySimulated() != nil, slices.Contains(simulated, name)))
	}
	linux := Builtin().OnLinux()
	qt.Check(t, qt.HasLen(linux, len(Builtin().Schemes())-len(simulated)))
	for _, s := range linux {
		qt.Check(t, qt.IsFalse(slices.Contains(simulated, s.Name)))
	}
	qt.Check(t, qt.IsFalse(Kernel("cubic").HasTelemetry()))
}
