// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"io/fs"
	"math"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"
)

// builtinData returns the objects that come along, as files.
func builtinData(t testing.TB) [][]byte {
	t.Helper()
	files, err := fs.Glob(objectFiles, "objects/*.o")
	qt.Assert(t, qt.IsNil(err))
	var all [][]byte
	for _, name := range files {
		data, err := objectFiles.ReadFile(name)
		qt.Assert(t, qt.IsNil(err))
		all = append(all, data)
	}
	return all
}

func builtinObjects(t testing.TB) []*Object {
	t.Helper()
	var all []*Object
	for _, data := range builtinData(t) {
		o, err := NewObject(data)
		qt.Assert(t, qt.IsNil(err))
		all = append(all, o)
	}
	return all
}

// field is a field of a struct, with its annotations.
func field(name string, of btf.Type, tags ...string) btf.Member {
	return btf.Member{Name: name, Type: of, Tags: tags}
}

// param is a field with the annotations of PARAM.
func param(name string, of btf.Type, limits, byDefault string, more ...string) btf.Member {
	return field(
		name, of,
		append([]string{"doc:" + name, "range:" + limits, "default:" + byDefault}, more...)...,
	)
}

// structOf lays fields out one behind the other, 8 bytes each.
func structOf(members ...btf.Member) *btf.Struct {
	s := &btf.Struct{Name: "params", Size: uint32(8 * len(members))}
	for i, m := range members {
		m.Offset = btf.Bits(64 * i)
		s.Members = append(s.Members, m)
	}
	return s
}

// readObject reads an object whose params is the struct, with annotations on the variable.
func readObject(s *btf.Struct, tags ...string) (*Object, error) {
	v, err := describeVariable(ParamsVariable, &ebpf.VariableSpec{
		Name: ParamsVariable, Value: make([]byte, s.Size), Type: &btf.Var{
			Name: ParamsVariable, Type: s, Tags: tags,
		},
	})
	if err != nil {
		return nil, err
	}
	o := &Object{Control: "test", sizes: map[string]uint32{}}
	if err := o.readVariable(v); err != nil {
		return nil, err
	}
	if err := o.checkAttributes(); err != nil {
		return nil, err
	}
	return o, o.checkDefaults("")
}

func mustRead(t *testing.T, s *btf.Struct, tags ...string) *Object {
	t.Helper()
	o, err := readObject(s, tags...)
	qt.Assert(t, qt.IsNil(err))
	return o
}

func TestAnnotationsMakeParameters(t *testing.T) {
	inner := structOf(
		param("timer_ns", u64, "1us to 1s", "15ms"), field("hyper_bytes", u64, "from:0"),
	)
	o := mustRead(t, structOf(
		field("line_rate_bps", u64, "from:line_rate"),
		param("min_rate_bps", u64, "1kbps to line_rate", "min(5Mbps, line_rate / 10)"),
		param("gain", typedef("q24", u32), "above 0 to below 1", "1/16", "key:g"),
		param("after_packets", u32, "0 to 10", "5"),
		param("on", typedef("flag", u32), "", "true"),
		param("shade", colour, "red or dark_red", "red"),
		field("pad", u32),
		btf.Member{Name: "recovery", Type: inner, Tags: []string{
			"of:timer_ns:key:rate_timer",
			"of:hyper_bytes:doc:set here", "of:hyper_bytes:range:0 to 1GB",
			"of:hyper_bytes:default:2KB",
		}},
		field("pad2", u64),
	), "prefix:inside")
	type described struct {
		Key, Range, Default string
		Kind                Kind
	}
	var got []described
	for _, p := range o.Params {
		got = append(got, described{p.Key, p.Range, p.Default, p.Kind})
	}
	qt.Assert(t, qt.DeepEquals(got, []described{
		{"inside.min_rate", "1kbps to line_rate", "min(5Mbps, line_rate / 10)", KindRate},
		{"inside.g", "above 0 to below 1", "1/16", KindRatio},
		{"inside.after", "0 to 10", "5", KindCount},
		{"inside.on", "", "true", KindFlag},
		{"inside.shade", "", "red", KindChoice},
		{"inside.rate_timer", "1us to 1s", "15ms", KindTime},
		{"inside.hyper", "0 to 1GB", "2KB", KindBytes},
	}))
	qt.Assert(t, qt.DeepEquals(o.Param("inside.shade").Choices, []string{"red", "dark_red"}))
	qt.Assert(t, qt.IsNil(o.Param("g")))
	qt.Assert(t, qt.HasLen(o.derived, 1))
}

