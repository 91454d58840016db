// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/jsonout"
	"github.com/pcn-linux/pcn/internal/launch"
)

func newDoctor() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine's requirements, and show how to install what is missing",
		Long: `Check the requirements of the microVM, in which experiments run by default, of
--native and of captures. Exits with 1 if experiments can run neither in the microVM nor natively.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := []jsonout.Check{}
			t := newTable(cmd.OutOrStdout())
			ready := map[string]bool{launch.ForVM: true, launch.ForNative: true}
			for _, c := range launch.Doctor() {
				check := jsonout.Check{What: c.What, For: c.For, OK: c.Err == nil}
				if c.Err != nil {
					check.Error, check.Fix = c.Err.Error(), c.Fix
				}
				found = append(found, check)
				if c.Err == nil {
					fmt.Fprintf(t, "ok\t%s\t%s\t\n", c.For, c.What)
					continue
				}
				ready[c.For] = false
				fmt.Fprintf(t, "missing\t%s\t%s\t%v\tfix: %s\n", c.For, c.What, c.Err, c.Fix)
			}
			if asJSON {
				if err := printJSON(cmd.OutOrStdout(), found); err != nil {
					return err
				}
			} else if err := t.Flush(); err != nil {
				return err
			}
			if !ready[launch.ForVM] && !ready[launch.ForNative] {
				return exitCode(exitError)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
