// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config/scheme"
)

// compiledSchema returns the schema of experiment files as editors read it.
func compiledSchema(t *testing.T) *validator.Schema {
	t.Helper()
	var text bytes.Buffer
	qt.Assert(t, qt.IsNil(Schema(scheme.Builtin()).Write(&text)))
	doc, err := validator.UnmarshalJSON(&text)
	qt.Assert(t, qt.IsNil(err))
	c := validator.NewCompiler()
	qt.Assert(t, qt.IsNil(c.AddResource("experiment.json", doc)))
	s, err := c.Compile("experiment.json")
	qt.Assert(t, qt.IsNil(err))
	return s
}

// validate checks a YAML file against the schema.
func validate(t *testing.T, s *validator.Schema, file string) error {
	t.Helper()
	var doc any
	qt.Assert(t, qt.IsNil(yaml.Unmarshal([]byte(file), &doc)))
	return validateValue(t, s, doc)
}

func validateValue(t *testing.T, s *validator.Schema, doc any) error {
	t.Helper()
	data, err := json.Marshal(doc)
	qt.Assert(t, qt.IsNil(err))
	instance, err := validator.UnmarshalJSON(bytes.NewReader(data))
	qt.Assert(t, qt.IsNil(err))
	return s.Validate(instance)
}

func TestSchemaTakesWhatIsRead(t *testing.T) {
	s := compiledSchema(t)
	files := map[string]string{
		"smallest": smallest, "full": full, "sweep": sweep,
		"numbers for texts": strings.Replace(full, "title: Everything", "title: 7", 1),
		"zero":              strings.Replace(full, "T: 25us", "T_jitter: 0", 1),
		"workloads": smallest + `workload:
  - {name: a, cdf: web-search, load: 50%, incast: 1..3}
  - {name: b, cdf: ./mine.cdf, mean_rate: 1Gbps, incast: 2}`,
		"workload": smallest + `workload: {cdf: web-search, load: 0.5}`,
		"file": strings.Replace(
			smallest, "{kind: fig1}", "{file: topology.txt, failed: L0-T3}", 1,
		),
		"own": strings.Replace(smallest, "[pfc]", "[pfc, mine]", 1) +
			"algorithms: {mine: mine.c}\nmine: {step: 1}\n",
	}
	shipped, err := filepath.Glob("../../netns-lab/experiments/*.yaml")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(len(shipped) > 20))
	for _, path := range shipped {
		data, err := os.ReadFile(path)
		qt.Assert(t, qt.IsNil(err))
		files[filepath.Base(path)] = string(data)
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			qt.Assert(t, qt.IsNil(validate(t, s, file)))
		})
	}
}

func TestSchemaRefusesMistakes(t *testing.T) {
	s := compiledSchema(t)
	for _, tc := range []struct{ name, old, new string }{
		{"unknown key", "title:", "titel:"},
		{"unknown key of a struct", "delay: 1us", "delai: 1us"},
		{"unknown key of a section", "w_min: 0.01", "w_mim: 0.01"},
		{"unknown key in a section", "marking: {kmin: 11KB", "marking: {kmim: 11KB"},
		{"unknown section", "timely:", "timly:"},
		{"no unit", "rate: 10Gbps", "rate: 10"},
		{"wrong unit", "delay: 1us", "delay: 1KB"},
		{"unit of a parameter", "alpha_timer: 1us", "alpha_timer: 1Gbps"},
		{"size without unit", "frame: 1500B", "frame: 1500"},
		{"text for a ratio", "w_max: 0.25", "w_max: half"},
		{"ratio out of range", "w_max: 0.25", "w_max: 1.5"},
		{"bound that is left out", "eta: 0.75", "eta: 1"},
		{"count out of range", "ccti_limit: 63", "ccti_limit: 128"},
		{"count with fraction", "ccti_limit: 63", "ccti_limit: 6.3"},
		{"text for a flag", "clamp_target: false", "clamp_target: never"},
		{"unknown choice", "feedback: auto", "feedback: aut"},
		{"choice that users do not have", "half_from: hai", "half_from: never"},
		{"unknown set", "set: ns3-rdma", "set: ns3"},
		{"set of a scheme without", "pcn: {T", "pcn: {set: paper, T"},
		{"unknown scheme", "schemes: [pfc, pcn]", "schemes: [pfc, pnc]"},
		{"no scheme", "schemes: [pfc, pcn]", "schemes: []"},
		{"one scheme without a list", "schemes: [pfc, pcn]", "schemes: pfc"},
		{"unknown kind", "kind: fig1", "kind: fig7"},
		{"no kind", "kind: fig1, ", ""},
		{"unknown metric", "metric: lateness_p99", "metric: latenes_p99"},
		{"no metric", "metric: lateness_p99, ", ""},
		{"no bound", ", max: 5%}", "}"},
		{"unknown moment", "since: pause_end", "since: pause_ends"},
		{"no receiver", "to: R0, start", "start"},
		{"bad range of nodes", "H2..H3, to", "H2...H3, to"},
		{"negative seed", "seed: 7", "seed: -7"},
		{"no duration", "duration: 4ms\n", ""},
		{"point of one", "[0ms, 64KB]", "[0ms]"},
		{"no value", "seed: 7", "seed:"},
		{"own section without algorithms", "seed: 7", "seed: 7\nmine: {step: 1}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.StringContains(full, tc.old))
			file := strings.Replace(full, tc.old, tc.new, 1)
			_, err := Parse("f.yaml", []byte(file))
			qt.Assert(t, qt.IsNotNil(err), qt.Commentf("the decoder takes it"))
			qt.Assert(t, qt.IsNotNil(validate(t, s, file)))
		})
	}
}

