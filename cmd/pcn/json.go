// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
)

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
