// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

//go:embed *.yaml
var files embed.FS

// ErrUnknown is a name that no experiment has.
var ErrUnknown = errors.New("no experiment is named")

// Names returns the experiments that come with the program, in alphabetical order.
func Names() []string {
	// The pattern is constant and well-formed: Glob can't fail.
	paths, _ := fs.Glob(files, "*.yaml")
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = strings.TrimSuffix(p, ".yaml")
	}
	slices.Sort(names)
	return names
}

// Load returns an experiment by its name, if it comes with the program, or by the
// path of its file, which contains a separator or ends in .yaml or .yml.
func Load(nameOrPath string) (*experiment.Experiment, error) {
	return LoadWith(nameOrPath, experiment.Options{})
}

// LoadWith is Load with options.
func LoadWith(nameOrPath string, o experiment.Options) (*experiment.Experiment, error) {
	if isPath(nameOrPath) {
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

func isPath(s string) bool {
	ext := filepath.Ext(s)
	return strings.ContainsRune(s, filepath.Separator) || ext == ".yaml" || ext == ".yml"
}
