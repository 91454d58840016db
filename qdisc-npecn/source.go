// SPDX-License-Identifier: Apache-2.0

package npecn

import (
	"embed"
	"io/fs"
)

//go:embed bpf
var source embed.FS

// Source returns the C sources of the port, which a marking rule of one's own is compiled into.
func Source() fs.FS {
	sub, err := fs.Sub(source, "bpf")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}
