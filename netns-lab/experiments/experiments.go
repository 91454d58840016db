// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
)

//go:embed *.yaml
var files embed.FS

// ErrUnknown is a name that no experiment has.
var ErrUnknown = errors.New("no experiment is named")

// Names returns the experiments that come with the program, in alphabetical order.
func Names() []string { return experiment.NamesIn(files) }

// Load returns an experiment by its name, if it comes with the program, or by the
// path of its file, which contains a separator or ends in .yaml or .yml.
func Load(nameOrPath string) (*experiment.Experiment, error) {
	return LoadWith(nameOrPath, experiment.Options{})
}

// LoadWith is Load with options.
func LoadWith(nameOrPath string, o experiment.Options) (*experiment.Experiment, error) {
	if experiment.IsPath(nameOrPath) {
		return experiment.LoadWith(nameOrPath, o)
	}
	file := nameOrPath + ".yaml"
	data, err := files.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil,
			fmt.Errorf("%w %q (hint: %s, or the path of a .yaml file)",
				ErrUnknown, nameOrPath, config.Suggest(nameOrPath, Names()))
	}
	if err != nil {
		return nil, fmt.Errorf("read experiment %s: %w", nameOrPath, err)
	}
	return experiment.ParseWith(file, data, o)
}
