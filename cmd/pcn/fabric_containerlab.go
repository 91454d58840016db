// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/fabric"
	"github.com/pcn-linux/pcn/internal/fabric/sonic"
	"github.com/pcn-linux/pcn/internal/foreign"
)

// containerlab returns the text of a topology of containerlab; nil if the file is something else.
func containerlab(file string) ([]byte, error) {
	if ext := strings.ToLower(filepath.Ext(file)); ext != ".yml" && ext != ".yaml" {
		return nil, nil
	}
	data, err := config.ReadText(file, config.MaxFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !foreign.IsContainerlab(data) {
		return nil, nil // who reads experiments says what is missing
	}
	return data, err
}

// checkContainerlab checks the links of a topology, and SONiC's configurations that it names.
func checkContainerlab(file string, data []byte) (*fabric.Result, error) {
	lab, err := foreign.ReadCabling(file, data)
	if err != nil {
		return nil, err
	}
	r := &fabric.Result{Findings: []fabric.Finding{}}
	var configs []string
	for _, x := range lab.Nodes {
		// other systems' configurations, and SONiC's command lines, are not read
		if filepath.Ext(x.Startup) != ".json" {
			continue
		}
		path := x.Startup
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(file), path)
		}
		if _, err := os.Stat(path); err != nil {
			r.Findings = append(r.Findings, fabric.Finding{
				Severity: fabric.Mistake, File: file, Key: "topology.nodes." + x.Name +
					".startup-config", Line: x.StartupLine,
				Message: fmt.Sprintf("%s is not there", path),
				Hint:    "want the switch's config_db.json, by a path from the topology's file",
				Show:    "ls " + path,
			})
		} else if !slices.Contains(configs, path) {
			configs = append(configs, path)
		}
	}
	if len(configs) > 0 {
		of, err := sonic.CheckFiles(configs)
		if err != nil {
			return nil, err
		}
		r.Findings = append(r.Findings, of.Findings...)
		r.Lossless = of.Lossless
	}
	return r, checkWires(file, lab, r)
}

// checkWires adds what the links alone say. Containerlab's links have no rate: all count as equal.
func checkWires(file string, lab *foreign.Cabling, r *fabric.Result) error {
	if lab.Network == nil || len(lab.Network.Switches) < 2 {
		return nil
	}
	wires, err := fabric.CheckNetwork(lab.Network, r.Lossless)
	if err != nil {
		return err
	}
	r.Checked, r.Pairs = wires.Checked, wires.Pairs
	for _, f := range wires.Findings {
		f.File, f.Key, f.Line = file, "topology.links", lab.Line
		f.Show = fmt.Sprintf("pcn import %s -o lab.yaml; pcn topo lab.yaml", file)
		r.Findings = append(r.Findings, f)
	}
	return nil
}
