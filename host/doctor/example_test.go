// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"fmt"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/host/doctor"
)

// Print what keeps this host from running PCN, and what to do.
func ExampleRun() {
	for _, c := range doctor.Run(context.Background(), host.New(), nil) {
		if c.Level == doctor.Fail {
			fmt.Printf("%s: %s; do: %s\n", c.Name, c.Is, c.Do)
		}
	}
}

func ExampleFailed() {
	fmt.Println(doctor.Failed([]doctor.Check{{Name: "MTU", Level: doctor.Warn}}))
	fmt.Println(doctor.Failed([]doctor.Check{{Name: "rights", Level: doctor.Fail}}))
	// Output:
	// false
	// true
}
