// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/launch"
)

func newShell() *cobra.Command {
	var (
		algo, out string
		limit     time.Duration
	)
	c := &cobra.Command{
		Use:   "shell FILE [-- SCRIPT]",
		Short: "Run commands on the hosts of a network, in virtual time",
		Long: `Build the network of an experiment's file, start its programs, and run commands on
its hosts: ping, ss, ip, tc, tcpdump and what else this machine has. Time stands still while nothing
runs. It needs the kernel of pcn setup, and no root.

A line is a command for the host of the prompt, run by sh in /tmp; what it leaves in the background
goes on with time. Beside commands there are
  H1>          go on at host H1; with a command behind it, run that there
  wait 10ms    let so much time go by
  exit         end the session, as the end of the input does

Of a script, or of what is not typed at a terminal, a command that fails ends the session, and is
its exit status. It does the same, to the byte, each time.`,
		Example: `  pcn shell net.yaml
  pcn shell net.yaml -- test.txt
  echo 'H0> ping -c 3 H1' | pcn shell net.yaml`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := experiment.LoadWith(args[0], experiment.Options{Idle: true})
			if err != nil {
				return err
			}
			if algo == "" {
				algo = e.Schemes[0]
			}
			if e, err = e.With(experiment.Changes{Schemes: []string{algo}}); err != nil {
				return usageError{err}
			}
			if limit <= 0 {
				return usageError{fmt.Errorf("--limit %s: want more than 0", limit)}
			}
			s := launch.Shell{Out: cmd.OutOrStdout(), Limit: limit}
			if err := chooseLines(&s, cmd.InOrStdin(), args[1:]); err != nil {
				return err
			}
			engine, err := launch.NewMicroVMs("", false)
			if err != nil {
				return err
			}
			status, captures, err := engine.Shell(cmd.Context(),
				job.Job{Experiment: e, Scheme: algo}, s)
			if err != nil {
				return err
			}
			for _, file := range slices.Sorted(maps.Keys(captures)) {
				at := filepath.Join(out, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755),
					os.WriteFile(at, captures[file], 0o644)); err != nil {
					return fmt.Errorf("write what was captured: %w", err)
				}
			}
			if status != 0 {
				return exitCode(status)
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&algo, "algo", "", "the scheme (default: the experiment's first)")
	f.StringVarP(&out, "out", "o", ".", "folder for captures/HOST.pcapng of the file's `captures`")
	f.DurationVar(&limit, "limit", time.Minute,
		"a command that runs for longer is ended, in virtual time")
	return c
}

// chooseLines has the session read a script, what is piped in, or a terminal.
func chooseLines(s *launch.Shell, in io.Reader, scripts []string) error {
	terminal, _ := in.(*os.File)
	if len(scripts) == 0 && terminal != nil && term.IsTerminal(int(terminal.Fd())) {
		s.Ask = askAt(terminal)
		return nil
	}
	var text []byte
	var err error
	if len(scripts) > 0 {
		text, err = config.ReadFile(scripts[0], config.MaxFile)
	} else {
		text, err = io.ReadAll(bufio.NewReader(in))
	}
	if err != nil {
		return fmt.Errorf("read the script: %w", err)
	}
	s.Script = strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return nil
}

// askAt asks for lines at a terminal, which keeps those before. It is as it was while commands run.
func askAt(terminal *os.File) func(string) (string, error) {
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{terminal, os.Stdout}, "")
	return func(prompt string) (string, error) {
		fd := int(terminal.Fd())
		before, err := term.MakeRaw(fd)
		if err != nil {
			return "", fmt.Errorf("read from the terminal: %w", err)
		}
		defer func() { _ = term.Restore(fd, before) }()
		t.SetPrompt(prompt)
		return t.ReadLine()
	}
}
