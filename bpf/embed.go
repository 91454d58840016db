// SPDX-License-Identifier: Apache-2.0

// Package bpf holds the C sources that a congestion control of one's own is compiled with.
package bpf

import "embed"

// Headers are the folders algo and include.
//
//go:embed algo include
var Headers embed.FS

// Templates are what a new control, marking rule or notification point starts from.
//
//go:embed templates
var Templates embed.FS

// Controls are the sources of the built-in controls: cc/NAME.bpf.c.
//
//go:embed cc/*.bpf.c
var Controls embed.FS
