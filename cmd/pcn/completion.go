// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
	"github.com/pcn-linux/pcn/netns-lab/sweeps"
)

// addCompletion completes names of experiments, sweeps, cases, schemes and interfaces in shells.
func addCompletion(root *cobra.Command) {
	for _, c := range root.Commands() {
		addCompletion(c)
		switch c.Name() {
		case "run", "topo", "validate":
			c.ValidArgsFunction = completeExperiment
		case "sweep":
			c.ValidArgsFunction = completeSweep
		}
		for flag, complete := range map[string]cobra.CompletionFunc{
			"algo": completeScheme, "case": completeCase, "on": completeInterface,
		} {
			f := c.Flags().Lookup(flag)
			if flag == "on" && f != nil && f.Value.Type() == "string" {
				complete = cobra.FixedCompletions([]cobra.Completion{onLocal, onSlurm},
					cobra.ShellCompDirectiveNoFileComp)
			}
			if f != nil {
				// Fails only for a flag that is not there.
				_ = c.RegisterFlagCompletionFunc(flag, complete)
			}
		}
	}
}

// completeExperiment completes the name or the path of an experiment.
func completeExperiment(
	*cobra.Command, []string, string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	return experiments.Names(), cobra.ShellCompDirectiveDefault // files too
}

func completeSweep(
	*cobra.Command, []string, string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	return sweeps.Names(), cobra.ShellCompDirectiveDefault // files too
}

// completeInterface completes the network interfaces of this host.
func completeInterface(
	*cobra.Command, []string, string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func completeScheme(
	*cobra.Command, []string, string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	return slices.Concat(scheme.Builtin().Names(), scheme.KernelControls()),
		cobra.ShellCompDirectiveDefault
}

// completeCase completes a case of the experiment that stands in the command line already.
func completeCase(
	_ *cobra.Command, args []string, _ string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	e, err := experiments.Load(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return e.CaseNames(), cobra.ShellCompDirectiveNoFileComp
}