func TestErrorsOfAnnotations(t *testing.T) {
	good := param("a_ns", u64, "0 to 1s", "1us")
	for _, tc := range []struct {
		name string
		s    *btf.Struct
		tags []string
		want string
	}{
		{
			"misspelt", structOf(param("a_ns", u64, "0 to 1s", "1us", "ky:b")), nil,
			`params.a_ns: unknown annotation "ky": want one of doc, range, .*`,
		},
		{
			"misspelt on the variable", structOf(good), []string{"prefx:b"},
			`unknown annotation "prefx": want one of prefix, scheme`,
		},
		{
			"of no field", structOf(good), []string{"of:b_ns:key:b"},
			`annotation of field "b_ns": struct params has none of the name`,
		},
		{
			"no range", structOf(field("a_ns", u64, "doc:a", "default:1us")), nil,
			`params.a_ns: range "": want LOW to HIGH`,
		},
		{
			"half a range", structOf(param("a_ns", u64, "1us", "1us")), nil,
			`params.a_ns: range "1us": want LOW to HIGH`,
		},
		{
			"range without end", structOf(param("a_ns", u64, "1us to ", "1us")), nil,
			`params.a_ns: formula "": .*`,
		},
		{
			"no default", structOf(param("a_ns", u64, "0 to 1s", "")), nil,
			`params.a_ns: formula "": .*`,
		},
		{
			"formula", structOf(param("a_ns", u64, "0 to 1s", "1us +")), nil,
			`params.a_ns: formula "1us \+": .*`,
		},
		{
			"key twice", structOf(good, param("b_ns", u64, "0 to 1s", "1us", "key:a")), nil,
			`params.b_ns: duplicate key "a"`,
		},
		{
			"unknown name", structOf(param("a_ns", u64, "0 to b", "1us")), nil,
			`the default of a: there is no "b"`,
		},
		{
			"default out of range", structOf(param("a_ns", u64, "0 to 1s", "2s")), nil,
			`the default of a: 2s is out of range`,
		},
		{
			"default of itself", structOf(param("a_ns", u64, "0 to 1s", "a + 1us")), nil,
			`the default of a: its default depends on itself`,
		},
		{
			"cycle",
			structOf(param("a_ns", u64, "0 to 1s", "b"), param("b_ns", u64, "0 to 1s", "a")), nil,
			`the default of a: its default depends on itself`,
		},
		{
			"no number", structOf(param("a_ns", u64, "0 to 1s", "1us / 0")), nil,
			`the default of a: "1us / 0" is no finite number here`,
		},
		{
			"default that is no choice", structOf(param("a", colour, "", "blue")), nil,
			`params.a: unknown value "blue" .*`,
		},
		{
			"choice that the enum lacks", structOf(param("a", colour, "red or blue", "red")), nil,
			`params.a: range "red or blue": "blue" is none of red, green, dark_red`,
		},
		{
			"default that is not left", structOf(param("a", colour, "red or green", "dark_red")),
			nil, `params.a: unknown value "dark_red" .*`,
		},
		{
			"default that is no flag", structOf(param("a", typedef("flag", u32), "", "1")), nil,
			`params.a: invalid value "1": want true or false`,
		},
		{
			"pointer", structOf(param("a", &btf.Pointer{Target: u32}, "0 to 1", "1")), nil,
			`params.a: it is a .*: want an integer or an enum`,
		},
		{
			"does not fit", structOf(param("a", u8, "0 to 1000", "256")), nil,
			`the default of a: 256 does not fit 8 bits`,
		},
		{
			"derived does not fit", structOf(field("a", u8, "from:line_rate")), nil,
			`a: .* does not fit 8 bits`,
		},
		{"derived of what", structOf(field("a", u64, "from:speed")), nil, `a: there is no "speed"`},
		{
			"beyond the variable",
			&btf.Struct{Name: "params", Size: 4, Members: []btf.Member{good}}, nil,
			`params.a_ns: it lies beyond the end of the variable: the object is damaged`,
		},
		{
			"table beyond the variable",
			structOf(field("a", &btf.Array{Type: u16, Nelems: 1 << 30}, "table:i")), nil,
			`params.a: it lies beyond the end of the variable: the object is damaged`,
		},

		{
			"unknown attribute", structOf(good), []string{"scheme:merker=red"},
			`unknown attribute "merker" of the scheme: want one of .*marker.*`,
		},
		{
			"unknown marker", structOf(good), []string{"scheme:marker=rad"},
			`unknown marker "rad" of the scheme: want npecn or red or fecn or qcn or own FILE`,
		},
		{
			"unknown sender", structOf(good), []string{"scheme:sender=fast"},
			`unknown sender "fast" of the scheme: want rate or window or line`,
		},
		{
			"condition", structOf(good), []string{"scheme:marker=red when a"},
			`attribute "marker" depends on "a": want KEY is VALUE or VALUE`,
		},
		{
			"condition on no parameter", structOf(good), []string{"scheme:marker=red when b is 1"},
			`attribute "marker" depends on "b": there is no such parameter`,
		},
		{
			"bursts by no parameter", structOf(good), []string{"scheme:bursts_by=a or b"},
			`attribute "bursts_by" depends on "b": there is no such parameter`,
		},
		{
			"condition on no choice", structOf(param("b", colour, "", "red")),
			[]string{"scheme:ecn=needed when b is red or blue"},
			`attribute "ecn" depends on b: unknown b "blue" .*`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := readObject(tc.s, tc.tags...)
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
		})
	}
}

