// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/network"
)

// Containerlab reads a topology file of containerlab. Errors call it file.
func Containerlab(file string, data []byte) (*Network, error) {
	c, err := parseContainerlab(file, data)
	if err != nil {
		return nil, err
	}
	if child(c.topology, "links") == nil {
		return nil, c.fail(c.topology, "\"links\" are missing: a network needs some")
	}
	if err := c.arrange(); err != nil {
		return nil, &config.Error{File: file, Line: c.topology.Line, Msg: err.Error()}
	}
	c.note(0, "links of containerlab have no rate and no delay: 10 Gbit/s and 10 us here, in "+
		"topology.txt")
	return c.Network, nil
}

// Cabling is the nodes of a topology file of containerlab, and how they are cabled.
type Cabling struct {
	Nodes   []*Node
	Network *network.Network // nil if that is no network with hosts
	Line    int              // of the links
}

// ReadCabling reads a topology file of containerlab, which may have no hosts. Errors call it file.
func ReadCabling(file string, data []byte) (*Cabling, error) {
	c, err := parseContainerlab(file, data)
	if err != nil {
		return nil, err
	}
	out := &Cabling{Nodes: slices.Clone(c.Nodes)} // what is apart too
	if err := c.arrange(); err != nil || len(c.Links) == 0 {
		return out, nil // it has no hosts, or no links
	}
	out.Network, out.Line = c.wired(), c.Links[0].Line
	return out, nil
}

// parseContainerlab reads nodes and links.
func parseContainerlab(file string, data []byte) (*clab, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, &config.Error{File: file, Msg: strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, &config.Error{File: file, Line: 1, Msg: "no topology of containerlab: want a " +
			"mapping with name and topology"}
	}
	root := doc.Content[0]
	c := &clab{file: file, Network: &Network{Name: "lab"}}
	if v := child(root, "name"); v != nil {
		c.Name = v.Value
	}
	topology := child(root, "topology")
	if topology == nil || topology.Kind != yaml.MappingNode {
		return nil, c.fail(root, "\"topology\" is missing: is it a file of containerlab?")
	}
	for key := range pairs(root) {
		if !slices.Contains([]string{"name", "prefix", "topology", "mgmt"}, key.Value) {
			c.note(key.Line, "%s is left out", key.Value)
		} else if key.Value == "mgmt" {
			c.note(key.Line, "mgmt: there is no network for management")
		}
	}
	c.topology = topology
	nodes := child(topology, "nodes")
	if nodes == nil || nodes.Kind != yaml.MappingNode {
		return nil, c.fail(topology, "\"nodes\" are missing")
	}
	for key, value := range pairs(nodes) {
		if err := c.addNode(key, value); err != nil {
			return nil, err
		}
	}
	links := child(topology, "links")
	if links == nil {
		return c, nil
	}
	if links.Kind != yaml.SequenceNode {
		return nil, c.fail(links, "\"links\" are no list")
	}
	for _, link := range links.Content {
		if err := c.addLink(link); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// IsContainerlab reports whether a file is a topology of containerlab: its topology has nodes.
func IsContainerlab(data []byte) bool {
	var doc yaml.Node
	if yaml.Unmarshal(data, &doc) != nil || len(doc.Content) == 0 {
		return false
	}
	return child(child(doc.Content[0], "topology"), "nodes") != nil
}

// clab reads one file.
type clab struct {
	*Network
	file     string
	topology *yaml.Node
}

func (c *clab) fail(at *yaml.Node, format string, args ...any) error {
	return &config.Error{File: c.file, Line: at.Line, Msg: fmt.Sprintf(format, args...)}
}

// child returns the value of a key; nil if there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	for k, v := range pairs(n) {
		if k.Value == key {
			return v
		}
	}
	return nil
}

// pairs goes through the keys and values of a mapping, those that it merges last.
func pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if n = plain(n); n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value != "<<" && !yield(n.Content[i], plain(n.Content[i+1])) {
				return
			}
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value != "<<" {
				continue
			}
			for k, v := range pairs(n.Content[i+1]) {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}