// isMissing finds what the decoder says of keys that must be there.
var isMissing = regexp.MustCompile(`"\w+" is missing`)

// What the schema requires, the decoder does, and the reverse: each key of each mapping is left out
// in turn.
func TestSchemaRequiresWhatTheDecoderDoes(t *testing.T) {
	s := compiledSchema(t)
	left := 0
	for _, file := range []string{full, sweep} {
		var root yaml.Node
		qt.Assert(t, qt.IsNil(yaml.Unmarshal([]byte(file), &root)))
		eachKeyLeftOut(root.Content[0], "", func(path string) {
			left++
			data, err := yaml.Marshal(&root)
			qt.Assert(t, qt.IsNil(err))
			_, err = Parse("f.yaml", data)
			refused := validate(t, s, string(data)) != nil
			if refused {
				qt.Check(t, qt.IsNotNil(err), qt.Commentf("the schema requires %s", path))
			}
			if err != nil && isMissing.MatchString(err.Error()) {
				qt.Check(
					t, qt.IsTrue(refused),
					qt.Commentf("the schema does not require %s: %v", path, err),
				)
			}
		})
	}
	qt.Assert(t, qt.IsTrue(left > 200))
}

// eachKeyLeftOut calls visit with each key of each mapping left out.
func eachKeyLeftOut(n *yaml.Node, path string, visit func(path string)) {
	if n.Kind == yaml.MappingNode {
		whole := n.Content
		for i := 0; i+1 < len(whole); i += 2 {
			n.Content = append(append([]*yaml.Node{}, whole[:i]...), whole[i+2:]...)
			visit(path + "." + whole[i].Value)
			n.Content = whole
			eachKeyLeftOut(whole[i+1], path+"."+whole[i].Value, visit)
		}
		return
	}
	for i, item := range n.Content {
		eachKeyLeftOut(item, fmt.Sprintf("%s[%d]", path, i), visit)
	}
}

// Every key of every section says what it is, its range and its default.
func TestSchemaDescribesParameters(t *testing.T) {
	s := Schema(scheme.Builtin())
	qt.Assert(
		t,
		qt.Equals(
			s.Properties["pcn"].Properties["T"].Description,
			"Period at which a receiver sends CNPs. 1us to 1s. Default: 50us. auto: min(1s, "+
				"max(max(1us, base_rtt), 192 * 8 * 1s * frame * flows / line_rate)).",
		),
	)
	qt.Assert(t, qt.Equals(s.Properties["dcqcn"].Properties["alpha_timer"].Description,
		"K, the time without a CNP after which alpha decays. 1us to 1s. "+
			"Default: 55us (paper), 55us (ns3-rdma), 1us (hpcc)."))
	qt.Assert(t, qt.IsNotNil(s.Properties["ldcp"].Properties["marking"].Properties["kmin"]))
	for section, o := range scheme.Builtin().Sections() {
		for _, p := range o.Params {
			at := s.Properties[section]
			for key := range strings.SplitSeq(p.Key, ".") {
				at = at.Properties[key]
			}
			qt.Check(t, qt.StringContains(at.Description, p.Doc))
			qt.Check(t, qt.StringContains(at.Description, p.Range))
		}
	}
}
