// SPDX-License-Identifier: Apache-2.0

//go:build js

// Command browser is the simulator in a page of the documentation, see package fig2.
package main

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"syscall/js"

	"github.com/pcn-linux/pcn/docs/site/fig2"
)

func main() {
	debug.SetGCPercent(800) // a run needs little memory, and a browser has much
	var s fig2.Simulator
	js.Global().Set("simulate", js.FuncOf(func(_ js.Value, args []js.Value) any {
		var answer struct {
			Error    string         `json:"error,omitempty"`
			Pictures []fig2.Picture `json:"pictures"`
		}
		var err error
		answer.Pictures, err = s.Pictures(context.Background(), fig2.Choice{
			Scheme: args[0].String(), BurstKB: args[1].Int(), Seed: uint64(args[2].Int())})
		if err != nil {
			answer.Error = err.Error()
		}
		text, err := json.Marshal(answer)
		if err != nil {
			panic(err) // it has text only
		}
		return string(text)
	}))
	select {} // until the page is left
}
