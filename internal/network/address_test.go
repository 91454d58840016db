// SPDX-License-Identifier: Apache-2.0

package network

import (
	"testing"

	"github.com/go-quicktest/qt"
)

func TestIPv6Addr(t *testing.T) {
	for host, want := range map[int]string{
		0: "fd00::a00:1", 255: "fd00::a00:100", 65535: "fd00::a01:0",
	} {
		a := IPv6Addr(HostAddr(host))
		qt.Check(t, qt.Equals(a.String(), want))
		qt.Check(t, qt.IsTrue(a.IsPrivate())) // unique-local, as RFC 4193 has it
	}
}

// Switches find each other as they find hosts: by the fewest links.
func TestSwitchPorts(t *testing.T) {
	n := Build(Shape{Kind: "leaf-spine", Counts: map[string]int{
		"leaves": 2, "spines": 2, "hosts": 1}, SpineLinks: Trunk{Parallel: 1}})
	r, err := n.Routes()
	qt.Assert(t, qt.IsNil(err))
	number := map[string]int{}
	for i, name := range n.Nodes() {
		number[name] = i
	}
	ports := func(from, to string) (names []string) {
		for _, p := range r.SwitchPorts(number[from], number[to]) {
			names = append(names, n.Ports()[p])
		}
		return names
	}
	qt.Check(t, qt.DeepEquals(ports("L0", "S1"), []string{"L0->S1"}))
	qt.Check(t, qt.DeepEquals(ports("L0", "L1"), []string{"L0->S0", "L0->S1"}))
	qt.Check(t, qt.HasLen(ports("L0", "L0"), 0))
}
