// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"fmt"
	"log"

	"github.com/pcn-linux/pcn/config/scheme"
)

// What a scheme needs of switches and receivers.
func ExampleScheme_Setup() {
	s, err := scheme.Builtin().Lookup("dcqcn")
	if err != nil {
		log.Fatal(err)
	}
	values, _ := s.Object.Resolve(scheme.Settings{}, scheme.Network{LineRateBps: 10e9})
	setup := s.Setup(values)
	fmt.Println(s.Title)
	fmt.Println(setup.Marker, setup.Notification, setup.Hears)
	// Output:
	// DCQCN: a rate that CNPs cut, and QCN's recovery raises
	// red marked cnp
}

// Parameters that nobody sets have their defaults; those out of range are told.
func ExampleObject_Resolve() {
	s, err := scheme.Builtin().Lookup("pcn")
	if err != nil {
		log.Fatal(err)
	}
	values, problems := s.Object.Resolve(scheme.Settings{
		Given: map[string]scheme.Value{"w_max": {Kind: scheme.KindRatio, Number: 7}},
	}, scheme.Network{LineRateBps: 10e9})
	fmt.Println(values.Get("w_min"))
	for _, p := range problems {
		fmt.Println(p.Key, p.Msg)
	}
	// Output:
	// 0.0078125
	// w_max 7 is out of range
}
