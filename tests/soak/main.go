// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pcn-linux/pcn/internal/vm/guest"
)

func main() {
	if err := dispatch(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// dispatch runs what the arguments ask for: a whole run, or a part that a run started.
func dispatch(args []string) error {
	if len(args) > 0 && args[0] == enterArg {
		return enter(args[1:])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) > 0 && args[0] == insideArg { // process 1 too, but not the microVM's
		o, err := parseOptions(args[1:])
		if err != nil {
			return err
		}
		return runInside(ctx, o, os.Stdout)
	}
	if guest.Inside() {
		guest.Main(func(args []string) int {
			if err := superviseGuest(ctx, args, os.Stdout); err != nil {
				fmt.Println("soak:", err)
				return 1
			}
			return 0
		})
	}
	o, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if o.vm {
		return runInVM(ctx, o, os.Stdout)
	}
	return supervise(ctx, args, os.Stdout)
}

// options are those of the command line.
type options struct {
	length time.Duration
	seed   uint64
	pcn    string // its file
	mbps   int    // the bottleneck's rate at best
	clock  bool
	cpu    bool
	plan   bool
	vm     bool
	round  time.Duration
}

func parseOptions(args []string) (options, error) {
	var o options
	seconds := 0
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.IntVar(&seconds, "seconds", 3600, "how long clients run, at least 10")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().Unix()), "of the plan; equal seeds repeat it")
	f.StringVar(&o.pcn, "pcn", "bin/pcn", "the program to test")
	f.IntVar(&o.mbps, "rate", 200, "of the bottleneck at best, Mbit/s, 10 to 1000")
	f.BoolVar(&o.clock, "step-clock", false,
		"also step the machine's clock: only in a virtual machine")
	f.BoolVar(&o.cpu, "offline-cpu", false,
		"also take a CPU offline for a time: only in a virtual machine")
	f.BoolVar(&o.vm, "vm", false, "run in the microVM, with its clock and CPUs changed too")
	f.DurationVar(&o.round, "round", 30*time.Second, "how long a round's clients run, at most")
	f.BoolVar(&o.plan, "plan", false, "print the plan of the first round, and do nothing")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if seconds < 10 || f.NArg() > 0 {
		return o, fmt.Errorf("invalid --seconds %d or argument %q: want 10 seconds or more, and "+
			"no arguments", seconds, f.Arg(0))
	}
	if o.mbps < 10 || o.mbps > 1000 {
		return o, fmt.Errorf("invalid --rate %d: want 10 to 1000 Mbit/s", o.mbps)
	}
	o.length = time.Duration(seconds) * time.Second
	return o, nil
}

// planner chooses the rounds' length for the run's length.
func (o options) planner() planner {
	const usual = 30 * time.Second
	p := planner{Seed: o.seed, Length: min(o.round, o.length), Clock: o.clock, CPU: o.cpu}
	p.Every = p.Length / 16
	p.Stay = min(usual, p.Length)
	p.Clients = 24 + int(p.Stay/time.Second)
	return p
}

func (o options) printPlan(w io.Writer) {
	r := o.planner().round(0)
	fmt.Fprintf(w, "seed %d, round 0\n", o.seed)
	for _, c := range r.Clients {
		fmt.Fprintln(w, c)
	}
	for _, e := range r.Events {
		fmt.Fprintln(w, e)
	}
}
