// SPDX-License-Identifier: Apache-2.0

// Package docs holds the documentation, for the program to print.
package docs

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.md schemes/*.md
var files embed.FS

// Names returns the names of all documents: host, or schemes/pcn for a page of a scheme.
func Names() []string {
	var names []string
	for _, pattern := range []string{"*.md", "schemes/*.md"} {
		paths, err := fs.Glob(files, pattern)
		if err != nil {
			panic(err) // the patterns are constant and right
		}
		for _, p := range paths {
			names = append(names, strings.TrimSuffix(p, ".md"))
		}
	}
	return names
}

// Text returns a document as Markdown.
func Text(name string) (string, error) {
	text, err := files.ReadFile(name + ".md")
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no document %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return string(text), err
}
