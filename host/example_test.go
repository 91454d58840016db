// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pcn-linux/pcn/host"
)

// Make this host run what a configuration says, and take it away again.
func ExampleHost_Up() {
	c, err := host.Parse("host.yaml", []byte(`
line_rate: 10Gbps
controls: {pcn: {w_min: 1/128}}
stamp: {interfaces: [lo]}
`))
	if err != nil {
		log.Fatal(err)
	}
	h := host.New()
	changes, err := h.Up(context.Background(), c)
	if err != nil {
		log.Fatal(err)
	}
	for _, one := range changes {
		fmt.Println(one.What, one.Component)
	}
	// All of it is pinned: this program may end here, and another one take it away.
	if _, err := h.Down(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// added control_pcn
	// added stamp
}

// A mistake is told with its line, and what to write instead.
func ExampleParse() {
	_, err := host.Parse("host.yaml", []byte("controls:\n  pnc: {}\nstamp: {interfaces: [lo]}\n"))
	fmt.Println(err)
	// Output: host.yaml:2:3: unknown key "pnc" (hint: did you mean "pcn"?)
}

// Build a configuration without a file, and check it as one from a file is.
func ExampleConfig_Check() {
	c := &host.Config{LineRate: 10e9, RTT: 50_000, RP: &host.RP{Interfaces: []string{"eth0"}}}
	fmt.Println(c.Check("mine"))
	if err := c.Controls.Add("pcn"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Check("mine"), c.Interfaces(), c.RP.CNPBurst)
	// Output:
	// mine: there is no control that CNPs are for (hint: add controls: {pcn: {}})
	// <nil> [eth0 eth0] 8
}

// What runs, and what differs from the configuration.
func ExampleHost_Status() {
	s, err := host.New().Status(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(s.Components), s.OK())
	// Output: 0 true
}
