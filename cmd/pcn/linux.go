// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"reflect"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config/jsonschema"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/host/doctor"
	"github.com/pcn-linux/pcn/loader"
)

// hostCommands are the commands for hosts that run a congestion control: Linux's own.
func hostCommands() []*cobra.Command {
	return []*cobra.Command{newHost(), newFlows(), newTop(), newTrace()}
}

// hostOutputs are the types of what those commands print with --json.
func hostOutputs() map[string]reflect.Type {
	return map[string]reflect.Type{
		"flows":         reflect.TypeFor[[]loader.Flow](),
		"host status":   reflect.TypeFor[host.Status](),
		"host doctor":   reflect.TypeFor[[]doctor.Check](),
		"host selftest": reflect.TypeFor[[]doctor.Check](),
	}
}

// hostSchema returns the schema of host files.
func hostSchema(*scheme.Catalogue) (*jsonschema.Schema, error) { return host.Schema(), nil }
