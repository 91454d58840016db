// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/docs/site/fig2"
)

// The scripts of the page with the simulator: one for the page, and one with the program, which the
// former loads when it is needed. All is in scripts, as a page that is read from the disk may load
// no other files.
const (
	simulatorPage    = "simulator.js"
	simulatorProgram = "simulator-program.js"
)

//go:embed assets/simulator.html
var simulatorHTML string

//go:embed assets/simulator.js
var simulatorJS []byte

// What runs the simulator, in a worker: behind Go's own script.
var (
	//go:embed assets/modules.js
	modulesJS []byte
	//go:embed assets/worker.js
	workerJS []byte
)

// simulatorSite is what the page with the simulator needs of the site.
type simulatorSite struct {
	program []byte // the script with the simulator
	first   []byte // HTML: the figures that the page opens with
}

// newSimulatorSite simulates what the page opens with, and compiles the simulator for browsers.
func newSimulatorSite(ctx context.Context, root string) (*simulatorSite, error) {
	var s fig2.Simulator
	pictures, err := s.Pictures(ctx, fig2.First())
	if err != nil {
		return nil, fmt.Errorf("simulate Fig. 2: %w", err)
	}
	var first bytes.Buffer
	for _, p := range pictures {
		fmt.Fprintf(&first, "<figure><figcaption>%s.</figcaption>%s</figure>\n",
			template.HTMLEscapeString(p.Heading), p.SVG)
	}
	program, err := compiledSimulator(ctx, root)
	if err != nil {
		return nil, err
	}
	return &simulatorSite{program, first.Bytes()}, nil
}

// addTo adds the scripts to the site's files, and the first figures to the page.
func (s *simulatorSite) addTo(files map[string][]byte) {
	files[simulatorPage], files[simulatorProgram] = simulatorJS, s.program
	const page, place = "in-browser.html", `<div id="simulated">`
	files[page] = bytes.Replace(files[page], []byte(place),
		append([]byte(place), s.first...), 1)
}

// compiledSimulator compiles the simulator for browsers, and returns the script that has it.
func compiledSimulator(ctx context.Context, root string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "pcn-simulator-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the simulator: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "simulator.wasm")
	build := goCommand(ctx, root, "build", "-trimpath", "-ldflags", "-s -w", "-o", file,
		"./docs/site/browser")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the simulator for browsers: %w\n%s", err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the simulator: %w", err)
	}
	goRoot, err := goCommand(ctx, root, "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go's script for browsers: %w", err)
	}
	loader, err := os.ReadFile(
		filepath.Join(strings.TrimSpace(string(goRoot)), "lib/wasm/wasm_exec.js"))
	if err != nil {
		return nil, fmt.Errorf("read Go's script for browsers: %w", err)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(program)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress the simulator: %w", err)
	}
	worker, err := json.Marshal(string(slices.Concat(loader, modulesJS, workerJS)))
	if err != nil {
		return nil, fmt.Errorf("quote the simulator's worker: %w", err)
	}
	return fmt.Appendf(nil, "const simulatorProgram = \"%s\";\nconst simulatorWorker = %s;\n",
		base64.StdEncoding.EncodeToString(packed.Bytes()), worker), nil
}

func goCommand(ctx context.Context, root string, arguments ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", arguments...)
	c.Dir = root
	return c
}
