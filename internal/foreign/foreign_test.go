// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// parsed returns the experiment of a network, without its comments, and these.
func parsed(t *testing.T, n *Network, from string) (e *experiment.Experiment, comments string) {
	t.Helper()
	text, err := n.Experiment(from)
	qt.Assert(t, qt.IsNil(err))
	e, err = experiment.ParseWith(from, []byte(text), experiment.Options{Idle: true})
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", text))
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			comments += line
		}
	}
	return e, comments
}

const lab = `name: My_lab
mgmt: {network: x}
topology:
  defaults: {kind: linux}
  kinds:
    linux: {image: "alpine:3", env: {A: b}}
  nodes:
    client:
      exec:
        - ip addr add 192.168.1.2/24 dev eth1
        - "ping -c 1 'router'"
        - sh -c "curl http://server/ 192.168.2.2:80"
      binds: [a:b]
    router:
      cmd: /usr/lib/frr/docker-start
    server:
      cmd: python3 -m http.server 80
      env: {A: c}
      exec: [ip addr add 192.168.2.2/24 dev eth1]
    sw: {kind: bridge}
    vendor: {kind: nokia_srlinux}
    alone: {}
  links:
    - endpoints: ["client:eth1", "router:eth1"]
    - type: veth
      endpoints:
        - {node: router, interface: eth2}
        - {node: sw, interface: e1}
    - endpoints: ["server:eth1", "sw:e2"]
    - endpoints: ["vendor:e1", "sw:e3"]
    - endpoints: ["server:eth9", "host:x"]
`

func TestContainerlab(t *testing.T) {
	n, err := Containerlab("lab.yml", []byte(lab))
	qt.Assert(t, qt.IsNil(err))
	e, comments := parsed(t, n, "lab.yml")
	qt.Check(t, qt.Equals(e.Name, "my-lab"))
	net := e.Topology.Network()
	qt.Check(t, qt.DeepEquals(net.Hosts, []string{"H0", "H2", "H4"}))
	qt.Check(t, qt.DeepEquals(net.Switches, []string{"S1", "S3"}))
	qt.Check(t, qt.HasLen(net.Links, 4))
	var programs []string
	for _, p := range e.Programs {
		programs = append(programs, p.Name+" "+strings.Join(p.Command, "|")+" "+p.Env["A"])
	}
	qt.Check(t, qt.DeepEquals(programs, []string{
		"H0-0 ping|-c|1|router b", "H0-1 sh|-c|curl http://H2/ H2:80 b",
		"H2-0 python3|-m|http.server|80 c",
	}))
	qt.Check(t, qt.Equals(e.Programs[1].After.Program, "H0-0"))
	qt.Check(t, qt.IsTrue(e.Programs[2].Server))
	for _, want := range []string{
		"# H0 is host client\n", "# S1 is switch router\n",
		"# line 2: mgmt: there is no network for management\n",
		`# line 10: client: "ip addr add 192.168.1.2/24 dev eth1" is left out: `,
		"# line 13: client: binds is left out\n",
		"# line 14: router has 2 links, and hosts here have one: it is a switch, ",
		"# line 14: programs of router are left out, as it is a switch\n",
		"# line 21: vendor is of kind nokia_srlinux, another system than Linux: ",
		"# line 22: alone is left out: no link leads from it to most others\n",
		"# line 31: a link to host is left out: ",
		"docker save -o image.tar alpine:3",
	} {
		qt.Check(t, qt.StringContains(comments, want))
	}
}

// Two nodes that are linked to each other have a switch between them.
func TestContainerlabPair(t *testing.T) {
	n, err := Containerlab("pair.yml", []byte(`name: pair
topology:
  nodes: {a: {kind: linux}, b: {kind: linux}}
  links: [{endpoints: ["a:eth1", "b:eth1"]}]
`))
	qt.Assert(t, qt.IsNil(err))
	e, _ := parsed(t, n, "pair.yml")
	net := e.Topology.Network()
	qt.Check(t, qt.DeepEquals(net.Hosts, []string{"H0", "H1"}))
	qt.Check(t, qt.HasLen(net.Links, 2))
	for _, l := range net.Links {
		qt.Check(t, qt.Equals(l.RateBps, 10e9))
	}
}

func TestContainerlabErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                              `lab.yml:1: no topology of containerlab: .*`,
		"[":                             `lab.yml: .*`,
		"name: x\n":                     `lab.yml:1: "topology" is missing: .*`,
		"topology:\n  links: []\n":      `lab.yml:2: "nodes" are missing`,
		"topology:\n  nodes: {a: {}}\n": `lab.yml:2: "links" are missing: .*`,
		"topology:\n  nodes: {a: 1}\n":  `lab.yml:2: node a: want a mapping`,
		strings.Replace(lab, "server:eth1", "no:eth1", 1): `lab.yml:29: a link to node "no": .*`,
		strings.Replace(lab, `["client:eth1", `, `[`, 1):  `lab.yml:24: a link: want endpoi.*`,
		strings.Replace(lab, "[ip addr", "ip addr", 1):    `.*`,
		"topology: {nodes: {a: {}}, links: [{endpoints: [a, a]}]}": `lab.yml:1: hosts, nodes ` +
			`with one link: 1, .*`,
	} {
		_, err := Containerlab("lab.yml", []byte(text))
		qt.Check(t, qt.ErrorMatches(err, want), qt.Commentf("%s", text))
	}
}

