// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"log"

	"github.com/pcn-linux/pcn/config"
)

func ExampleParseRate() {
	r, err := config.ParseRate("2.5Gbps")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(uint64(r), r)
	_, err = config.ParseRate("2.5 gigabit")
	fmt.Println(err != nil)
	// Output:
	// 2500000000 2.5Gbps
	// true
}

func ExampleParseDuration() {
	d, err := config.ParseDuration("50us")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(int64(d), d)
	// Output: 50000 50us
}

func ExampleSuggest() {
	fmt.Println(config.Suggest("dqcn", []string{"pcn", "dcqcn", "ldcp"}))
	// Output: did you mean "dcqcn"?
}

// Read a file of one's own, and tell each mistake with its line and what to write instead.
func ExampleDecoder() {
	var file struct {
		Rate config.Rate     `yaml:"rate"`
		RTT  config.Duration `yaml:"rtt"`
	}
	d := config.NewDecoder("mine.yaml", "my", "rate:")
	if root := d.Root([]byte("rate: 10Gbps\nrt: 1ms\n")); root != nil {
		d.Decode(root, &file)
	}
	fmt.Println(file.Rate)
	fmt.Println(d.Err())
	// Output:
	// 10Gbps
	// mine.yaml:2:1: unknown key "rt" (hint: did you mean "rtt"?)
}
