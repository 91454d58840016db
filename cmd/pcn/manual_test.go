// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

// Every command has a manual page, and the same one each time.
func TestMan(t *testing.T) {
	write := func() map[string]string {
		dir := t.TempDir()
		root := newRoot()
		root.SetArgs([]string{"man", dir})
		qt.Assert(t, qt.IsNil(root.Execute()))
		pages := map[string]string{}
		files, err := filepath.Glob(filepath.Join(dir, "*.1"))
		qt.Assert(t, qt.IsNil(err))
		for _, f := range files {
			text, err := os.ReadFile(f)
			qt.Assert(t, qt.IsNil(err))
			pages[filepath.Base(f)] = string(text)
		}
		return pages
	}
	pages := write()
	for _, name := range []string{"pcn.1", "pcn-run.1", "pcn-host-up.1", "pcn-top.1"} {
		qt.Check(t, qt.StringContains(pages[name], "PCN for Linux"), qt.Commentf("%s", name))
	}
	qt.Check(t, qt.DeepEquals(write(), pages))
}

func TestDocs(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"", "host\n"}, {"host", "# PCN on a production host\n"},
	} {
		var out bytes.Buffer
		root := newRoot()
		root.SetOut(&out)
		args := []string{"docs"}
		if c.name != "" {
			args = append(args, c.name)
		}
		root.SetArgs(args)
		qt.Assert(t, qt.IsNil(root.Execute()))
		qt.Check(t, qt.StringContains(out.String(), c.want))
	}
	root := newRoot()
	root.SetArgs([]string{"docs", "nothing"})
	qt.Check(t, qt.ErrorMatches(root.Execute(), `no document "nothing": there are .*`))
}
