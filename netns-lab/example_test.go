// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	lab "github.com/pcn-linux/pcn/netns-lab"
)

// star is an experiment of one's own: two flows to one host.
const star = `
name: two-to-one
topology: {kind: star, hosts: 3, rate: 10Gbps, delay: 2us}
schemes: [pcn]
duration: 2ms
flows:
  - {name: F0, from: H0, to: H2, start: 0ms, size: 500KB}
  - {name: F1, from: H1, to: H2, start: 0ms, size: 500KB}
expect:
  - {what: the flows share the link, metric: jain, flows: [F0, F1], from: 0ms, min: 0.9}
`

func write(text string) (path string, remove func()) {
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		log.Fatal(err)
	}
	path = filepath.Join(dir, "star.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	return path, func() { os.RemoveAll(dir) }
}

// Simulate an experiment of one's own, and see what its flows did.
func ExampleExperiment_Run() {
	path, remove := write(star)
	defer remove()
	x, err := lab.Load(path)
	if err != nil {
		log.Fatal(err)
	}
	results := filepath.Join(filepath.Dir(path), "results")
	runs, err := x.Run(context.Background(), lab.Simulator, results)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range runs {
		for _, f := range r.Flows {
			fmt.Println(r.Scheme, f.Name, f.Src, "to", f.Dst, f.Completion > 0)
		}
		for _, e := range r.Expectations {
			fmt.Println(e.What, e.Met)
		}
	}
	// Output:
	// pcn F0 H0 to H2 true
	// pcn F1 H1 to H2 true
	// the flows share the link true
}

// An experiment that comes with the program, with other schemes and for a shorter time.
func ExampleExperiment_With() {
	x, err := lab.Load("hol")
	if err != nil {
		log.Fatal(err)
	}
	short, err := x.With(lab.Changes{Schemes: []string{"pcn", "dcqcn"},
		Duration: 5 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(short.Name(), short.Schemes(), short.Duration())
	// Output: hol [pcn dcqcn] 5ms
}

// A mistake is told with its line.
func ExampleLoad() {
	path, remove := write(strings.Replace(star, "pcn", "pnc", 1))
	defer remove()
	_, err := lab.Load(path)
	line, _, _ := strings.Cut(err.Error(), "(")
	fmt.Println(strings.TrimPrefix(line, filepath.Dir(path)+"/"))
	// Output: star.yaml:4:11: unknown scheme "pnc"
}

func ExampleNames() {
	fmt.Println(slices.Contains(lab.Names(), "hol"))
	// Output: true
}
