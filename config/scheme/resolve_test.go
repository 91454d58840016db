// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"encoding/binary"
	"testing"

	"github.com/go-quicktest/qt"
)

// network is that of the PCN paper, Fig. 1.
var network = Network{LineRateBps: 40e9, BaseRTTNs: 60_000, FrameBytes: 1000}

func findScheme(t *testing.T, name string) Scheme {
	t.Helper()
	s, err := Builtin().Lookup(name)
	qt.Assert(t, qt.IsNil(err))
	return s
}

// given parses values of an object's parameters.
func given(t *testing.T, o *Object, texts map[string]string) map[string]Value {
	t.Helper()
	all := map[string]Value{}
	for key, text := range texts {
		v, err := o.Param(key).Parse(text)
		qt.Assert(t, qt.IsNil(err))
		all[key] = v
	}
	return all
}

func resolve(t *testing.T, o *Object, set string, texts map[string]string) *Values {
	t.Helper()
	v, problems := o.Resolve(Settings{Set: set, Given: given(t, o, texts)}, network)
	qt.Assert(t, qt.HasLen(problems, 0))
	return v
}

func TestDefaultsFollowWhatIsGiven(t *testing.T) {
	o := mustRead(t, structOf(
		param("kmin_bytes", u64, "0 to kmax", "kmax / 4"),
		param("kmax_bytes", u64, "1B to 1GB", "20KB * line_rate / 10Gbps"),
		param("drop_bytes", u64, "0 to 1GB", "marking.kmin * 3 / 2"),
	), "prefix:marking")
	v := resolve(t, o, "", nil)
	qt.Assert(t, qt.Equals(v.Get("marking.kmin").String(), "20KB"))
	qt.Assert(t, qt.Equals(v.Get("marking.drop").String(), "30KB"))

	v = resolve(t, o, "", map[string]string{"marking.kmax": "1KB"})
	qt.Assert(t, qt.Equals(v.Get("marking.kmin").String(), "250B"))
	qt.Assert(t, qt.Equals(v.Get("marking.drop").String(), "375B"))
	qt.Assert(t, qt.IsTrue(v.Has("marking.kmin")))
	qt.Assert(t, qt.IsFalse(v.Has("kmin")))
	qt.Assert(
		t,
		qt.PanicMatches(func() { v.Get("kmin") }, `scheme: control test has no parameter "kmin"`),
	)
}

func TestProblems(t *testing.T) {
	for _, tc := range []struct {
		scheme, set string
		given       map[string]string
		want        []Problem
	}{
		{
			"pcn", "", map[string]string{"T": "999ns"},
			[]Problem{{"T", "999ns is out of range", "1us to 1s"}},
		},
		{
			"pcn", "", map[string]string{"w_max": "1"},
			[]Problem{{"w_max", "1 is out of range", "w_min = 0.0078125 to below 1"}},
		},
		{
			"pcn", "", map[string]string{"w_min": "0.6"},
			[]Problem{{"w_min", "0.6 is out of range", "0.0000152587890625 to w_max = 0.5"}},
		},
		{
			"pcn", "", map[string]string{"rate_unit": "3kbps"},
			[]Problem{
				{"rate_unit", "3kbps does not divide 8Gbps", "2.56kbps or 3.125kbps do"},
			},
		},
		{
			"dcqcn", "", map[string]string{"marking.kmax": "0"},
			[]Problem{{"marking.kmax", "0B is out of range", "1B to 1GB"}},
		},
		{
			"dcqcn", "", map[string]string{"marking.kmin": "201KB"},
			[]Problem{{"marking.kmin", "201KB is out of range", "0B to kmax = 200KB"}},
		},
		{
			"dcqcn", "", map[string]string{"min_rate": "41Gbps"},
			[]Problem{{"min_rate", "41Gbps is out of range", "1kbps to 40Gbps"}},
		},
		{
			"dcqcn", "papr", nil,
			[]Problem{{"set", `unknown set of parameters "papr"`, `did you mean "paper"?`}},
		},
		{
			"pcn", "paper", nil,
			[]Problem{{"set", `unknown set of parameters "paper": the scheme has no sets`, ""}},
		},
		{
			"pcn_dctcp", "", map[string]string{"g": "0.1"},
			[]Problem{{"g", "0.1 is not a power of 1/2", "write 1/16"}},
		},
		{
			"ldcp", "", map[string]string{"eta": "1"},
			[]Problem{{"eta", "1 is out of range", "0.0000152587890625 to below 1"}},
		},
	} {
		t.Run(tc.scheme, func(t *testing.T) {
			o := findScheme(t, tc.scheme).Object
			_, problems := o.Resolve(Settings{Set: tc.set, Given: given(t, o, tc.given)}, network)
			qt.Assert(t, qt.DeepEquals(problems, tc.want))
		})
	}
}

