// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// goPackage returns the declarations of a package's files, tests left out.
func goPackage(dir string) ([]ast.Decl, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list the Go files of %s: %w", dir, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no Go files", dir)
	}
	var all []ast.Decl
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("read comments: %w", err)
		}
		all = append(all, file.Decls...)
	}
	return all, nil
}

// metricsPage has every metric with its definition, which is its comment in the sources.
func metricsPage(root string) (string, error) {
	decls, err := goPackage(filepath.Join(root, "internal/experiment"))
	if err != nil {
		return "", err
	}
	comments, names := metricComments(decls)
	var p strings.Builder
	p.WriteString(`# Metrics

What ` + "`expect`, `compare` and `metrics`" + ` of an [experiment file](../docs/experiments.md)
measure. This page is made from the sources. Times are in the paper's time, and t = 0 is the start
of the bursts. "The window" is ` + "`from` to `to`" + `: by default from t = 0 to the run's end.
A link is named in the direction in which PAUSE frames travel: S1->S0 is S1 telling S0 to stop.

| metric | unit | takes | definition |
|---|---|---|---|
`)
	identifier := regexp.MustCompile(`\[?\b[A-Z]\w+(\.\w+)?\]?`)
	for _, m := range experiment.Metrics() {
		text := identifier.ReplaceAllStringFunc(comments[string(m)], func(word string) string {
			bare := strings.Trim(word, "[]")
			if name, ok := names[bare]; ok {
				return "`" + name + "`"
			}
			if bare == word {
				return word
			}
			key := bare[strings.LastIndexByte(bare, '.')+1:] // of Type.Field or Type
			return "`" + strings.ToLower(key) + "`"
		})
		fmt.Fprintf(&p, "| `%s` | %s | %s | %s |\n", m, cmp.Or(string(m.Unit()), "number"),
			strings.Join(codes(m.Takes()), ", "), strings.ReplaceAll(text, "|", `\|`))
	}
	return p.String(), nil
}

func codes(texts []string) []string {
	var all []string
	for _, t := range texts {
		all = append(all, "`"+t+"`")
	}
	return all
}

// metricComments returns the comments of the constants of type Metric, by their values; and the
// values by their names in Go. A constant without a comment belongs to the one before.
func metricComments(decls []ast.Decl) (comments, names map[string]string) {
	comments, names = map[string]string{}, map[string]string{}
	eachConstant(decls, "Metric", func(spec *ast.ValueSpec, value, above string) {
		names[spec.Names[0].Name] = value
		comments[value] = above
	})
	return comments, names
}

// eachConstant calls f for each string constant of a type, with its comment or that of the nearest
// constant above that has one.
func eachConstant(decls []ast.Decl, of string, f func(spec *ast.ValueSpec, value, comment string)) {
	for _, d := range decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		above := ""
		for _, s := range group.Specs {
			spec := s.(*ast.ValueSpec)
			if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != of {
				continue
			}
			if text := oneLine(spec.Doc); text != "" {
				above = text
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				continue
			}
			value, err := strconv.Unquote(literal.Value)
			if err == nil {
				f(spec, value, above)
			}
		}
	}
}

func oneLine(comments ...*ast.CommentGroup) string {
	var all []string
	for _, c := range comments {
		all = append(all, strings.Fields(c.Text())...)
	}
	return strings.Join(all, " ")
}

// resultFiles are the files of a run and the Go types of their rows.
var resultFiles = []struct{ file, goType, about string }{
	{"manifest.json", "Manifest", "What ran, on what, and whether to believe it."},
	{"flows.csv", "Flow", "One row for each flow. Statistics of the scheme follow: " +
		"[schemes](../docs/schemes.md)."},
	{"completion.csv", "Completion", "One row for each flow with a size, in runs that have any."},
	{"ports.csv", "Port", "One row for each egress port."},
	{"series.csv", "seriesRow", "One row for each port, flow and sender in each bin of time. " +
		"Columns that a kind lacks are empty."},
	{"pfc.csv", "PFCEvent", "One row for each PAUSE or RESUME."},
	{"pause_repeats.csv", "PauseRepeats", "PAUSE frames as simulators count them."},
	{"watchdog.csv", "WatchdogEvent", "Storms that PFC's watchdog found."},
	{"qdiscs.csv", "QdiscSample", "One row for each port with a qdisc of Linux in each bin of " +
		"time: [queues of Linux](../docs/programs.md#queues-of-linux)."},
	{"states.csv", "State", "What detectors said of each port in each bin, with " +
		"`switch.detectors`."},
}

