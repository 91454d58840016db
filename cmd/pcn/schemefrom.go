// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/bpf"
	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/lazy"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
)

// This file writes a control of the user's own that begins as a built-in one: the same C, the same
// values.

var (
	ownHeader   = lazy.Regexp(`#include "algo/(\w+)\.h"`)
	besideIt    = lazy.Regexp(`#include "(\w+\.h)"`)
	controlName = lazy.Regexp(`(?m)^#define CONTROL(\s+)\w+$`)
	nameOf      = lazy.Regexp(`\s+SCHEME\("(?:name|section)", "[^"]*"\)[^\n]*`)
	operations  = lazy.Regexp(`tcp_congestion_ops (\w+) = \{`)
	operation   = lazy.Regexp(`= \(void \*\)(\w+),`)
	titleOf     = lazy.Regexp(`SCHEME\("title", "[^"]*"`)
)

// builtInSources returns the names of the schemes that a control can begin as.
func builtInSources() []string {
	var names []string
	for _, name := range scheme.Builtin().Names() {
		if _, err := fs.Stat(bpf.Controls, "cc/"+name+".bpf.c"); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// filesFrom returns the files of a control that begins as a built-in scheme: its C file, its
// algorithm's header, and an experiment with the values that the scheme has by default.
func filesFrom(from, name string) ([][2]string, error) {
	s, err := scheme.Builtin().Lookup(from)
	if err == nil {
		_, err = fs.Stat(bpf.Controls, "cc/"+from+".bpf.c")
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("--from %s: no built-in control has that name (hint: %s)",
			from, config.Suggest(from, builtInSources()))}
	}
	control, err := fs.ReadFile(bpf.Controls, "cc/"+from+".bpf.c")
	if err != nil {
		return nil, err
	}
	header := name + "_algo.h"
	algorithm, err := fs.ReadFile(bpf.Headers, "algo/"+from+".h")
	if err != nil {
		return nil, err
	}
	text := renamedOperations(string(control), name)
	text = controlName().ReplaceAllString(text, "#define CONTROL${1}"+name)
	text = titleOf().ReplaceAllString(text,
		fmt.Sprintf("SCHEME(%q, %q", "title", name+": from "+from))
	text = nameOf().ReplaceAllString(text, "")
	text = ownHeader().ReplaceAllStringFunc(text, func(include string) string {
		if ownHeader().FindStringSubmatch(include)[1] == from {
			return fmt.Sprintf("#include %q", header)
		}
		return include
	})
	template, err := fs.ReadFile(bpf.Templates, "templates/control.yaml")
	if err != nil {
		return nil, err
	}
	values, err := valuesFrom(s, string(template), name)
	if err != nil {
		return nil, err
	}
	return [][2]string{
		{name + ".c", text},
		{header, besideIt().ReplaceAllString(string(algorithm), `#include "algo/$1"`)},
		{name + ".yaml", values},
	}, nil
}

// renamedOperations renames the operations of TCP in a control that defines them itself: most leave
// that to a header.
func renamedOperations(text, name string) string {
	ops := operations().FindStringSubmatch(text)
	if ops == nil {
		return text
	}
	old := ops[1]
	for _, m := range operation().FindAllStringSubmatch(text, -1) {
		renamed := name + strings.TrimPrefix(m[1], old)
		text = regexp.MustCompile(`\b`+m[1]+`\b`).ReplaceAllString(text, renamed)
	}
	return strings.NewReplacer(ops[0], "tcp_congestion_ops "+name+" = {",
		fmt.Sprintf(".name = %q", old), fmt.Sprintf(".name = %q", name)).Replace(text)
}

// valuesFrom returns the template of an experiment with the scheme's values on the template's links
// as the control's section.
func valuesFrom(s scheme.Scheme, template, name string) (string, error) {
	e, err := experiment.Parse("control.yaml", []byte("engine: sim\n"+strings.NewReplacer(
		"algorithms: {NAME: NAME.c}\n", "", "name: NAME\n", "name: template\n", "NAME", s.Name).
		Replace(template)))
	if err != nil {
		return "", fmt.Errorf("read the template of experiments: %w", err)
	}
	if e.CheckEngine(experiment.EngineKernel) != nil {
		template = strings.Replace(template, "\nname: ", "\nengine: sim\nname: ", 1)
	}
	values := e.Values(s)
	if values == nil {
		return withName(template, name), nil
	}
	section := yaml.Node{Kind: yaml.MappingNode}
	for _, p := range s.Object.Params {
		if len(p.Choices) == 0 && p.Default == "" && p.Range == "" {
			continue // a flag
		}
		if strings.Contains(p.Default, "base_rtt") {
			continue // each path's own, by the same default
		}
		setPath(&section, strings.Split(p.Key, "."), values.Get(p.Key).String())
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(map[string]*yaml.Node{name: &section}); err != nil {
		return "", fmt.Errorf("write the values of %s: %w", s.Name, err)
	}
	commented := "# NAME: {cut: 0.5} # parameters, by the keys of NAME.c\n"
	if !strings.Contains(template, commented) {
		return "", fmt.Errorf("the template of experiments lacks %q", commented)
	}
	template = strings.Replace(template, commented, "# the values of "+s.Name+"\n"+text.String(), 1)
	return withName(template, name), nil
}

// withName returns a template with a control's name. Names of experiments have no "_".
func withName(template, name string) string {
	return strings.NewReplacer("name: NAME\n", "name: "+strings.ReplaceAll(name, "_", "-")+"\n",
		"NAME", name).Replace(template)
}

// setPath sets a value in nested mappings.
func setPath(at *yaml.Node, path []string, value string) {
	for i, key := range path {
		var next *yaml.Node
		if k := config.ValueIndex(at, key); k >= 0 {
			next = at.Content[k]
		} else {
			next = &yaml.Node{Kind: yaml.MappingNode}
			at.Content = append(at.Content,
				&yaml.Node{Kind: yaml.ScalarNode, Value: key}, next)
		}
		if i == len(path)-1 {
			*next = yaml.Node{Kind: yaml.ScalarNode, Value: value}
		}
		at = next
	}
}