// plain follows an alias.
func plain(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// setting returns what a node has by itself, by its group, its kind or by default.
func (c *clab) setting(node *yaml.Node, key string) *yaml.Node {
	from := []*yaml.Node{node}
	if group := child(node, "group"); group != nil {
		from = append(from, child(child(c.topology, "groups"), group.Value))
	}
	from = append(from, child(child(c.topology, "kinds"), c.kind(node)),
		child(c.topology, "defaults"))
	for _, n := range from {
		if v := child(n, key); v != nil {
			return v
		}
	}
	return nil
}

func (c *clab) kind(node *yaml.Node) string {
	for _, n := range []*yaml.Node{
		node, child(child(c.topology, "groups"), text(child(node, "group"))),
		child(c.topology, "defaults"),
	} {
		if kind := text(child(n, "kind")); kind != "" {
			return kind
		}
	}
	return "linux"
}

func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// Keys of nodes that change nothing here.
var silent = []string{"kind", "group", "image", "cmd", "exec", "env", "labels", "image-pull-policy"}

func (c *clab) addNode(key, value *yaml.Node) error {
	if c.node(key.Value) != nil {
		return c.fail(key, "duplicate node %q", key.Value)
	}
	if value.Kind != yaml.MappingNode && value.Tag != "!!null" {
		return c.fail(value, "node %s: want a mapping", key.Value)
	}
	n := &Node{Name: key.Value, Line: key.Line}
	c.Nodes = append(c.Nodes, n)
	kind := c.kind(value)
	if startup := c.setting(value, "startup-config"); startup != nil {
		n.Startup = strings.ReplaceAll(startup.Value, "__clabNodeName__", n.Name)
		n.StartupLine = startup.Line
	}
	switch kind {
	case "linux":
	case "bridge", "ovs-bridge":
		n.Switch = true
		return nil
	default:
		c.note(key.Line, "%s is of kind %s, another system than Linux: it runs no programs, and "+
			"with several links it is a switch without its configuration", n.Name, kind)
		return nil
	}
	for k := range pairs(value) {
		if !slices.Contains(silent, k.Value) {
			c.note(k.Line, "%s: %s is left out", n.Name, k.Value)
		}
	}
	if err := c.addPrograms(n, value); err != nil {
		return err
	}
	if image := c.setting(value, "image"); image != nil && len(n.Programs) > 0 {
		c.note(image.Line, "%s: programs see this machine's files. For those of the image: "+
			"docker save -o image.tar %s, and image: image.tar of each program", n.Name,
			image.Value)
	}
	return nil
}

// addPrograms adds what a node runs: its command, and what is executed in it.
func (c *clab) addPrograms(n *Node, value *yaml.Node) error {
	env := map[string]string{}
	if v := c.setting(value, "env"); v != nil {
		for k, v := range pairs(v) {
			if !strings.HasPrefix(k.Value, "__") { // a variable of containerlab's own
				env[k.Value] = v.Value
			}
		}
	}
	if v := c.setting(value, "exec"); v != nil {
		if v.Kind != yaml.SequenceNode {
			return c.fail(v, "exec of %s: want a list", n.Name)
		}
		for _, line := range v.Content {
			c.addExec(n, line, env)
		}
	}
	if v := c.setting(value, "cmd"); v != nil && v.Value != "" {
		command, err := split(v.Value)
		if err != nil {
			return c.fail(v, "cmd of %s: %v", n.Name, err)
		}
		n.Programs = append(n.Programs, Program{Command: command, Env: env, Server: true})
	}
	return nil
}

// addExec adds a command, unless it configures what hosts have already. It takes the node's
// addresses from it.
func (c *clab) addExec(n *Node, line *yaml.Node, env map[string]string) {
	words := strings.Fields(line.Value)
	for _, word := range words {
		if prefix, err := netip.ParsePrefix(strings.Trim(word, `"'`)); err == nil &&
			slices.Contains(words, "add") && slices.Contains(words, "dev") {
			n.Addresses = append(n.Addresses, prefix.Addr().String())
		}
	}
	own := []string{"ip", "ifconfig", "route", "sysctl", "ethtool", "brctl", "ifup", "dhclient",
		"udhcpc"}
	command, err := split(line.Value)
	if err != nil || len(command) == 0 {
		c.note(line.Line, "%s: %q is left out: %v", n.Name, line.Value, err)
		return
	}
	if slices.Contains(own, command[0]) {
		c.note(line.Line, "%s: %q is left out: hosts have an address and a route", n.Name,
			line.Value)
		return
	}
	n.Programs = append(n.Programs, Program{Command: command, Env: env})
}

// split splits a command as a shell does, without its variables and patterns.
func split(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	inWord, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("a quotation in %q does not end", text)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// addLink adds a link between two nodes: endpoints are NODE:INTERFACE, or mappings of both.
func (c *clab) addLink(link *yaml.Node) error {
	link = plain(link)
	if kind := text(child(link, "type")); kind != "" && kind != "veth" {
		c.note(link.Line, "a link of type %s is left out: links are between nodes", kind)
		return nil
	}
	endpoints := child(link, "endpoints")
	if endpoints == nil || endpoints.Kind != yaml.SequenceNode || len(endpoints.Content) != 2 {
		return c.fail(link, "a link: want endpoints: [\"a:eth1\", \"b:eth1\"]")
	}
	var ends []string
	for _, e := range endpoints.Content {
		e = plain(e)
		node := text(child(e, "node"))
		if e.Kind == yaml.ScalarNode {
			node, _, _ = strings.Cut(e.Value, ":")
		}
		if slices.Contains([]string{"host", "mgmt-net", "macvlan"}, node) {
			c.note(e.Line, "a link to %s is left out: links are between nodes", node)
			return nil
		}
		if c.node(node) == nil {
			return c.fail(e, "a link to node %q: there is none", node)
		}
		ends = append(ends, node)
	}
	if ends[0] == ends[1] {
		c.note(link.Line, "a link from %s to itself is left out", ends[0])
		return nil
	}
	for k := range pairs(link) {
		if !slices.Contains([]string{"type", "endpoints", "labels", "vars"}, k.Value) {
			c.note(k.Line, "%s of a link is left out", k.Value)
		}
	}
	c.Links = append(c.Links, Link{A: ends[0], B: ends[1], Line: link.Line})
	return nil
}
