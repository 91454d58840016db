// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// listed is an experiment in the output of pcn list --json.
type listed struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Cases   []string `json:"cases"`
	Schemes []string `json:"schemes"`
}

func newList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the experiments that come with pcn",
		Long: `List the experiments that come with pcn.

--json prints a list of objects with the keys name, title, cases and schemes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := listAll()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), all)
			}
			t := newTable(cmd.OutOrStdout())
			fmt.Fprintln(t, "NAME\tCASES\tSCHEMES\tTITLE")
			for _, e := range all {
				fmt.Fprintf(t, "%s\t%d\t%s\t%s\n",
					e.Name, len(e.Cases), strings.Join(e.Schemes, ","), e.Title)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func listAll() ([]listed, error) {
	var all []listed
	for _, name := range experiments.Names() {
		e, err := experiments.Load(name)
		if err != nil {
			return nil, err
		}
		all = append(all, listed{name, e.Title, e.CaseNames(), e.Schemes})
	}
	return all, nil
}
