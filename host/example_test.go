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
