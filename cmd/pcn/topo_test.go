// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

const fabricYAML = `
name: fabric
topology:
  {kind: leaf-spine, leaves: 3, hosts: 16, rate: 10Gbps,
   spine_links: {rate: 40Gbps, delay: 1us, parallel: 2}, links: [{link: L2-S1.0, delay: 1us}]}
schemes: [pcn]
duration: 1ms
flows: [{name: F0, from: H0, to: H47}]
cases:
  - {name: broken, set: {topology.failed: L2-S1}}
  - {name: uneven, set: {topology.links.0.rate: 10Gbps}}
`

func TestTopo(t *testing.T) {
	dir := t.TempDir()
	file, svg := filepath.Join(dir, "fabric.yaml"), filepath.Join(dir, "fabric.svg")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(fabricYAML), 0o644)))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{file}, `tier   nodes  links up and across  oversubscription
host   48     48 of 10Gbps, 5us    
leaf   3      12 of 40Gbps, 1us    1:1
spine  2                           

nodes         53, 48 of them hosts
links         60, 120 ports
longest path  4 links, round trip 24us
bisection     240Gbps from the first half of the hosts to the second
own values    L2-S1.0: 40Gbps, 1us
`},
		{[]string{file, "--case", "broken", "--svg", svg}, `tier   nodes  links up and across  oversubscription
host   48     48 of 10Gbps, 5us    
leaf   3      10 of 40Gbps, 1us    2:1
spine  2                           

nodes         53, 48 of them hosts
links         58, 116 ports
failed        L2-S1.0, L2-S1.1
longest path  4 links, round trip 24us
bisection     160Gbps from the first half of the hosts to the second
`},
		{[]string{file, "--case", "uneven"}, `tier   nodes  links up and across                  oversubscription
host   48     48 of 10Gbps, 5us                    
leaf   3      11 of 40Gbps, 1us; 1 of 10Gbps, 1us  1.23:1
spine  2                                           

nodes         53, 48 of them hosts
links         60, 120 ports
longest path  4 links, round trip 24us
bisection     210Gbps from the first half of the hosts to the second
own values    L2-S1.0: 10Gbps, 1us
`},
	} {
		out, code, err := pcn(t, append([]string{"topo"}, c.args...)...)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(code, 0))
		qt.Check(t, qt.Equals(out, c.want))
	}
	drawing, err := os.ReadFile(svg)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.StringContains(string(drawing), "<svg"))

	_, _, err = pcn(t, "topo", file, "--case", "none")
	qt.Check(t, qt.ErrorAs(err, new(usageError)))
	_, _, err = pcn(t, "topo", "nothing")
	qt.Check(t, qt.ErrorMatches(err, `no experiment is named "nothing" .*`))
	_, _, err = pcn(t, "topo", file, "--svg", filepath.Join(dir, "no/such.svg"))
	qt.Check(t, qt.ErrorMatches(err, "draw the network: .*no such file or directory"))
}
