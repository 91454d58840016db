// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/fluid/averaging"
)

func newAveraging() *cobra.Command {
	var svg string
	c := &cobra.Command{
		Use:   "averaging-principle",
		Short: "Compute the limits of RCP and AP-RCP: the Averaging Principle",
		Long: `Print the longest round trips at which RCP, AP-RCP (and PD-RCP, its equivalent) and
two-step AP-RCP are stable, by linear analysis and by runs, and the longest delays of the slides'
generic plant. With --svg, draw its step responses. The documentation's findings explain them.`,
		Example: `  pcn averaging-principle --svg responses.svg`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := averaging.WriteTables(cmd.OutOrStdout()); err != nil {
				return err
			}
			if svg == "" {
				return nil
			}
			var drawing bytes.Buffer
			if err := averaging.WriteSVG(&drawing); err != nil {
				return err
			}
			if err := os.WriteFile(svg, drawing.Bytes(), 0o644); err != nil {
				return fmt.Errorf("draw step responses: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&svg, "svg", "", "file to draw the step responses into")
	return c
}