func FuzzContainerlab(f *testing.F) {
	f.Add(lab)
	f.Add("topology: &a\n  nodes: *a\n  links: [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Containerlab("lab.yml", []byte(text))
		if err == nil {
			_, err = n.Experiment("lab.yml")
			qt.Check(t, qt.IsNil(err))
		}
	})
}

func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
}

const topology = `#!/usr/bin/python
import os
from mininet.topo import Topo
from mininet.net import Mininet
from mininet.node import OVSSwitch, RemoteController
from mininet.link import TCLink
from mininet.cli import CLI
from mininet.log import setLogLevel

class MyTopo(Topo):
    def build(self, n=2):
        left, right = self.addSwitch('s1'), self.addSwitch('s2', cls=OVSSwitch)
        for i in range(n):
            self.addLink(self.addHost('h%d' % i, ip='10.0.9.%d/24' % i), left, bw=100, delay='2ms')
        self.addLink(left, right, bw=10, delay='20ms', loss=1, jitter='1ms', max_queue_size=100)
        self.addLink('s2', self.addHost('r'), cls=TCLink)

topos = {'mine': MyTopo}
`

const run = `
if __name__ == '__main__':
    os.system('touch %s')
    net = Mininet(topo=MyTopo(3), link=TCLink, controller=RemoteController('c', ip='1.2.3.4'))
    net.start()
    h0 = net.get('h0')
    h0.cmd('ping -c 1', net.get('r').IP())
    CLI(net)
    net.stop()
    os.system('touch %s')
`

// A file's network is what Python makes of it, whether it is run or names its topos. Nothing that
// it does to this machine is done.
func TestMininet(t *testing.T) {
	needPython(t)
	dir := t.TempDir()
	touched := filepath.Join(dir, "touched")
	for _, c := range []struct {
		text, topo string
		hosts      int
		note       string
	}{
		{topology, "", 3, "line 15: max_queue_size 100"},
		{topology, "mine,5", 6, ""},
		{strings.Replace(topology, "topos =", "other =", 1), "", 3, ""},
		{strings.Replace(topology, "bw=100, ", "", 1) + "import functools, sys\nMininet(" +
			"topo=MyTopo(int(sys.argv[1])), link=functools.partial(TCLink, bw=100))\n", "", 5, ""},
		{topology + strings.ReplaceAll(run, "%s", touched), "", 4, "h0 runs 'ping -c 1 0.0.0.0'"},
		{"from mininet.net import Mininet\nnet = Mininet()\na = net.addHost('a')\n" +
			"b = net.addHost('b')\nnet.addLink(a, b)\nnet.build()\n1/0\n", "", 2,
			"line 7: Python stops here: ZeroDivisionError"},
	} {
		file := filepath.Join(dir, "net.py")
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(c.text), 0o644)))
		n, err := Mininet(t.Context(), file, c.topo, "4")
		qt.Assert(t, qt.IsNil(err))
		e, comments := parsed(t, n, file)
		net := e.Topology.Network()
		qt.Check(t, qt.HasLen(net.Hosts, c.hosts))
		qt.Check(t, qt.StringContains(comments, c.note))
		if c.hosts == 2 {
			continue
		}
		slow := net.Links[len(net.Links)-2]
		qt.Check(t, qt.Equals(slow.RateBps, 10e6))
		qt.Check(t, qt.Equals(slow.DelayNs, 20e6))
		qt.Check(t, qt.Equals(slow.ErrorRate, 0.01))
		qt.Check(t, qt.Equals(net.Links[0].RateBps, 100e6))
	}
	_, err := os.Stat(touched)
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
}

func TestMininetErrors(t *testing.T) {
	needPython(t)
	file := filepath.Join(t.TempDir(), "net.py")
	for text, want := range map[string]string{
		"":                      ".*it builds no network: .*",
		"def":                   ".*net.py:1: Python: .*",
		"input()\n":             ".*it builds no network: .*",
		"raise SystemExit(3)\n": ".*it builds no network: .*",
		topology + "class Other(Topo): pass\ntopos = {}\n":   ".*several classes of Topo: .*",
		topology + "topos = {'a': 1, 'b': 2}\n":              ".*several topos: choose one of a, b",
		strings.Replace(topology, "bw=10,", "bw='fast',", 1): `.*line 15: link .*bw "fast": .*`,
		strings.Replace(topology, "'20ms'", "'20 pc'", 1):    `.*line 15: .*"20 pc": .*`,
		strings.Replace(topology, "left, bw", "'s9', bw", 1): ".*net.py:14: Python: KeyErr.*",
		strings.Replace(topology, "n=2", "n", 1):             ".*: topo .* argument.*--topo .*,2",
	} {
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o644)))
		_, err := Mininet(t.Context(), file, "")
		qt.Check(t, qt.ErrorMatches(err, "(?s)"+want), qt.Commentf("%s", text))
	}
	_, err := Mininet(t.Context(), filepath.Join(t.TempDir(), "none.py"), "")
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
}
