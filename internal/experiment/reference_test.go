// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/network"
)

func readReference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/experiments.md")
	qt.Assert(t, qt.IsNil(err))
	return string(text)
}

// keysWithin returns the keys of a type and of what is in it.
func keysWithin(t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return keysWithin(t.Elem())
	case reflect.Struct:
		keys := config.KeysOf(t)
		for _, f := range config.KeyedFields(t) {
			keys = append(keys, keysWithin(t.FieldByIndex(f.Index).Type)...)
		}
		return keys
	default:
		return nil
	}
}

// The reference names every key and every name that a file may use, in code.
func TestReferenceIsComplete(t *testing.T) {
	schemes, err := os.ReadFile("../../docs/schemes.md") // made from the code
	qt.Assert(t, qt.IsNil(err))
	code := strings.Join(regexp.MustCompile("(?s)```.*?```|`[^`\n]*`").FindAllString(
		readReference(t)+string(schemes), -1), "\n")
	catalogue := scheme.Builtin()
	names := slices.Concat(
		keysWithin(reflect.TypeFor[Experiment]()), toStrings(Metrics()), toStrings(sinces()),
		toStrings(overs()), toStrings(figureNames()),
		catalogue.Names(), catalogue.SectionNames(), scheme.KernelControls(), network.KindNames(),
	)
	qt.Assert(t, qt.SliceContains(names, "xon_offset")) // they are found
	for _, name := range names {
		found := regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(name) +
			`($|[^\w-])`).MatchString(code)
		qt.Check(t, qt.IsTrue(found), qt.Commentf("%s", name))
	}
}

// The examples of the reference are a file, with what they are about.
func TestExamplesOfTheReference(t *testing.T) {
	file := `name: example
topology: {kind: fig1}
schemes: [pfc, pcn, dcqcn]
duration: 15ms
flows: [{name: F0, from: H0, to: R0}, {name: F1, from: H1, to: R1}]
bursts: [{name: burst, from: H2..H15, to: R1, size: 64KB}]
`
	for _, block := range regexp.MustCompile("(?s)```yaml[^\n]*\n(.*?)```").FindAllStringSubmatch(readReference(t), -1) {
		file += block[1]
	}
	e, err := Parse("example.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(e.Cases, 2))
	qt.Assert(t, qt.HasLen(e.Expect, 1))
	qt.Assert(t, qt.HasLen(e.Compare, 1))
}
