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

//go:embed *.md
var files embed.FS

// Names are the documents'.
func Names() []string {
	paths, err := fs.Glob(files, "*.md")
	if err != nil {
		panic(err) // the pattern is right
	}
	var names []string
	for _, p := range paths {
		names = append(names, strings.TrimSuffix(p, ".md"))
	}
	return names
}

// Text is a document, as Markdown.
func Text(name string) (string, error) {
	text, err := files.ReadFile(name + ".md")
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no document %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return string(text), err
}
