// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/foreign"
)

func newImport() *cobra.Command {
	var topo, out string
	c := &cobra.Command{
		Use:   "import FILE [ARGUMENTS]",
		Short: "Write an experiment from a file of containerlab or Mininet",
		Long: `Write an experiment with the network of a file, and the programs that it starts.

FILE.py is for Mininet: python3 runs it without Mininet and without root, and notes its hosts,
switches and links. ARGUMENTS are the program's. Commands of its hosts, and of this machine, do
nothing. Any other FILE is a topology of containerlab. Comments of the experiment say what it calls
each node, and by line what can't be said.`,
		Example: `  pcn import lab.clab.yml > lab.yaml
  pcn import net.py --topo mytopo -o net.yaml
  pcn shell net.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := readForeign(cmd, args[0], topo, args[1:])
			if err != nil {
				return err
			}
			text, err := n.Experiment(args[0])
			if err != nil {
				return err
			}
			idle := experiment.Options{Idle: true} // it may have no programs
			if _, err := experiment.ParseWith(args[0], []byte(text), idle); err != nil {
				return fmt.Errorf("the network of %s is none that an experiment can have: %w",
					args[0], err)
			}
			if out == "" {
				_, err := fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			}
			if err := os.WriteFile(out, []byte(text), 0o644); err != nil {
				return fmt.Errorf("write the experiment: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&topo, "topo", "",
		"of a file for Mininet: one of its topos, or a class, and parameters: mytopo,3")
	c.Flags().StringVarP(&out, "output", "o", "", "file to write (default: standard output)")
	return c
}

func readForeign(
	cmd *cobra.Command, file, topo string, arguments []string,
) (*foreign.Network, error) {
	if filepath.Ext(file) == ".py" {
		return foreign.Mininet(cmd.Context(), file, topo, arguments...)
	}
	if topo != "" || len(arguments) > 0 {
		return nil, usageError{errors.New("--topo and arguments are for files of Mininet, FILE.py")}
	}
	data, err := config.ReadText(file, config.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("read topology: %w", err)
	}
	return foreign.Containerlab(file, data)
}
