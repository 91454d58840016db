// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

func newList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the experiments that come with pcn",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := newTable(cmd.OutOrStdout())
			fmt.Fprintln(t, "NAME\tCASES\tSCHEMES\tTITLE")
			for _, name := range experiments.Names() {
				e, err := experiments.Load(name)
				if err != nil {
					return err
				}
				fmt.Fprintf(t, "%s\t%d\t%s\t%s\n",
					name, len(e.CaseNames()), strings.Join(e.Schemes, ","), e.Title)
			}
			return t.Flush()
		},
	}
}
