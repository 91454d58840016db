// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/jsonschema"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/jsonout"
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

// outputs are the types of what commands print with --json.
func outputs() map[string]reflect.Type {
	all := hostOutputs()
	maps.Copy(all, map[string]reflect.Type{
		"run":              reflect.TypeFor[jsonout.Outcomes](),
		"compare":          reflect.TypeFor[[]jsonout.Compared](),
		"diff":             reflect.TypeFor[[]jsonout.Diff](),
		"rerun":            reflect.TypeFor[[]jsonout.Diff](),
		"topo":             reflect.TypeFor[jsonout.Topology](),
		"doctor":           reflect.TypeFor[[]jsonout.Check](),
		"list":             reflect.TypeFor[[]listed](),
		"sweep":            reflect.TypeFor[sweptJSON](),
		"reproduce":        reflect.TypeFor[[]claimJSON](),
		"reproduce --list": reflect.TypeFor[[]figureJSON](),
		"scheme list":      reflect.TypeFor[[]schemeJSON](),
		"scheme show":      reflect.TypeFor[schemeJSON](),
		"validate":         reflect.TypeFor[[]mistake](),
	})
	return all
}

// outputKinds are the commands of outputs.
func outputKinds() []string { return slices.Sorted(maps.Keys(outputs())) }

// writeOutputSchema writes the schema of what a command prints with --json.
func writeOutputSchema(w io.Writer, command string) error {
	of, ok := outputs()[command]
	if !ok {
		return usageError{fmt.Errorf("unknown output %q (hint: %s)", command,
			config.Suggest(command, outputKinds()))}
	}
	return jsonschema.OfOutput(of).WriteOutput(w)
}

func newSchema() *cobra.Command {
	var output string
	var algorithms []string
	c := &cobra.Command{
		Use:   "schema [experiment|host]",
		Short: "Print a JSON schema of experiment or host files, or of what a command prints",
		Long: `Print a JSON schema (draft 2020-12) of experiment files, or of host files. With it,
an editor completes keys, shows what parameters are, and checks files while you write. For
editors with yaml-language-server (VS Code, Neovim, Emacs), put this line at the top of a file:

  # yaml-language-server: $schema=pcn-experiment.json

--algo adds the parameters of schemes of your own. --output prints the schema of what a command
prints with --json: ` + strings.Join(outputKinds(), ", ") + `.`,
		Example: `  pcn schema > pcn-experiment.json
  pcn schema host > pcn-host.json
  pcn schema --algo ./mine.c > pcn-experiment.json
  pcn schema --output run > pcn-run.json
  pcn schema --output "host status"`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: schemaKinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" {
				return writeOutputSchema(cmd.OutOrStdout(), output)
			}
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
	c.Flags().StringVar(&output, "output", "",
		"command whose --json output to describe, such as run or \"host status\"")
	return c
}
