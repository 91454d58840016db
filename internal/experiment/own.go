// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
)

// Compiler compiles the C file of a user's own scheme.
type Compiler func(ctx context.Context, path string) (scheme.Own, error)

// Options change how an experiment is read.
type Options struct {
	// Compile compiles the schemes under "algorithms". If it is nil, they must be embedded in
	// compiled form, as in a result.
	Compile Compiler
	// Own holds further schemes of the user's own, by the paths of their C files.
	Own map[string]scheme.Own
	// Idle lets an experiment have no traffic: somebody makes it by hand.
	Idle bool
}

const (
	algorithmsKey = "algorithms"
	filesKey      = "files"
)

// addOwn adds the file's own schemes and those of the options to the decoder's catalogue.
func (d *decoder) addOwn(root *yaml.Node) {
	d.ownFiles(root, func(name, file string, at *yaml.Node) {
		own, err := d.ownScheme(root, file)
		if err != nil {
			d.FailAt(at, err.Error(), "")
			return
		}
		d.addToCatalogue(name, own, at)
	})
}

// ownFiles calls visit for each entry of "algorithms".
func (d *decoder) ownFiles(root *yaml.Node, visit func(name, file string, at *yaml.Node)) {
	at := config.ValueIndex(root, algorithmsKey)
	if at < 0 || root.Content[at].Kind != yaml.MappingNode {
		return // there are none, or decoding reports the mistake
	}
	entries := root.Content[at].Content
	for i := 0; i+1 < len(entries); i += 2 {
		visit(entries[i].Value, entries[i+1].Value, entries[i+1])
	}
}

// ownScheme compiles the scheme in a C file, or returns the compiled form that the experiment
// embeds.
func (d *decoder) ownScheme(root *yaml.Node, file string) (own scheme.Own, err error) {
	if text, ok := fileIn(root, file); ok {
		return own, own.UnmarshalText([]byte(text))
	}
	if d.options.Compile == nil {
		return own, fmt.Errorf("%q is not compiled, and not among %q", file, filesKey)
	}
	path := file
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.attached.dir, path)
	}
	if own, err = d.options.Compile(context.Background(), path); err != nil {
		return own, err
	}
	text, err := own.MarshalText()
	d.attached.read[file] = string(text)
	return own, err
}

// fileIn returns the text of a file that the experiment embeds.
func fileIn(root *yaml.Node, name string) (string, bool) {
	at := config.ValueIndex(root, filesKey)
	if at < 0 {
		return "", false
	}
	files := root.Content[at]
	if i := config.ValueIndex(files, name); i >= 0 {
		return files.Content[i].Value, true
	}
	return "", false
}

// maxControlName is the most of a congestion control's name that Linux keeps (TCP_CA_NAME_MAX).
const maxControlName = 15

func (d *decoder) addToCatalogue(name string, own scheme.Own, at *yaml.Node) {
	more, s, err := d.catalogue.With(own)
	if err != nil {
		d.FailAt(at, err.Error(), "")
		return
	}
	if s.Name != name {
		hint := fmt.Sprintf("write %s as the key, or #define CONTROL %s in the file", s.Name, name)
		if len(name) > maxControlName {
			hint = fmt.Sprintf("names have at most %d characters", maxControlName)
		}
		d.FailAt(at, fmt.Sprintf("its scheme is %q, not %q", s.Name, name), hint)
		return
	}
	d.catalogue = more
	d.warnings = append(d.warnings, own.Warnings...)
}

// withOwn returns the source of an experiment with further compiled schemes embedded.
func withOwn(name string, source []byte, own map[string]scheme.Own) ([]byte, error) {
	if len(own) == 0 {
		return source, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(source, &doc); err != nil || len(doc.Content) == 0 {
		return source, nil // decoding reports the mistake
	}
	for _, path := range slices.Sorted(maps.Keys(own)) {
		_, s, err := scheme.Builtin().With(own[path])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		text, err := own[path].MarshalText()
		if err != nil {
			return nil, err
		}
		file := filepath.Base(path)
		setEntry(doc.Content[0], algorithmsKey, s.Name, file)
		setEntry(doc.Content[0], filesKey, file, string(text))
	}
	data, err := yaml.Marshal(&doc)
	if err != nil {
		return nil, fmt.Errorf("%s: add schemes: %w", name, err)
	}
	return data, nil
}

// setEntry sets an entry of a mapping in root, and adds the mapping if needed.
func setEntry(root *yaml.Node, mapping, key, value string) {
	at := config.ValueIndex(root, mapping)
	if at < 0 {
		root.Content = append(root.Content,
			&yaml.Node{Kind: yaml.ScalarNode, Value: mapping}, &yaml.Node{Kind: yaml.MappingNode})
		at = len(root.Content) - 1
	}
	m := root.Content[at]
	if i := config.ValueIndex(m, key); i >= 0 {
		m.Content[i] = &yaml.Node{Kind: yaml.ScalarNode, Value: value}
		return
	}
	m.Content = append(m.Content,
		&yaml.Node{Kind: yaml.ScalarNode, Value: key},
		&yaml.Node{Kind: yaml.ScalarNode, Value: value})
}
