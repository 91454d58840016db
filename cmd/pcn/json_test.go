// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/jsonschema"
	"github.com/pcn-linux/pcn/internal/jsonout"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
)

// printed runs a command that prints JSON, and decodes it strictly.
func printed[T any](t *testing.T, wantCode int, args ...string) T {
	t.Helper()
	out, code, err := pcn(t, args...)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(code, wantCode))
	var v T
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	qt.Assert(t, qt.IsNil(d.Decode(&v)), qt.Commentf("%s", out))
	qt.Check(t, qt.IsFalse(d.More()))
	follows(t, jsonschema.OfOutput(reflect.TypeFor[T]()), out)
	return v
}

// follows checks a printed text by a schema.
func follows(t *testing.T, s *jsonschema.Schema, out string) {
	t.Helper()
	var value any
	qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(out), &value)))
	wrong := againstSchema(s, value, "$")
	qt.Check(t, qt.HasLen(wrong, 0), qt.Commentf("%s", strings.Join(wrong, "\n")))
}

// againstSchema returns what is not as a schema of an output has it.
func againstSchema(s *jsonschema.Schema, value any, at string) (wrong []string) {
	is := jsonschema.Null
	switch v := value.(type) {
	case bool:
		is = jsonschema.Boolean
	case string:
		is = jsonschema.String
	case float64:
		is = jsonschema.Number
	case []any:
		is = jsonschema.Array
		for i, item := range v {
			wrong = append(wrong, againstSchema(s.Items, item, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		is = jsonschema.Object
		for _, key := range s.Required {
			if _, ok := v[key]; !ok {
				wrong = append(wrong, at+" lacks "+key)
			}
		}
		values, _ := s.AdditionalProperties.(*jsonschema.Schema)
		for key, item := range v {
			of := cmp.Or(s.Properties[key], values)
			if of == nil {
				wrong = append(wrong, at+" has "+key+", which the schema lacks")
				continue
			}
			wrong = append(wrong, againstSchema(of, item, at+"."+key)...)
		}
	}
	allowed, several := s.Type.(jsonschema.Types)
	if !several {
		allowed = jsonschema.Types{s.Type.(jsonschema.Type)}
	}
	whole, ok := value.(float64)
	isWhole := ok && whole == math.Trunc(whole) && slices.Contains(allowed, jsonschema.Integer)
	if !slices.Contains(allowed, is) && !isWhole {
		wrong = append(wrong, fmt.Sprintf("%s is %v, a %s; want %v", at, value, is, allowed))
	}
	return wrong
}

// Every output has a schema that is JSON.
func TestSchemasOfOutputs(t *testing.T) {
	for _, command := range outputKinds() {
		out, code, err := pcn(t, "schema", "--output", command)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(code, 0))
		var s struct {
			Schema string `json:"$schema"`
			Type   string `json:"type"`
		}
		qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(out), &s)))
		qt.Check(t, qt.Matches(s.Type, "object|array"), qt.Commentf("%s", command))
		qt.Check(t, qt.StringContains(s.Schema, "2020-12"))
	}
	_, _, err := pcn(t, "schema", "--output", "runs")
	qt.Check(t, qt.ErrorMatches(err, `unknown output "runs" \(hint: did you mean "run"\?\)`))
}

// What lists print follows its schema.
func TestListsFollowTheirSchemas(t *testing.T) {
	for _, command := range []string{"list", "scheme list", "scheme show pcn", "reproduce --list"} {
		out, code, err := pcn(t, append(strings.Fields(command), "--json")...)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(code, 0))
		follows(t, jsonschema.OfOutput(outputs()[strings.TrimSuffix(command, " pcn")]), out)
	}
}

// The checker of these tests sees what is wrong.
func TestAgainstSchema(t *testing.T) {
	s := jsonschema.OfOutput(reflect.TypeFor[jsonout.Metric]())
	good, err := json.Marshal(jsonout.Metric{Measured: &jsonout.Quantity{Value: 1, Unit: "ns"}})
	qt.Assert(t, qt.IsNil(err))
	for change, want := range map[string]string{
		`"ns"|"ns"`: "", `"ns"|1`: `.*unit is 1.*`, `"value":1|"value":null`: "",
		`"case":""|"case":null`: `.*case is .*`, `"case":""|"kase":""`: `(?s).*lacks case.*`,
		`{"value":1,"unit":"ns"}|null`: "", `"interval":null|"interval":[]`: `.*interval is .*`,
	} {
		old, changed, _ := strings.Cut(change, "|")
		var value any
		text := strings.Replace(string(good), old, changed, 1)
		qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(text), &value)), qt.Commentf("%s", text))
		wrong := strings.Join(againstSchema(s, value, "$"), "\n")
		qt.Check(t, qt.Matches(wrong, want), qt.Commentf("%s", change))
	}
}

