// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/config/jsonschema"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/experiment"
)

// reference returns the pages that are made from code, by their names in nav.yaml.
func reference(ctx context.Context, root string) (map[string]string, error) {
	cli, err := commandLine(ctx, root)
	if err != nil {
		return nil, err
	}
	metrics, err := metricsPage(root)
	if err != nil {
		return nil, err
	}
	results, err := resultsPage(root)
	if err != nil {
		return nil, err
	}
	printed, err := jsonPage(root)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"generated/json":    printed,
		"generated/cli":     cli,
		"generated/metrics": metrics,
		"generated/results": results,
		"generated/schema": schemaPage("All keys of experiment files", experimentIntroduction,
			experiment.Schema(scheme.Builtin())),
		"generated/host-schema": schemaPage("All keys of host files", hostIntroduction,
			host.Schema()),
	}, nil
}

const cliIntroduction = `# Commands

This page is made from the program: it is what ` + "`pcn COMMAND --help`" + ` prints.

`

var (
	commandHeading = regexp.MustCompile(`(?m)^(#+) `)
	commandLink    = regexp.MustCompile(`\]\((pcn[a-z_-]*)\.md\)`)
)

// commandLine returns the reference of all commands, as the program itself describes them.
func commandLine(ctx context.Context, root string) (string, error) {
	dir, err := os.MkdirTemp("", "pcn-site-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the commands' pages: %w", err)
	}
	defer os.RemoveAll(dir)
	c := goCommand(ctx, root, "run", "./cmd/pcn", "man", "--markdown", dir)
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("pcn man --markdown: %w\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return "", fmt.Errorf("list the commands' pages: %w", err)
	}
	if len(files) == 0 {
		return "", errors.New("pcn man --markdown wrote no pages")
	}
	slices.Sort(files)
	var page strings.Builder
	page.WriteString(cliIntroduction)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read a command's page: %w", err)
		}
		page.WriteString(commandChapter(string(data)) + "\n")
	}
	return page.String(), nil
}

// commandChapter makes a chapter of a command's page: subheadings are bold lines, and links lead
// within the page.
func commandChapter(text string) string {
	text = commandHeading.ReplaceAllStringFunc(text, func(mark string) string {
		if mark == "## " {
			return mark
		}
		return "**"
	})
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "**") && !strings.HasSuffix(line, "**") {
			lines[i] = line + "**"
		}
	}
	return commandLink.ReplaceAllStringFunc(strings.Join(lines, "\n"), func(link string) string {
		return "](#" + strings.ReplaceAll(commandLink.FindStringSubmatch(link)[1], "_", "-") + ")"
	})
}

const (
	experimentIntroduction = "Made from the JSON schema that `pcn schema` prints. " +
		"[Experiment files](../docs/experiments.md) explains the keys. " + keyNotes
	hostIntroduction = "Made from the JSON schema that `pcn schema host` prints. " +
		"[Hosts](../docs/host.md) explains the keys. " + keyNotes
	keyNotes = "`[]` is an item of a list, `*` is a name of your choice."
)

// schemaPage lists every key of a kind of files.
func schemaPage(title, introduction string, s *jsonschema.Schema) string {
	var p strings.Builder
	fmt.Fprintf(&p, "# %s\n\n%s\n\n", title, introduction)
	p.WriteString("| key | value | required |\n|---|---|---|\n")
	listKeys(&p, "", s)
	return p.String()
}

func listKeys(p *strings.Builder, prefix string, s *jsonschema.Schema) {
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[key]
		required := ""
		if slices.Contains(s.Required, key) {
			required = "yes"
		}
		fmt.Fprintf(p, "| `%s%s` | %s | %s |\n", prefix, key,
			strings.ReplaceAll(valueOf(property), "|", `\|`), required)
		within(p, prefix+key, property)
	}
}

// within lists the keys inside a value: of a mapping, of a list's items, of its alternatives.
func within(p *strings.Builder, name string, s *jsonschema.Schema) {
	if s == nil {
		return
	}
	listKeys(p, name+".", s)
	within(p, name+"[]", s.Items)
	if more, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		within(p, name+".*", more)
	}
	for _, alternative := range s.AnyOf {
		within(p, name, alternative)
	}
}

// valueOf says in words what a value may be.
func valueOf(s *jsonschema.Schema) string {
	switch {
	case s == nil:
		return "any"
	case s.Ref != "":
		return "a " + strings.TrimPrefix(s.Ref, "#/$defs/")
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Items != nil:
		return "a list: " + valueOf(s.Items)
	case len(s.Properties) > 0:
		return "a mapping"
	case len(s.AnyOf) > 0:
		return alternatives(s.AnyOf)
	}
	return plainValue(s)
}

func alternatives(all []*jsonschema.Schema) string {
	var words []string
	for _, s := range all {
		if w := valueOf(s); !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return strings.Join(words, "; or ")
}

// plainValue says the type and the range of a value without parts.
func plainValue(s *jsonschema.Schema) string {
	words := "a mapping of names"
	if s.Type != jsonschema.Object {
		data, err := json.Marshal(s.Type)
		if err != nil || bytes.Equal(data, []byte("null")) {
			data = []byte("any")
		}
		words = strings.NewReplacer(`"`, "", "[", "", "]", "", ",", " or ").Replace(string(data))
	}
	if s.Minimum != nil {
		words += fmt.Sprintf(", at least %g", *s.Minimum)
	}
	if s.Maximum != nil {
		words += fmt.Sprintf(", at most %g", *s.Maximum)
	}
	if s.Pattern != "" && len(s.Pattern) < 40 {
		words += ", like `" + s.Pattern + "`"
	}
	return words
}