func TestBoundsThatAreLeftOut(t *testing.T) {
	o := mustRead(t, structOf(param("share", typedef("q24", u32), "above 0 to below 1", "0.5")))
	inRange := map[string]bool{"0": false, "0.001": true, "0.999": true, "1": false}
	for text, inRange := range inRange {
		_, problems := o.Resolve(
			Settings{Given: given(t, o, map[string]string{"share": text})}, network,
		)
		qt.Check(t, qt.Equals(len(problems) == 0, inRange), qt.Commentf("%s", text))
		if !inRange {
			qt.Check(t, qt.Equals(problems[0].Hint, "above 0 to below 1"))
		}
	}
}

// encode writes a struct as C does, field by field.
func encode(t *testing.T, fields any) []byte {
	t.Helper()
	data, err := binary.Append(nil, binary.LittleEndian, fields)
	qt.Assert(t, qt.IsNil(err))
	return data
}

// checkBytes compares a variable with what the fields of C are to be.
func checkBytes(t *testing.T, v *Values, variable string, tcd bool, fields any) {
	t.Helper()
	data, err := v.Bytes(variable, network, tcd)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(data, encode(t, fields)))
}

func TestBytesOfDCQCN(t *testing.T) {
	v := resolve(
		t, findScheme(t, "dcqcn").Object, "ns3-rdma",
		map[string]string{"g": "1/128", "marking.pmax": "25%"},
	)
	checkBytes(t, v, ParamsVariable, false, struct {
		LineRateBps, MinRateBps, RAIBps, RHAIBps uint64
		TimerNs, ByteCounterBytes, HyperBytes    uint64
		Threshold, Half, TargetGuard, Pad        uint32
		AlphaTimerNs, DecreaseIntervalNs         uint64
		G, InitialAlpha, ClampTarget, AlphaFirst uint32
		DecreaseClock, UEResets                  uint32
	}{
		LineRateBps: 40e9, MinRateBps: 100e6, RAIBps: 40e6, RHAIBps: 200e6,
		TimerNs: 60e3, ByteCounterBytes: 300e6, Threshold: 5, AlphaTimerNs: 55e3,
		G: 1 << 17, InitialAlpha: 1 << 23, ClampTarget: 1, AlphaFirst: 1,
	})
	checkBytes(t, v, NotificationVariable, false, struct{ IntervalNs uint64 }{50e3})
	checkBytes(t, v, MarkerVariable, false, struct {
		KMinBytes, KMaxBytes uint64
		PMax, Pad            uint32
	}{40e3, 1000e3, 1 << 22, 0})

	none, err := v.Bytes("wred_params", network, false)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(none))
}

func TestBytesOfTIMELY(t *testing.T) {
	type params struct {
		LineRateBps, MinRateBps, DeltaBps       uint64
		TLowNs, THighNs, MinRTTNs, SegmentBytes uint64
		EWMA, Beta, MaxCut                      uint32
		HAIAfter, HAIFactor, DeltaFactor        uint32
		TCDHoldNs                               uint64
		PerRTT, CountIncreases                  uint32
	}
	v := resolve(t, findScheme(t, "timely").Object, "", nil)
	want := params{
		LineRateBps: 40e9, MinRateBps: 40e6, DeltaBps: 40e6, THighNs: 1e6,
		MinRTTNs: 60e3, // that of the network
		EWMA:     335544, Beta: 13421773, MaxCut: 1 << 23,
		HAIAfter: 5, HAIFactor: 5, DeltaFactor: 1,
	}
	checkBytes(t, v, ParamsVariable, false, want)
	want.TCDHoldNs = 55e3
	checkBytes(t, v, ParamsVariable, true, want)

	v = resolve(t, findScheme(t, "timely").Object, "", map[string]string{"min_rtt": "7us"})
	want.MinRTTNs = 7e3
	checkBytes(t, v, ParamsVariable, true, want)
}

