// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/netns-lab/launch"
)

func newDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine's requirements, and show how to install what is missing",
		Long: `Check the requirements of the microVM, in which experiments run by default, of
--native and of captures. Exits with 1 if experiments can run neither in the microVM nor natively.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := newTable(cmd.OutOrStdout())
			ready := map[string]bool{launch.ForVM: true, launch.ForNative: true}
			for _, c := range launch.Doctor() {
				if c.Err == nil {
					fmt.Fprintf(t, "ok\t%s\t%s\t\n", c.For, c.What)
					continue
				}
				ready[c.For] = false
				fmt.Fprintf(t, "missing\t%s\t%s\t%v\tfix: %s\n", c.For, c.What, c.Err, c.Fix)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			if !ready[launch.ForVM] && !ready[launch.ForNative] {
				return exitCode(exitError)
			}
			return nil
		},
	}
}
