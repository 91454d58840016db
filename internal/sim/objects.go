// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:generate ../../scripts/compile-simulator.sh

// objectFiles are the algorithms, compiled.
//
//go:embed objects
var objectFiles embed.FS

// object returns the compiled form of a C file.
func object(file string) ([]byte, error) {
	data, err := objectFiles.ReadFile("objects/" + file)
	if err != nil {
		return nil, fmt.Errorf("the simulator has no %s: run make generate", file)
	}
	return data, nil
}

//go:embed bpf
var source embed.FS

// Source returns the C source of ports, which a marking rule of one's own is compiled into.
func Source() fs.FS {
	sub, err := fs.Sub(source, "bpf")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}
