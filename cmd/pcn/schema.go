// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/jsonschema"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

// schemaKinds are the kinds of files that there is a schema of, the default first.
var schemaKinds = []string{"experiment", "host"}

// schemas make the schema of each kind of file.
var schemas = map[string]func(*scheme.Catalogue) (*jsonschema.Schema, error){
	"experiment": func(c *scheme.Catalogue) (*jsonschema.Schema, error) {
		return experiment.Schema(c), nil
	},
	"host": hostSchema,
}

func newSchema() *cobra.Command {
	var algorithms []string
	c := &cobra.Command{
		Use:   "schema [experiment|host]",
		Short: "Print a JSON schema of experiment or host files, for editors",
		Long: `Print a JSON schema (draft 2020-12) of experiment files, or of host files. With it,
an editor completes keys, shows what parameters are, and checks files while you write. For
editors with yaml-language-server (VS Code, Neovim, Emacs), put this line at the top of a file:

  # yaml-language-server: $schema=pcn-experiment.json

--algo adds the parameters of schemes of your own.`,
		Example: `  pcn schema > pcn-experiment.json
  pcn schema host > pcn-host.json
  pcn schema --algo ./mine.c > pcn-experiment.json`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: schemaKinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := slices.Concat(args, schemaKinds)[0]
			makeSchema, ok := schemas[kind]
			if !ok {
				return usageError{
					fmt.Errorf(
						"unknown kind of file %q (hint: %s)", kind,
						config.Suggest(kind, schemaKinds),
					),
				}
			}
			catalogue := scheme.Builtin()
			for _, file := range algorithms {
				own, err := compileOwn(cmd.Context(), file)
				if err != nil {
					return err
				}
				if catalogue, _, err = catalogue.With(own); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
			schema, err := makeSchema(catalogue)
			if err != nil {
				return err
			}
			return schema.Write(cmd.OutOrStdout())
		},
	}
	c.Flags().StringSliceVar(
		&algorithms, "algo", nil, "C files of schemes of your own, such as ./mine.c",
	)
	return c
}
