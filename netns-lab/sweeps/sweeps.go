// SPDX-License-Identifier: Apache-2.0

// Package sweeps holds the sweeps that come with the program.
package sweeps

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/sweep"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

//go:embed *.yaml
var files embed.FS

// ErrUnknown is a name that no sweep has.
var ErrUnknown = errors.New("no sweep is named")

// Names returns the sweeps that come with the program, in alphabetical order.
func Names() []string { return experiment.NamesIn(files) }

// LoadWith returns a sweep by its name, if it comes with the program, or by the path of its file,
// which contains a separator or ends in .yaml or .yml. The options are those of reading the
// experiment.
func LoadWith(nameOrPath string, o experiment.Options) (*sweep.Sweep, error) {
	load := func(name string) (*experiment.Experiment, error) {
		return experiments.LoadWith(name, o)
	}
	if experiment.IsPath(nameOrPath) {
		return sweep.Load(nameOrPath, load)
	}
	file := nameOrPath + ".yaml"
	data, err := files.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil,
			fmt.Errorf("%w %q (hint: one of %s, or the path of a .yaml file)",
				ErrUnknown, nameOrPath, strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("read sweep %s: %w", nameOrPath, err)
	}
	return sweep.Parse(file, data, load)
}