func TestRunAsJSON(t *testing.T) {
	dir := t.TempDir()
	file, out := filepath.Join(dir, "small.yaml"), filepath.Join(dir, "out")
	text := strings.Replace(small, "schemes:", `expect:
  - {what: no packet is lost, metric: lost_packets, max: 0}
  - {what: impossible, scheme: pcn, metric: lost_packets, min: 1}
schemes:`, 1)
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o600)))
	o := printed[jsonout.Outcomes](t, exitExpect, "run", file, "--engine", "sim", "--json",
		"--out", out)
	qt.Check(t, qt.Equals(o.Experiment, "small"))
	qt.Check(t, qt.IsFalse(o.Pass))
	qt.Assert(t, qt.HasLen(o.Runs, 2))
	qt.Check(t, qt.Equals(o.Runs[0].Engine, "sim"))
	qt.Check(t, qt.Equals(o.Runs[0].Verdict, string(result.Valid)))
	passed := map[string]bool{}
	for _, x := range o.Expectations {
		passed[x.Scheme+" "+x.What] = x.Pass
		qt.Check(t, qt.DeepEquals(x.Measured, []jsonout.Quantity{{Value: 0, Unit: "count"}}))
	}
	qt.Check(t, qt.DeepEquals(passed, map[string]bool{
		"pfc no packet is lost": true, "pcn no packet is lost": true, "pcn impossible": false,
	}))

	data, err := os.ReadFile(filepath.Join(out, jsonout.ExpectationsFile))
	qt.Assert(t, qt.IsNil(err))
	var kept jsonout.Outcomes
	qt.Assert(t, qt.IsNil(json.Unmarshal(data, &kept)))
	qt.Check(t, qt.DeepEquals(kept, o))

	seeds := printed[jsonout.Outcomes](t, exitExpect, "run", file, "--engine", "sim", "--json",
		"--seeds", "1..2", "--out", filepath.Join(dir, "seeds"))
	qt.Check(t, qt.HasLen(seeds.Runs, 4))
	qt.Check(t, qt.HasLen(seeds.Expectations, 3))
	qt.Check(t, qt.HasLen(seeds.Expectations[0].Intervals, 1))
	qt.Assert(t, qt.HasLen(seeds.Seeds, 2))
	qt.Check(t, qt.Equals(seeds.Seeds[1].Seed, 2))
	qt.Check(t, qt.HasLen(seeds.Seeds[1].Expectations, 3))
}

func TestCompareAndDiffAsJSON(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	fig2(t, parse(t, small+compared), a, asIs)
	fig2(t, parse(t, small+compared), b, func(r *result.Run) {
		if r.Manifest.Scheme == "pfc" {
			r.Manifest.Seed++
		}
	})
	all := printed[[]jsonout.Compared](t, 0, "compare", a, "--json")
	qt.Assert(t, qt.HasLen(all, 1))
	qt.Check(t, qt.Equals(all[0].Baseline, "pcn"))
	loss := all[0].Comparisons[0]
	qt.Assert(t, qt.HasLen(loss.Values, 2))
	qt.Check(t, qt.DeepEquals(loss.Values[0].Measured, &jsonout.Quantity{Value: 3.3e6, Unit: "ns"}))
	qt.Check(t, qt.Equals(*loss.Values[0].Ratio, 3))
	lost := all[0].Comparisons[1]
	qt.Check(t, qt.IsNil(lost.Values[0].Ratio)) // to 0

	qt.Check(t, qt.DeepEquals(
		printed[[]jsonout.Diff](t, 0, "diff", a+"/pcn", b+"/pcn", "--json"),
		[]jsonout.Diff{{Run: "small pcn", Same: true, Differences: []jsonout.Difference{}}}))
	differ := printed[[]jsonout.Diff](t, exitDiffer, "diff", a, b, "--json")
	qt.Assert(t, qt.HasLen(differ, 2))
	qt.Check(t, qt.Equals(differ[0].Differences[0].What, "seed"))
}

func TestTopoAsJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(fabricYAML), 0o600)))
	n := printed[jsonout.Topology](t, 0, "topo", file, "--case", "broken", "--json")
	qt.Check(t, qt.Equals(n.Nodes, 53))
	qt.Check(t, qt.Equals(n.Hosts, 48))
	qt.Check(t, qt.Equals(n.RoundTripNs, 24_000))
	qt.Check(t, qt.Equals(n.BisectionBps, 160e9))
	qt.Check(t, qt.DeepEquals(n.FailedLinks, []string{"L2-S1.0", "L2-S1.1"}))
	qt.Check(t, qt.Equals(*n.Tiers[1].Oversubscription, 2))
	qt.Check(t, qt.IsNil(n.Built))
}

func TestDoctorAsJSON(t *testing.T) {
	out, _, err := pcn(t, "doctor", "--json") // the exit code is this machine's
	qt.Assert(t, qt.IsNil(err))
	follows(t, jsonschema.OfOutput(outputs()["doctor"]), out)
	var all []jsonout.Check
	qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(out), &all)))
	qt.Assert(t, qt.HasLen(all, len(launch.Doctor())))
	for _, c := range all {
		qt.Check(t, qt.Equals(c.OK, c.Error == ""), qt.Commentf("%s", c.What))
	}
}
