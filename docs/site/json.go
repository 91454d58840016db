// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
)

// printedJSON are the Go types of what commands print with --json.
var printedJSON = []struct {
	command, dir, goType string
	list                 bool // of such objects
}{
	{"pcn run --json, and expectations.json in the folder of results",
		"internal/jsonout", "Outcomes", false},
	{"pcn compare --json", "internal/jsonout", "Compared", true},
	{"pcn diff --json, pcn rerun --json", "internal/jsonout", "Diff", true},
	{"pcn topo --json", "internal/jsonout", "Topology", false},
	{"pcn doctor --json", "internal/jsonout", "Check", true},
	{"pcn list --json", "cmd/pcn", "listed", true},
	{"pcn sweep --json", "cmd/pcn", "sweptJSON", false},
	{"pcn reproduce --json", "cmd/pcn", "claimJSON", true},
	{"pcn reproduce --list --json", "cmd/pcn", "figureJSON", true},
	{"pcn scheme list --json", "cmd/pcn", "schemeJSON", true},
	{"pcn scheme show --json", "cmd/pcn", "schemeJSON", false},
	{"pcn validate --json", "cmd/pcn", "mistake", true},
	{"pcn flows --json, beside control, the flow's control", "loader", "Flow", true},
	{"pcn trace --json, one object a line", "host", "TraceEvent", false},
	{"pcn host status --json", "host", "Status", false},
	{"pcn host doctor --json, pcn host selftest --json",
		"host/doctor", "Check", true},
}

const jsonIntroduction = `# JSON that commands print

Keys and their meaning stay; new keys may come. Lists are never null. Exit codes are
the same with and without ` + "`--json`" + `:
[exit codes](../docs/ci.md). This page is made from the sources. The JSON schema of what a command
prints: ` + "`pcn schema --output run`" + `.
`

// jsonPage describes the keys of what commands print with --json. It fails if a key has no text.
func jsonPage(root string) (string, error) {
	var p strings.Builder
	var errs []error
	p.WriteString(jsonIntroduction)
	for _, c := range printedJSON {
		decls, err := goPackage(filepath.Join(root, c.dir))
		if err != nil {
			return "", err
		}
		structs := structsOf(decls)
		if structs[c.goType] == nil {
			return "", fmt.Errorf("%s has no type %s for %s", c.dir, c.goType, c.command)
		}
		what := "An object."
		if c.list {
			what = "A list of such objects."
		}
		fmt.Fprintf(&p, "\n## %s\n\n%s\n\n| key | unit | meaning |\n|---|---|---|\n",
			c.command, what)
		errs = append(errs, writeKeys(&p, "", c.goType, structs, nil))
	}
	if err := errors.Join(errs...); err != nil {
		return "", fmt.Errorf("%w\n(hint: a comment at the field is the key's text)", err)
	}
	return p.String(), nil
}

// writeKeys writes a row for each key of a type, and for those of the types inside. It fails if a
// field has no text.
func writeKeys(
	p *strings.Builder, prefix, of string, structs map[string]*ast.StructType, above []string,
) error {
	if slices.Contains(above, of) {
		return nil
	}
	var errs []error
	for _, field := range structs[of].Fields.List {
		if field.Tag == nil {
			continue
		}
		name, isList := elementOf(field.Type)
		key := columnOf(field)
		if key == "" {
			continue
		}
		key = prefix + key
		if isList {
			key += "[]"
		}
		unit := unitOf(key, field.Type)
		switch {
		case structs[name] != nil:
			unit = "object"
		case isList:
			unit = "text"
		case name == "":
			unit = "object of numbers"
		case name == "Number":
			unit = "number"
		}
		words := strings.NewReplacer("|", `\|`, "[", "", "]", "").
			Replace(oneLine(field.Doc, field.Comment))
		fmt.Fprintf(p, "| `%s` | %s | %s |\n", key, unit, words)
		if words == "" {
			errs = append(errs,
				fmt.Errorf("%s.%s: the key %s has no text", of, field.Names[0], key))
		}
		if structs[name] != nil {
			errs = append(errs,
				writeKeys(p, key+".", name, structs, append(slices.Clone(above), of)))
		}
	}
	return errors.Join(errs...)
}

// elementOf returns the name of a field's type, or of the items of a list; "" for a map.
func elementOf(t ast.Expr) (name string, isList bool) {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name, false
	case *ast.StarExpr:
		return elementOf(t.X)
	case *ast.ArrayType:
		name, _ = elementOf(t.Elt)
		return name, true
	default:
		return "", false
	}
}
