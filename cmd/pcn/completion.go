// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// addCompletion completes names of experiments, cases and schemes in shells.
func addCompletion(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "run", "topo", "validate":
			c.ValidArgsFunction = completeExperiment
		}
		for flag, complete := range map[string]cobra.CompletionFunc{
			"algo": completeScheme, "case": completeCase,
		} {
			if c.Flags().Lookup(flag) != nil {
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
