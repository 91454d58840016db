// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
)

// attached reads the files that an experiment names.
type attached struct {
	// folder of the files; empty if only those embedded in the experiment count
	dir  string
	read map[string]string // texts read from dir, by name
}

// attachedText returns the text of the file that the value at path names. Errors in the text name
// the file where.
func (d *decoder) attachedText(
	path string, e *Experiment, name string,
) (where, text string, ok bool) {
	if text, ok = e.Files[name]; ok {
		return name, text, true
	}
	if d.attached.dir == "" && e.Files != nil {
		d.fail(path, fmt.Sprintf("%q is not among \"files\"", name),
			config.Suggest(name, slices.Sorted(maps.Keys(e.Files))))
		return name, "", false
	}
	if d.attached.dir == "" {
		d.fail(path, fmt.Sprintf("%q is not in the experiment", name), "add it under files:")
		return "", "", false
	}
	where = name
	if !filepath.IsAbs(name) {
		where = filepath.Join(d.attached.dir, name)
	}
	if text, ok = d.attached.read[name]; ok {
		return where, text, true
	}
	data, err := config.ReadText(where, config.MaxFile)
	if err != nil {
		d.fail(path, err.Error(), "paths are relative to the experiment's file")
		return "", "", false
	}
	if !utf8.Valid(data) {
		d.fail(path, fmt.Sprintf("%s is not a text", where), "")
		return "", "", false
	}
	d.attached.read[name] = string(data)
	return where, string(data), true
}

// failFile adds an error in a file that the experiment names.
func (d *decoder) failFile(file string, line int, msg, hint string) {
	d.Errs = append(d.Errs, &Error{File: file, Line: line, Msg: msg, Hint: hint})
}

// failParse adds the error of a parser of such a file.
func (d *decoder) failParse(file string, err error) {
	var at *Error
	if !errors.As(err, &at) {
		at = &Error{Msg: err.Error()}
	}
	d.failFile(file, at.Line, at.Msg, "")
}

// attach returns the source with the files that were read embedded, so that it is complete by
// itself.
func attach(name string, source []byte, files map[string]string) ([]byte, error) {
	if len(files) == 0 {
		return bytes.Clone(source), nil
	}
	var doc yaml.Node
	if yaml.Unmarshal(source, &doc) == nil && config.ValueIndex(doc.Content[0], filesKey) >= 0 {
		for _, file := range slices.Sorted(maps.Keys(files)) {
			setEntry(doc.Content[0], filesKey, file, files[file])
		}
		return yaml.Marshal(&doc)
	}
	section, err := yaml.Marshal(map[string]map[string]string{filesKey: files})
	if err != nil {
		return nil, fmt.Errorf("%s: add files: %w", name, err)
	}
	whole := slices.Concat(source, []byte("\n"), section)
	var again struct {
		Files map[string]string `yaml:"files"`
	}
	if err := yaml.Unmarshal(whole, &again); err != nil || !maps.Equal(again.Files, files) {
		return nil, &Error{File: name, Msg: "files can't be added to it, as results need",
			Hint: "write a key a line, without braces around all, and end without \"...\""}
	}
	return whole, nil
}

// withFiles returns a copy of the tree that [attach] makes a source of.
func withFiles(root *yaml.Node, files map[string]string) (*yaml.Node, error) {
	if len(files) == 0 {
		return root, nil
	}
	c := *root
	c.Content = slices.Clone(root.Content)
	if at := config.ValueIndex(&c, filesKey); at >= 0 {
		embedded := *behindAliases(c.Content[at])
		embedded.Content = slices.Clone(embedded.Content)
		c.Content[at] = &embedded
		for _, file := range slices.Sorted(maps.Keys(files)) {
			setEntry(&c, filesKey, file, files[file])
		}
		return &c, nil
	}
	section, err := yaml.Marshal(map[string]map[string]string{filesKey: files})
	if err != nil {
		return nil, fmt.Errorf("add files: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(section, &doc); err != nil {
		return nil, fmt.Errorf("add files: %w", err)
	}
	c.Content = append(c.Content, doc.Content[0].Content...)
	return &c, nil
}