// A damaged object may have a struct that is in itself.
func TestStructInItself(t *testing.T) {
	s := structOf(field("self", nil))
	s.Members[0].Type = s
	_, err := readObject(s)
	qt.Assert(t, qt.ErrorMatches(err, `.*nested too deep`))
}

func TestAttributesThatDepend(t *testing.T) {
	o := mustRead(t, structOf(param("mark", colour, "", "red"), param("every", u32, "1 to 2", "1")),
		"scheme:marker=own ./mark.h", "scheme:accecn=yes when mark is green or dark_red",
		"scheme:delayed_ack=yes when every is 2", "scheme:tcd.marker=red", "scheme:tcd=yes")
	s := Scheme{Name: "test", Control: "test", Object: o}
	setup := func(given map[string]Value) Setup {
		v, problems := o.Resolve(Settings{Given: given}, Network{})
		qt.Assert(t, qt.HasLen(problems, 0))
		return s.Setup(v)
	}
	qt.Assert(t, qt.Equals(setup(nil), Setup{Marker: OwnPart, Notification: None, Hears: None}))
	qt.Assert(t, qt.Equals(o.OwnFile("marker"), "./mark.h"))
	qt.Assert(t, qt.Equals(o.OwnFile("notification"), ""))

	green, err := o.Param("mark").Parse("green")
	qt.Assert(t, qt.IsNil(err))
	given := map[string]Value{"mark": green, "every": {Kind: KindCount, Number: 2}}
	want := Setup{Marker: OwnPart, Notification: None, Hears: None, AccECN: true, DelayedACK: true}
	qt.Assert(t, qt.Equals(setup(given), want))

	s, err = s.WithTCD()
	qt.Assert(t, qt.IsNil(err))
	want.Marker = "red"
	qt.Assert(t, qt.Equals(setup(given), want))
}

func TestLimitsBursts(t *testing.T) {
	params := structOf(param("burst", u32, "0 to 9", "0"), param("young", u32, "0 to 9", "0"))
	limits := func(key string, tags ...string) bool {
		o := mustRead(t, params, tags...)
		given := map[string]Value{key: {Kind: KindCount, Number: 1}}
		v, problems := o.Resolve(Settings{Given: given}, Network{})
		qt.Assert(t, qt.HasLen(problems, 0))
		return Scheme{Object: o}.LimitsBursts(v)
	}
	qt.Check(t, qt.IsFalse(limits("young", "scheme:bursts_by=burst")))
	qt.Check(t, qt.IsTrue(limits("burst", "scheme:bursts_by=burst")))
	qt.Check(t, qt.IsTrue(limits("young", "scheme:bursts_by=burst or young")))
	qt.Check(t, qt.IsTrue(limits("young"))) // says nothing
}

func TestStatistics(t *testing.T) {
	state := structOf(
		field("window", typedef("wide_q24", u64), "stat:The window", "key:window_packets"),
		field("cuts", u32, "stat:Times that it was cut"),
		field("private", u64),
	)
	entry := structOf(field("lock", u32), field("state", nil))
	entry.Members[1].Type = state
	entry.Size = 32
	stats, err := readStats(&ebpf.MapSpec{Name: FlowsMap, Value: entry, ValueSize: 32})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(stats, 2))
	data := make([]byte, 32)
	data[8+3], data[16] = 1, 7
	qt.Assert(t, qt.Equals(stats[0].Key, "window_packets"))
	qt.Assert(t, qt.Equals(stats[0].Kind, KindRatio))
	qt.Assert(t, qt.Equals(stats[0].Read(data), 1))
	qt.Assert(t, qt.Equals(stats[1].Key, "cuts"))
	qt.Assert(t, qt.Equals(stats[1].Kind, KindCount))
	qt.Assert(t, qt.Equals(stats[1].Read(data), 7))

	_, err = readStats(&ebpf.MapSpec{Name: FlowsMap, Value: entry, ValueSize: 19})
	qt.Assert(
		t,
		qt.ErrorMatches(
			err, `params.cuts: it lies beyond the end of the entry: the object is damaged`,
		),
	)
	_, err = readStats(&ebpf.MapSpec{Name: FlowsMap, Value: u64, ValueSize: 8})
	qt.Assert(t, qt.ErrorMatches(err, `map flows: its values are not a struct`))
}

