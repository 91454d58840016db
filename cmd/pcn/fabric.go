// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/fabric"
	"github.com/pcn-linux/pcn/internal/fabric/sonic"
)

func newFabric() *cobra.Command {
	c := &cobra.Command{
		Use:   "fabric",
		Short: "Check the network of an experiment before it runs",
	}
	c.AddCommand(newFabricCheck())
	return c
}

func newFabricCheck() *cobra.Command {
	var asJSON bool
	var caseName, experiments string
	c := &cobra.Command{
		Use:   "check EXPERIMENT|CONFIG_DB.JSON|FOLDER|TOPOLOGY.CLAB.YML",
		Short: "Find deadlocks, missing headroom and thresholds in the wrong order",
		Long: `Check routes, buffers and thresholds of an experiment's network, without running it:
circles of buffers that may wait for each other, also when one or two links between switches
fail; room for what arrives after a PAUSE; marking before PAUSE and drops; and oversubscription.
Each finding has the key and its line, what would be right, and what to run to see it.

It reads the configuration of SONiC's switches too: one config_db.json, or a folder with that of
each switch, which DEVICE_NEIGHBOR joins. With --experiments DIR it writes experiments that show
what it found. Of a topology of containerlab it reads the links, and each config_db.json that a node
has as its startup-config.

A mistake loses packets, stops the network or makes a setting useless; a risk depends on
failures or on the traffic. Exits with 3 if there is a mistake.`,
		Example: `  pcn fabric check my.yaml
  pcn fabric check hol --json
  pcn fabric check /etc/sonic/config_db.json
  pcn fabric check switches/ --experiments shown
  pcn fabric check lab.clab.yml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := checkFile(cmd, args[0], caseName, experiments)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), r)
			} else {
				err = printFindings(cmd.OutOrStdout(), args[0], r)
			}
			if err != nil {
				return err
			}
			for _, f := range r.Findings {
				if f.Severity == fabric.Mistake {
					return exitCode(exitExpect)
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&experiments, "experiments", "",
		"write experiments that show findings of config_db.json to this folder")
	c.Flags().StringVar(&caseName, "case", "", "check this case (default: the file without any)")
	return c
}

// checkFile checks an experiment, a topology of containerlab, or SONiC's switches. Of the latter
// two it writes experiments that show what it found.
func checkFile(cmd *cobra.Command, path, caseName, experiments string) (*fabric.Result, error) {
	lab, err := containerlab(path)
	if err != nil {
		return nil, err
	}
	what, check := "a switch", func() (*fabric.Result, error) { return sonic.Check(path) }
	if lab != nil {
		what, check = "a topology", func() (*fabric.Result, error) {
			return checkContainerlab(path, lab)
		}
	} else if !sonic.Is(path) && experiments != "" {
		return nil, usageError{errors.New("--experiments is for config_db.json: a finding of " +
			"an experiment says what to run")}
	} else if !sonic.Is(path) {
		return checkExperiment(cmd, path, caseName)
	}
	if cmd.Flags().Changed("case") {
		return nil, usageError{fmt.Errorf("%s has no cases: leave --case out", what)}
	}
	r, err := check()
	if err != nil {
		return nil, err
	}
	return r, writeShown(experiments, path, r)
}

// checkExperiment checks the network of an experiment, or of one of its cases.
func checkExperiment(cmd *cobra.Command, name, caseName string) (*fabric.Result, error) {
	e, err := loadExperiment(cmd.Context(), name, nil)
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("case") {
		if e, err = e.Case(caseName); err != nil {
			return nil, usageError{err}
		}
	}
	r, err := fabric.Check(e)
	if err != nil {
		return nil, err
	}
	for i, f := range r.Findings {
		r.Findings[i].Show = strings.ReplaceAll(f.Show, "FILE", name)
	}
	return r, nil
}

// writeShown writes the experiments of findings to a folder, and has the findings name them. With
// no folder they say how to get them.
func writeShown(dir, path string, r *fabric.Result) error {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Experiment == "" {
			continue
		}
		if dir == "" {
			f.Show = fmt.Sprintf("pcn fabric check %s --experiments DIR; pcn run DIR/%d-%s.yaml; "+
				"%s", path, i+1, f.Name, f.Show)
			continue
		}
		file := filepath.Join(dir, fmt.Sprintf("%d-%s.yaml", i+1, f.Name))
		if err := os.WriteFile(file, []byte(f.Experiment), 0o644); err != nil {
			return err
		}
		f.Show = fmt.Sprintf("pcn run %s; %s", file, f.Show)
	}
	return nil
}

func printFindings(w io.Writer, file string, r *fabric.Result) error {
	for _, f := range r.Findings {
		fmt.Fprintf(w, "%s:%d: %s: %s\n    %s\n    %s\n    to see it: %s\n",
			cmp.Or(f.File, file), f.Line, f.Severity, f.Key, f.Message, f.Hint, f.Show)
	}
	if r.Checked < r.Pairs {
		fmt.Fprintf(w, "checked %d of %d failures of two links\n", r.Checked, r.Pairs)
	}
	_, err := fmt.Fprintf(w, "%d findings\n", len(r.Findings))
	return err
}
