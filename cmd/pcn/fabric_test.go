// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/fabric"
)

const shortOfRoom = `{
"PORT": {"Ethernet0": {"speed": "100000", "mtu": "9100"}},
"CABLE_LENGTH": {"AZURE": {"Ethernet0": "300m"}},
"BUFFER_PROFILE": {"near": {"xoff": "18432"}},
"BUFFER_PG": {"Ethernet0|3": {"profile": "near"}}
}`

func TestFabricCheckOfASwitch(t *testing.T) {
	dir := t.TempDir()
	file, shown := filepath.Join(dir, "config_db.json"), filepath.Join(dir, "shown")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(shortOfRoom), 0o600)))
	r := printed[fabric.Result](t, exitExpect, "fabric", "check", file, "--json", "--experiments",
		shown)
	qt.Assert(t, qt.HasLen(r.Findings, 1))
	f := r.Findings[0]
	qt.Check(t, qt.Equals(f.File, file))
	qt.Check(t, qt.Equals(f.Key, "BUFFER_PROFILE|near|xoff"))
	qt.Check(t, qt.Equals(f.Line, 4))
	qt.Check(t, qt.StringContains(f.Show, "pcn run "+filepath.Join(shown, "1-headroom.yaml")))
	_, err := experiment.Load(filepath.Join(shown, "1-headroom.yaml"))
	qt.Check(t, qt.IsNil(err))

	var usage usageError
	_, _, err = pcn(t, "fabric", "check", "hol", "--experiments", shown)
	qt.Check(t, qt.ErrorAs(err, &usage))
	qt.Check(t, qt.ErrorMatches(err, ".*--experiments is for config_db.json.*"))
	_, _, err = pcn(t, "fabric", "check", file, "--case", "a")
	qt.Check(t, qt.ErrorAs(err, &usage))
	qt.Check(t, qt.ErrorMatches(err, ".*a switch has no cases.*"))
	_, _, err = pcn(t, "fabric", "check", filepath.Join(dir, "none.json"))
	qt.Check(t, qt.IsTrue(errors.Is(err, os.ErrNotExist)))
}

const clabOfTwo = `name: two
topology:
  kinds:
    sonic-vs: {startup-config: __clabNodeName__.json}
  nodes:
    leaf0: {kind: sonic-vs}
    leaf1: {kind: sonic-vs}
    spine: {kind: nokia_srlinux, startup-config: spine.cfg}
    h0: {kind: linux}
    h1: {kind: linux}
    h2: {kind: linux}
    h3: {kind: linux}
  links:
    - endpoints: [leaf0:eth1, spine:eth1]
    - endpoints: [leaf1:eth1, spine:eth2]
    - endpoints: [h0:eth1, leaf0:eth2]
    - endpoints: [h1:eth1, leaf0:eth3]
    - endpoints: [h2:eth1, leaf1:eth2]
    - endpoints: [h3:eth1, leaf1:eth3]
`

// Of a topology of containerlab the links are checked, and the configurations that it names.
func TestFabricCheckOfContainerlab(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "two.clab.yml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(clabOfTwo), 0o600)))
	leaf0 := filepath.Join(dir, "leaf0.json")
	qt.Assert(t, qt.IsNil(os.WriteFile(leaf0, []byte(shortOfRoom), 0o600)))
	type place struct {
		file, key string
		line      int
	}
	found := func(r fabric.Result) (places []place) {
		for _, f := range r.Findings {
			places = append(places, place{f.File, f.Key, f.Line})
		}
		return places
	}
	oversubscribed := place{file, "topology.links", 14}
	r := printed[fabric.Result](t, exitExpect, "fabric", "check", file, "--json")
	qt.Check(t, qt.IsTrue(slices.Equal(found(r), []place{
		{file, "topology.nodes.leaf1.startup-config", 4},
		{leaf0, "BUFFER_PROFILE|near|xoff", 4}, oversubscribed})), qt.Commentf("%v", found(r)))

	// without configurations that are SONiC's, and without hosts
	text := strings.ReplaceAll(clabOfTwo, ".json", ".cfg")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o600)))
	r = printed[fabric.Result](t, 0, "fabric", "check", file, "--json")
	qt.Check(t, qt.IsTrue(slices.Equal(found(r), []place{oversubscribed})))
	text, _, _ = strings.Cut(text, "    - endpoints: [h0")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o600)))
	r = printed[fabric.Result](t, 0, "fabric", "check", file, "--json")
	qt.Check(t, qt.HasLen(r.Findings, 0))

	_, _, err := pcn(t, "fabric", "check", file, "--case", "a")
	qt.Check(t, qt.ErrorMatches(err, ".*a topology has no cases.*"))
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte("topology: {nodes: {a: 3}}"), 0o600)))
	_, _, err = pcn(t, "fabric", "check", file)
	qt.Check(t, qt.ErrorMatches(err, ".*two.clab.yml:1: node a: want a mapping"))
}

func TestChakraFiles(t *testing.T) {
	const trace = `{"workload_graph": [{"Id": 1, "NodeType": 7, "comm_type": 0, "comm_size": 8,
		"pg_name": "dp"}]}`
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o600)))
		return file
	}
	_, _, err := pcn(t, "workload", "chakra", dir)
	qt.Check(t, qt.ErrorMatches(err, `.* has no \*.et and no \*.json: want a trace of each rank`))
	a, b := write("t.0.json", trace), write("t.1.json", trace)
	out, code, err := pcn(t, "workload", "chakra", dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(code, 0))
	qt.Check(t, qt.Equals(strings.Count(out, "send 4b"), 4))
	groups := write("groups.txt", `{"dp": [1]}`)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{a, a}, `.*t.0.json: want NAME.RANK.et, with ranks 0 to 1, each once`},
		{[]string{b}, `.*t.1.json: want NAME.RANK.et, with ranks 0 to 0, each once`},
		{[]string{a, b, "--groups", groups},
			`rank 0: node 1 \(""\): process group "dp" has no rank 0`},
		{[]string{a, b, "--groups", a}, `.*t.0.json: want .*`},
		{[]string{write("t.0.et", "no trace")}, `.*t.0.et: byte 0: no message.*`},
	} {
		_, _, err := pcn(t, append([]string{"workload", "chakra"}, tc.args...)...)
		qt.Check(t, qt.ErrorMatches(err, tc.want))
	}
}
