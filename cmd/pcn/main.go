// SPDX-License-Identifier: Apache-2.0

// Command pcn runs experiments of data-centre congestion control on a real Linux network.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
	"github.com/pcn-linux/pcn/netns-lab/sweeps"
)

// Exit codes, beside 0. [exitCodes] says what they mean.
const (
	exitError   = 1
	exitUsage   = 2
	exitExpect  = 3
	exitInvalid = 4
	exitDiffer  = 5
	exitShort   = 6
)

// exitCodes has the meaning of each exit code, for all commands.
var exitCodes = [...]string{
	0:           "all is well",
	exitError:   "something failed, or a check, a file or the host is not as it should be",
	exitUsage:   "the command line is wrong",
	exitExpect:  "a bound of the experiment is not met",
	exitInvalid: "a run can't be believed: its result is invalid",
	exitDiffer:  "two runs differ (pcn diff, pcn rerun)",
	exitShort:   "a run is too short to be judged: a longer --duration is printed",
}

// describeExitCodes returns a line for each exit code.
func describeExitCodes() string {
	lines := []string{"Exit codes of all commands:"}
	for code, meaning := range exitCodes {
		lines = append(lines, fmt.Sprintf("  %d  %s", code, meaning))
	}
	return strings.Join(lines, "\n")
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if args := os.Args[1:]; len(args) > 0 && slices.Contains(runCommands, args[0]) {
		collectLate()
	}
	os.Exit(run(ctx, os.Args[1:]))
}

// exitCode is an error that has been told already.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// exitWith is an exit code as an error; 0 is none.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return exitCode(code)
}

// usageError is one of the command line.
type usageError struct{ error }

func run(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	out := newColored(os.Stdout, os.Getenv)
	root.SetOut(out)
	err := root.ExecuteContext(ctx)
	if c, ok := out.(io.Closer); ok && out != os.Stdout {
		err = errors.Join(err, c.Close())
	}
	var code exitCode
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.Is(ctx.Err(), context.Canceled):
		fmt.Fprintln(os.Stderr, "pcn: interrupted; only runs that have ended are kept")
		return exitError
	case errors.As(err, &usage), errors.Is(err, experiments.ErrUnknown),
		errors.Is(err, sweeps.ErrUnknown):
		fmt.Fprintf(os.Stderr, "pcn: %v\nTry: pcn --help\n", err)
		return exitUsage
	default:
		fmt.Fprintf(os.Stderr, "pcn: %v\n", err)
		return exitError
	}
}

func newRoot() *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "pcn",
		Short: "Congestion control of lossless Ethernet on a real Linux kernel",
		Long: `pcn runs the experiments of data-centre congestion control papers on a real Linux network stack: hosts are
network namespaces, senders are TCP congestion controls in BPF, switches are BPF qdiscs with PFC and NP-ECN.
Experiments run in a deterministic microVM: the same input gives the same bytes.

` + describeExitCodes(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !showVersion {
				return cmd.Help()
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionText())
			return err
		},
	}
	// Not cobra's own flag, which wants the text at each start: it hashes a program of megabytes.
	root.Flags().BoolVarP(&showVersion, "version", "v", false,
		"print the version, the commit, and the hash of the microVM's program")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newRun(), newShell(), newSweep(engineFlags.open), newReproduce(), newList(), newReport(), newResults(), newCompare(), newDiff(), newRerun(), newTopo(), newFabric(), newAveraging(), newWorkload(), newImport(), newSetup(), newKernel(), newBisect(), newSuite(), newDoctor(), newScheme(), newSchema(), newMan(), newDocs(), newValidate())
	root.AddCommand(hostCommands()...)
	wrapAll(root)
	addCompletion(root)
	return root
}

// knownCommand fails for a command that there is none of.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	return usageError{fmt.Errorf("unknown command %q (hint: %s)", args[0],
		config.Suggest(args[0], known))}
}

// oneOf returns a check for one argument. Its error says which one is missing.
func oneOf(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("name %s (hint: %s --help has examples)", what, cmd.CommandPath())
		}
		return cobra.ExactArgs(1)(cmd, args)
	}
}

func wrapAll(root *cobra.Command) {
	for _, c := range root.Commands() {
		wrapArgs(c)
		wrapAll(c)
	}
}

// wrapArgs makes a wrong number of arguments, a missing flag and flags that exclude each other
// usage errors.
func wrapArgs(c *cobra.Command) {
	check := c.Args
	c.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%s: %w", cmd.Name(), err)}
		}
		err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups())
		if err != nil {
			return usageError{err}
		}
		return nil
	}
}