// resultsPage describes the columns of every result file.
func resultsPage(root string) (string, error) {
	decls, err := goPackage(filepath.Join(root, "internal/result"))
	if err != nil {
		return "", err
	}
	structs := structsOf(decls)
	var p strings.Builder
	p.WriteString("# Result files\n\nWhat `pcn run` leaves in the folder of a scheme. " +
		"This page is made from the sources.\n`experiment.yaml` and `trace.csv` are inputs: " +
		"they repeat the run. `pfc.pcapng` is `pfc.csv` as\nframes for Wireshark. Times count " +
		"from t = 0, in the paper's time.\n")
	for _, f := range resultFiles {
		s, ok := structs[f.goType]
		if !ok {
			return "", fmt.Errorf("internal/result has no type %s for %s", f.goType, f.file)
		}
		fmt.Fprintf(&p, "\n## %s\n\n%s\n\n| column | unit | meaning |\n|---|---|---|\n",
			f.file, f.about)
		for _, field := range s.Fields.List {
			writeColumn(&p, field, structs)
		}
	}
	return p.String(), nil
}

func structsOf(decls []ast.Decl) map[string]*ast.StructType {
	found := map[string]*ast.StructType{}
	for _, d := range decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, spec := range group.Specs {
			t := spec.(*ast.TypeSpec)
			if s, ok := t.Type.(*ast.StructType); ok {
				found[t.Name.Name] = s
			}
		}
	}
	return found
}

// writeColumn writes a row for a field with a csv or json tag.
func writeColumn(p *strings.Builder, field *ast.Field, structs map[string]*ast.StructType) {
	if field.Tag == nil || len(field.Names) == 0 {
		return
	}
	column := columnOf(field)
	if column == "" {
		return
	}
	words := oneLine(field.Doc, field.Comment)
	if words == "" { // a row of the series is described where samples are
		words = sampleComment(structs["Sample"], field.Names[0].Name)
	}
	words = strings.NewReplacer("|", `\|`, "[", "", "]", "").Replace(words)
	if about, ok := strings.CutPrefix(words, field.Names[0].Name+" "); ok { // as Go wants it
		words = "`" + column + "` " + about
	}
	fmt.Fprintf(p, "| `%s` | %s | %s |\n", column, unitOf(column, field.Type), words)
}

// columnOf returns the name in the csv or json tag of a field; "" if it has none.
func columnOf(field *ast.Field) string {
	tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
	column, _, _ := strings.Cut(cmp.Or(tag.Get("csv"), tag.Get("json")), ",")
	return strings.TrimPrefix(column, "-")
}

func sampleComment(sample *ast.StructType, name string) string {
	if sample == nil {
		return ""
	}
	for _, f := range sample.Fields.List {
		if len(f.Names) > 0 && f.Names[0].Name == name {
			return oneLine(f.Doc, f.Comment)
		}
	}
	return ""
}

// unitOf reads the unit from the end of a column's name, or says what kind of value it is.
func unitOf(column string, t ast.Expr) string {
	for _, u := range []struct{ suffix, unit string }{
		{"_ns", "ns"}, {"_bps", "bit/s"}, {"_bytes", "bytes"}, {"_packets", "packets"},
		{"_s", "s"}, {"packets", "packets"},
	} {
		if strings.HasSuffix(column, u.suffix) {
			return u.unit
		}
	}
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	name, _ := t.(*ast.Ident)
	switch {
	case name == nil:
		return "structure"
	case strings.HasPrefix(name.Name, "uint") || strings.HasPrefix(name.Name, "int"):
		return "number"
	case name.Name == "float64":
		return "ratio"
	case name.Name == "bool":
		return "true or false"
	default:
		return "text"
	}
}
