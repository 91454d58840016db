// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config/jsonschema"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/host"
)

// hostCommands are the commands for hosts that run a congestion control: Linux's own.
func hostCommands() []*cobra.Command {
	return []*cobra.Command{newHost(), newFlows(), newTop(), newTrace()}
}

// hostSchema returns the schema of host files.
func hostSchema(*scheme.Catalogue) (*jsonschema.Schema, error) { return host.Schema(), nil }