func TestObjectsOfNoControl(t *testing.T) {
	_, err := NewObject([]byte("int main() {}"))
	qt.Assert(t, qt.ErrorMatches(err, `read the object: .*`))

	_, err = controlName(&ebpf.CollectionSpec{})
	qt.Assert(t, qt.ErrorIs(err, ErrNoControl))
	ops := &ebpf.MapSpec{Type: ebpf.StructOpsMap, Value: structOf(field("name", u64))}
	_, err = controlName(&ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{"ops": ops}})
	qt.Assert(t, qt.ErrorIs(err, ErrNoControl))
}

// What comes along says what the tests of its algorithms and the documentation rely on.
func TestBuiltinObjects(t *testing.T) {
	for _, s := range Builtin().Schemes() {
		t.Run(s.Name, func(t *testing.T) {
			qt.Check(t, qt.IsTrue(s.Title != "" && s.Source != ""))
			keys := map[string]bool{}
			for _, p := range s.Object.Params {
				qt.Check(
					t, qt.IsFalse(p.Doc == "" || strings.HasSuffix(p.Doc, ".")),
					qt.Commentf("%s: %q", p.Key, p.Doc),
				)
				qt.Check(t, qt.IsFalse(keys[p.Key]))
				keys[p.Key] = true
			}
			for _, stat := range s.Object.Stats {
				qt.Check(t, qt.IsTrue(stat.Key != "" && stat.Doc != ""))
			}
			data, err := s.Object.Spec()
			qt.Assert(t, qt.IsNil(err))
			ops, err := Operations(data)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(
				t, qt.Equals(ops.Name, s.Control),
				qt.Commentf("the operations have the control's name"),
			)
			qt.Check(t, qt.HasLen(s.Object.SHA256(), 64))
		})
	}
}

// Without programs an object says the same of itself.
func TestWithoutPrograms(t *testing.T) {
	for _, s := range Builtin().Schemes() {
		t.Run(s.Name, func(t *testing.T) {
			whole, err := s.Object.Spec()
			qt.Assert(t, qt.IsNil(err))
			got, err := s.Object.Types()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.HasLen(got.Programs, 0))
			programs, err := s.Object.Programs()
			qt.Assert(t, qt.IsNil(err))
			for name, want := range whole.Programs {
				if strings.HasPrefix(want.SectionName, "struct_ops/") {
					qt.Check(t, qt.Equals(programs[want.SectionName], name))
				}
			}
			for name, want := range whole.Variables {
				v := got.Variables[name]
				qt.Assert(t, qt.IsNotNil(v), qt.Commentf("%s", name))
				qt.Check(t, qt.Equals(v.Size(), want.Size()))
				qt.Check(t, qt.DeepEquals(v.Value, want.Value))
				qt.Check(t, qt.Equals(v.Type.Name, want.Type.Name))
			}
			if want := whole.Maps[FlowsMap]; want != nil {
				qt.Check(t, qt.Equals(got.Maps[FlowsMap].ValueSize, want.ValueSize))
			}
			name, err := controlName(whole)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(s.Object.Control, name))
		})
	}
}

// Whatever an object is damaged to, it is read or refused, and what is read can be resolved and
// encoded.
func FuzzNewObject(f *testing.F) {
	objects := builtinData(f)
	for i, data := range objects {
		f.Add(uint8(i), uint32(0), []byte(nil))
		f.Add(uint8(i), uint32(len(data)/2), []byte{0xff, 0xff, 0xff, 0xff})
		for _, text := range []string{
			"doc:", "range:", "default:", "from:", "of:", "scheme:", "stat:", "table:", "key:",
			"divides:",
		} {
			if at := strings.Index(string(data), text); at >= 0 {
				f.Add(uint8(i), uint32(at), []byte("x"))
				f.Add(uint8(i), uint32(at+len(text)), []byte("((("))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, at uint32, patch []byte) {
		data := append([]byte(nil), objects[int(which)%len(objects)]...)
		copy(data[int(at)%len(data):], patch)
		o, err := NewObject(data)
		if err != nil {
			return
		}
		n := Network{LineRateBps: 40e9, BaseRTTNs: 60_000, FrameBytes: 1500}
		values, problems := o.Resolve(Settings{}, n)
		if len(problems) == 0 {
			for _, name := range o.Variables() {
				_, _ = values.Bytes(name, n, true)
			}
		}
		if s, err := newScheme(o); err == nil {
			s.Setup(values)
		}
		entry := make([]byte, 4096)
		for _, stat := range o.Stats {
			if stat.offset < 4000 {
				qt.Assert(t, qt.IsFalse(math.IsNaN(stat.Read(entry))))
			}
		}
	})
}
