// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/host"
)

// The schema takes what the decoder takes, and refuses what it refuses.
func TestSchema(t *testing.T) {
	var text bytes.Buffer
	qt.Assert(t, qt.IsNil(host.Schema().Write(&text)))
	doc, err := validator.UnmarshalJSON(&text)
	qt.Assert(t, qt.IsNil(err))
	c := validator.NewCompiler()
	qt.Assert(t, qt.IsNil(c.AddResource("host.json", doc)))
	s, err := c.Compile("host.json")
	qt.Assert(t, qt.IsNil(err))

	shipped, err := os.ReadFile(shippedFile)
	qt.Assert(t, qt.IsNil(err))
	valid := []string{
		string(shipped),
		"rtt: 1ms\ncontrols: {pcn: {w_max: 0.4, max_flows: 10}}\n",
		"rtt: 1ms\ncontrols: {pcn: {}}\nnp: {interfaces: [a], udp_ports: [4791]}\n",
		"wred: {interfaces: [a], kmin: 50KB}\n",
	}
	for _, text := range slices.Concat(valid, []string{
		"rtt: 1ms\ncontrols: {ldcp: {alpha: 1/2}, cubic: {}}\n",
		"rtt: 1ms\ncontrols: {pnc: {}}\n",
		"rtt: 1ms\ncontrols: {pcn: {max_flows: 0}}\n",
		"rtt: 1ms\ncontrols: {pcn: {T: 1ms}}\n", // the receiver's
		"rtt: 1\ncontrols: {pcn: {}}\n",
		"np: {T: 50us}\n",
		"stamp: {interfaces: eth0}\n",
		"wred: {interfaces: [a]}\n",
		"cgroups: [{path: /sys/fs/cgroup/a}]\n",
	}) {
		valid := slices.Contains(valid, text)
		_, err := host.Parse("f.yaml", []byte(text))
		qt.Check(t, qt.Equals(err == nil, valid), qt.Commentf("decoder: %s: %v", text, err))

		var file any
		qt.Assert(t, qt.IsNil(yaml.Unmarshal([]byte(text), &file)))
		data, err := json.Marshal(file)
		qt.Assert(t, qt.IsNil(err))
		instance, err := validator.UnmarshalJSON(bytes.NewReader(data))
		qt.Assert(t, qt.IsNil(err))
		err = s.Validate(instance)
		qt.Check(t, qt.Equals(err == nil, valid), qt.Commentf("schema: %s: %v", text, err))
	}
}
