// SPDX-License-Identifier: Apache-2.0

// Command mutate changes one operator at a time in the Go files of packages, and lists the changes
// that no test of the package notices. It draws a sample, and changes no file of the tree.
//
//	go run ./scripts/mutate -sample 60 -seed 1 ./internal/hpcc ./internal/sweep
//
// A test runs for a change only if it reaches the changed line, the fastest first, until one fails
// or the budget is used up. Tests that fail without a change are an error. Those that run in a
// microVM run together, until one fails: it boots once for a change.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

type options struct {
	sample   int
	seed     uint64
	budget   time.Duration
	run      string
	skip     string
	short    bool
	list     bool
	packages []string
}

func main() {
	var o options
	flag.IntVar(&o.sample, "sample", 60, "changes to try; those that do not compile do not count")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the sample")
	flag.DurationVar(&o.budget, "budget", time.Minute, "CPU time of tests for each change")
	flag.StringVar(&o.run, "run", ".", "tests to run, as in go test")
	flag.StringVar(&o.skip, "skip", "", "tests not to run, as in go test")
	flag.BoolVar(&o.short, "short", false, "run tests with -short")
	flag.BoolVar(&o.list, "list", false, "only print the sample")
	flag.Parse()
	o.packages = flag.Args()
	if len(o.packages) == 0 {
		fmt.Fprintln(os.Stderr, "mutate: name packages, such as ./internal/sim")
		os.Exit(2)
	}
	if err := mutate(o); err != nil {
		fmt.Fprintf(os.Stderr, "mutate: %v\n", err)
		os.Exit(1)
	}
}

// mutate tries a sample of the changes of packages.
func mutate(o options) error {
	work, err := os.MkdirTemp("", "pcn-mutate-")
	if err != nil {
		return fmt.Errorf("make a folder for test binaries: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	sites, err := listSites(o.packages)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(o.seed, 0))
	r.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	fmt.Printf("%d operators, a sample of %d by seed %d\n", len(sites), o.sample, o.seed)
	if o.list {
		for _, s := range sites[:min(o.sample, len(sites))] {
			fmt.Println(s)
		}
		return nil
	}
	suites := map[string]*suite{}
	counts := map[string]int{}
	for _, s := range sites {
		if counts[killed]+counts[survived] == o.sample {
			break
		}
		if suites[s.dir] == nil {
			if suites[s.dir], err = measure(s.dir, work, o); err != nil {
				return err
			}
		}
		verdict, by, err := suites[s.dir].try(s)
		if err != nil {
			return err
		}
		counts[verdict]++
		fmt.Printf("%s: %s: %s\n", verdict, s, by)
	}
	fmt.Printf("%d killed, %d survived, %d do not compile\n",
		counts[killed], counts[survived], counts[broken])
	return nil
}
