// SPDX-License-Identifier: Apache-2.0

// Package suites holds the suites of experiments that come with the program.
package suites

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/suite"
)

//go:embed tcp
var files embed.FS

// Names returns the suites that come with the program, in alphabetical order.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the program holds it
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Load returns a suite by its name, if it comes with the program, or by the path of its folder,
// which contains a separator.
func Load(nameOrPath string) (suite.Suite, error) {
	if strings.ContainsRune(nameOrPath, filepath.Separator) {
		name := filepath.Base(filepath.Clean(nameOrPath))
		return load(os.DirFS(nameOrPath), name, func(file string) (*experiment.Experiment, error) {
			return experiment.Load(filepath.Join(nameOrPath, file))
		})
	}
	below, err := fs.Sub(files, nameOrPath)
	if err != nil {
		return suite.Suite{}, fmt.Errorf("invalid name of a suite %q: %w", nameOrPath, err)
	}
	s, err := load(below, nameOrPath, func(file string) (*experiment.Experiment, error) {
		data, err := fs.ReadFile(below, file)
		if err != nil {
			return nil, err
		}
		return experiment.Parse(path.Join(nameOrPath, file), data)
	})
	if errors.Is(err, errEmpty) {
		return s, fmt.Errorf("no suite is named %q: want one of %s, or a folder, such as ./mine",
			nameOrPath, strings.Join(Names(), ", "))
	}
	return s, err
}

var errEmpty = errors.New("want a folder with experiments, *.yaml")

func load(
	folder fs.FS, name string, read func(file string) (*experiment.Experiment, error),
) (suite.Suite, error) {
	s := suite.Suite{Name: name}
	names, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return s, fmt.Errorf("list the suite %s: %w", name, err)
	}
	if len(names) == 0 {
		return s, fmt.Errorf("suite %s has no experiments: %w", name, errEmpty)
	}
	for _, file := range names {
		e, err := read(file)
		if err != nil {
			return s, err
		}
		s.Experiments = append(s.Experiments, e)
	}
	return s, s.Check()
}
