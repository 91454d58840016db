// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"embed"
	"fmt"
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