// The table of InfiniBand's congestion control: entry i delays by 15 * (i / 127)^2 packet times.
func TestBytesOfIBCC(t *testing.T) {
	o := findScheme(t, "ibcc").Object
	v := resolve(t, o, "", map[string]string{"ccti_limit": "100", "ccti_min": "2"})
	want := struct {
		LineRateBps, TimerNs           uint64
		Increase, Limit, Min, Exponent uint32
		Delay                          uint64
		CCT                            [128]uint16
	}{
		LineRateBps: 40e9, TimerNs: 20e3, Increase: 1, Limit: 100, Min: 2, Exponent: 2,
		Delay: 15 << 24,
	}
	for i := range want.CCT {
		eighths := 8 * 15 * float64(min(i, 100)*min(i, 100)) / 10_000
		want.CCT[i] = 3<<14 | uint16(eighths+0.5)
	}
	checkBytes(t, v, ParamsVariable, false, want)
}

// Every choice of every enum gets its number in C.
func TestBytesOfChoices(t *testing.T) {
	o := findScheme(t, "pcn").Object
	for text, want := range map[string]uint32{"cnp": 0, "ack": 1, "auto": 2, "ece": 3} {
		v := resolve(
			t, o, "", map[string]string{"feedback": text, "T_jitter": "0.5", "rate_unit": "10kbps"},
		)
		checkBytes(t, v, ParamsVariable, false, struct {
			LineRateBps, MinRateBps uint64
			WMin, WMax, Feedback    uint32
			CatchUp                 uint32
			TNs                     uint64
			IdleCut, YoungBytes     uint32
			WYoung, Pad             uint32
			BurstNs                 uint64
			Doubt, Careful          uint32
			HoldNs, PeriodNs        uint64
		}{40e9, 10e3, 1 << 17, 1 << 23, want, 0, 50e3, 1 << 24, 0, 1 << 17, 0, 0, 0, 0,
			500e6, 50e3})
		checkBytes(t, v, NotificationVariable, false, struct {
			TNs                                         uint64
			CongestedPermille, RateUnitBps, Jitter, Pad uint32
			Window, Rest                                uint32
		}{50e3, 950, 10e3, 1 << 23, 0, 0, 0})
	}
	qcn := findScheme(t, "qcn").Object
	qt.Assert(t, qt.DeepEquals(qcn.Param("half_from").Choices, []string{"ai", "hai"}))
	_, err := qcn.Param("half_from").Parse("never")
	qt.Assert(t, qt.ErrorMatches(err, `unknown half_from "never" \(hint: one of ai, hai\)`))
}

func TestDivisorsInWords(t *testing.T) {
	for _, c := range []struct {
		kind                    Kind
		whole, value, low, high float64
		want                    string
	}{
		{KindCount, 100, 7, 1, 100, "5 or 10 do"},
		{KindCount, 100, 60, 1, 60, "50 does"},
		{KindCount, 100, 3, 3, 100, "4 does"},
		{KindCount, 100, 7, 6, 8, ""},
		{KindRate, 8e9, 3000, 1000, 1e6, "2.56kbps or 3.125kbps do"},
		{KindCount, 2_147_483_647, 1e9, 1, 2e9, ""}, // a prime
	} {
		got := divisorsInWords(c.kind, c.whole, c.value, c.low, c.high)
		qt.Check(t, qt.Equals(got, c.want), qt.Commentf("%+v", c))
	}
}

// Defaults that are shares of the link's rate are not below their range on slow links.
func TestDefaultsOfSlowLinks(t *testing.T) {
	slow := network
	slow.LineRateBps = 1000
	for scheme, want := range map[string]map[string]float64{
		"dcqcn": {"min_rate": 1000}, "timely": {"min_rate": 1000},
		"ldcp": {"marking.kmax": 1},
	} {
		o := findScheme(t, scheme).Object
		v, problems := o.Resolve(Settings{}, slow)
		qt.Assert(t, qt.HasLen(problems, 0), qt.Commentf("%s", scheme))
		for key, number := range want {
			qt.Check(t, qt.Equals(v.Get(key).Number, number), qt.Commentf("%s.%s", scheme, key))
		}
	}
	_, problems := findScheme(t, "pcn").Object.Resolve(Settings{}, slow)
	qt.Check(t, qt.DeepEquals(problems, []Problem{{"min_rate", "1Mbps is out of range",
		"no value is right here: the link is too slow for the scheme's other parameters"}}))
}
