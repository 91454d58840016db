// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"fmt"
	"reflect"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config/jsonschema"
	"github.com/pcn-linux/pcn/config/scheme"
)

// hostCommands are the commands for hosts that run a congestion control: here each fails.
func hostCommands() []*cobra.Command {
	var all []*cobra.Command
	for _, name := range []string{"host", "flows", "top", "trace"} {
		all = append(all, &cobra.Command{
			Use:                name,
			Short:              "Needs Linux",
			Args:               cobra.ArbitraryArgs,
			DisableFlagParsing: true,
			RunE:               func(*cobra.Command, []string) error { return needsLinux(name) },
		})
	}
	return all
}

// hostOutputs are the types of what those commands print: nothing.
func hostOutputs() map[string]reflect.Type { return map[string]reflect.Type{} }

// hostSchema fails: host files configure Linux.
func hostSchema(*scheme.Catalogue) (*jsonschema.Schema, error) {
	return nil, needsLinux("schema host")
}

// needsLinux says why a command can't run here.
func needsLinux(command string) error {
	return fmt.Errorf("pcn %s needs Linux: it is about congestion controls in this machine's "+
		"kernel; run it on a Linux host (experiments run here, pcn run)", command)
}
