// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/pcn-linux/pcn/docs"
)

func newMan() *cobra.Command {
	var markdown bool
	c := &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual page of each command to a folder",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("create the folder of manual pages: %w", err)
			}
			header := &doc.GenManHeader{
				Section: "1", Source: "pcn", Manual: "PCN for Linux",
			}
			var err error
			if header.Date, err = manualDate(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
				return usageError{err}
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			if markdown {
				if err := doc.GenMarkdownTree(root, args[0]); err != nil {
					return fmt.Errorf("write pages of commands: %w", err)
				}
				return nil
			}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&markdown, "markdown", false, "write Markdown instead, for web pages")
	return c
}

// manualDate returns the date of manual pages: that of the source, in seconds since 1970, as
// builds of packages have it in their environment. Without it there is none: the same
// commands give the same bytes on every day.
func manualDate(epoch string) (*time.Time, error) {
	if epoch == "" {
		return &time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH=%q: want seconds since 1970", epoch)
	}
	date := time.Unix(seconds, 0).UTC()
	return &date, nil
}

func newDocs() *cobra.Command {
	return &cobra.Command{
		Use:       "docs [NAME]",
		Short:     "Print a document that comes with pcn, or list them all",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: docs.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := cmd.OutOrStdout()
			if len(args) == 0 {
				_, err := fmt.Fprintln(w, strings.Join(docs.Names(), "\n"))
				return err
			}
			text, err := docs.Text(args[0])
			if err != nil {
				return usageError{err}
			}
			_, err = fmt.Fprint(w, text)
			return err
		},
	}
}
