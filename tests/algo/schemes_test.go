// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// oracles has the names of the schemes that oracle was told of.
var oracles = map[string]bool{}

// oracle enters a test that holds the sender of schemes against their paper, in events drawn at random.
func oracle(test func(*testing.T), schemes ...string) func(*testing.T) {
	for _, name := range schemes {
		oracles[name] = true
	}
	return test
}

// everyScheme runs a test for each scheme that comes along, with TCD and without.
func everyScheme(t *testing.T, test func(*testing.T, scheme.Scheme)) {
	t.Helper()
	for _, name := range scheme.Builtin().Names() {
		t.Run(name, func(t *testing.T) {
			s, err := scheme.Builtin().Lookup(name)
			qt.Assert(t, qt.IsNil(err))
			test(t, s)
		})
	}
}

func TestEverySchemeHasAnOracle(t *testing.T) {
	everyScheme(t, func(t *testing.T, s scheme.Scheme) {
		if s.Sender == scheme.SenderLine {
			return // it has no algorithm
		}
		what := qt.Commentf("write a test against an oracle, and enter it: "+
			"var _ = oracle(TestOfYours, %q)", s.Name)
		qt.Assert(t, qt.IsTrue(oracles[s.Name]), what)
	})
	for name := range oracles {
		_, err := scheme.Builtin().Lookup(name)
		qt.Check(t, qt.IsNil(err), qt.Commentf("an oracle of a scheme that there is not"))
	}
}

func TestEverySchemeIsDescribed(t *testing.T) {
	everyScheme(t, func(t *testing.T, s scheme.Scheme) {
		qt.Check(t, qt.Not(qt.Equals(s.Title, "")), qt.Commentf(`SCHEME("title", ...) is missing`))
		qt.Check(t, qt.Not(qt.Equals(s.Source, "")), qt.Commentf(`SCHEME("source", ...) is missing`))
		for _, p := range s.Object.Params {
			qt.Check(t, qt.Not(qt.Equals(p.Doc, "")), qt.Commentf("parameter %s", p.Key))
		}
		for _, stat := range s.Object.Stats {
			qt.Check(t, qt.Not(qt.Equals(stat.Doc, "")), qt.Commentf("statistic %s", stat.Key))
		}
	})
}

// A field of a struct of parameters that says nothing about itself would always be 0.
func TestEveryParameterIsDescribed(t *testing.T) {
	for _, s := range scheme.Builtin().Schemes() {
		t.Run(s.Name, func(t *testing.T) {
			spec, err := s.Object.Spec()
			qt.Assert(t, qt.IsNil(err))
			for _, name := range s.Object.Variables() {
				variable := spec.Variables[name].Type
				fields := silent(variable.Type, variable.Tags)
				qt.Check(t, qt.HasLen(fields, 0), qt.Commentf("variable %s", name))
			}
		})
	}
}

// silent are the fields of a struct, and of the structs in it, that have no description: neither of their
// own nor in the tags of what they are part of.
func silent(t btf.Type, tags []string) []string {
	var list []string
	for _, m := range btf.UnderlyingType(t).(*btf.Struct).Members {
		own := slices.Concat(m.Tags, tagsOf(m.Name, tags))
		if _, ok := btf.UnderlyingType(m.Type).(*btf.Struct); ok {
			list = append(list, silent(m.Type, own)...)
			continue
		}
		isDescribed := slices.ContainsFunc(own, func(tag string) bool {
			what, text, _ := strings.Cut(tag, ":")
			return slices.Contains([]string{"doc", "from", "table"}, what) && text != ""
		})
		if !isDescribed && !strings.HasPrefix(m.Name, "pad") {
			list = append(list, m.Name)
		}
	}
	return list
}

// tagsOf are what tags say about one field.
func tagsOf(field string, tags []string) []string {
	var list []string
	for _, tag := range tags {
		if text, ok := strings.CutPrefix(tag, "of:"+field+":"); ok {
			list = append(list, text)
		}
	}
	return list
}

func TestEverySchemeIsRun(t *testing.T) {
	run := map[string]bool{}
	for _, name := range experiments.Names() {
		e, err := experiments.Load(name)
		qt.Assert(t, qt.IsNil(err))
		for _, s := range e.Schemes {
			run[s] = true
		}
	}
	everyScheme(t, func(t *testing.T, s scheme.Scheme) {
		what := qt.Commentf("no experiment of netns-lab/experiments runs it: write one")
		qt.Assert(t, qt.IsTrue(run[s.Name]), what)
	})
}
