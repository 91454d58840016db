// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config"
)

// mistake is one in the output of pcn validate --json. Line and column count from 1; 0 is unknown.
type mistake struct {
	File    string `json:"file"`    // its path, as it was given
	Line    int    `json:"line"`    // from 1 on; 0 if it is of the whole file
	Column  int    `json:"column"`  // from 1 on; 0 if it is of the whole line
	Message string `json:"message"` // what is wrong
	Hint    string `json:"hint"`    // what to do; may be empty
}

func newValidate() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check experiment files without running them",
		Long: `Check experiment files, and print each mistake with its line, its column and a hint.
Exits with 1 if there is a mistake.

--json prints a list of objects with the keys file, line, column, message and hint: an empty list
if all is well. Line and column count from 1; 0 means unknown.`,
		Example: `  pcn validate my.yaml
  pcn validate --json *.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			found := []mistake{}
			for _, file := range files {
				e, err := loadExperiment(cmd.Context(), file, nil)
				if err != nil {
					found = append(found, mistakes(file, err)...)
				} else {
					printWarnings(cmd, e)
				}
				switch {
				case asJSON: // below
				case err != nil:
					fmt.Fprintln(cmd.ErrOrStderr(), err)
				default:
					fmt.Fprintf(cmd.OutOrStdout(), "%s: ok\n", file)
				}
			}
			if asJSON {
				if err := printJSON(cmd.OutOrStdout(), found); err != nil {
					return err
				}
			}
			if len(found) > 0 {
				return exitCode(exitError)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// mistakes returns the mistakes that an error of a file joins.
func mistakes(file string, err error) (all []mistake) {
	for _, e := range config.ErrorsIn(err) {
		all = append(all, mistake{cmp.Or(e.File, file), e.Line, e.Col, e.Msg, e.Hint})
	}
	return all
}
