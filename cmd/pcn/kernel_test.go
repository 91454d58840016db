// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

// runKernel runs pcn kernel with arguments, and returns what it prints.
func runKernel(t *testing.T, args ...string) (string, error) {
	t.Helper()
	c := newKernel()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs(args)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

// What can't be built is refused before minutes of work, and leaves nothing.
func TestKernelErrors(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	empty := t.TempDir()
	for _, test := range []struct {
		args  []string
		fails string
	}{
		{[]string{"build", empty}, `--as: name the kernel, such as --as mine`},
		{[]string{"build", empty, "--as", "../x"}, `invalid kernel name "../x": want letters, .*`},
		{[]string{"build", empty, "--as", "x"}, `read Linux's version: .*Makefile.*`},
		{[]string{"build", empty + "/none", "--as", "x"}, `no Linux at .*/none: want .*`},
		{[]string{"remove", "x"}, `no kernel "x": pcn kernel list names those that are there`},
		{[]string{"remove", "../x"}, `invalid kernel name "../x": .*`},
	} {
		_, err := runKernel(t, test.args...)
		qt.Check(t, qt.ErrorMatches(err, test.fails), qt.Commentf("%q", test.args))
	}
	left, err := filepath.Glob(filepath.Join(cache, "pcn", "kernel", "*", "*"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(left, 0))
	text, err := runKernel(t, "list")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(text, "NAME  LINUX  SHA-256  SOURCE\n"))
}

// A kernel that was built is listed with what it is of.
func TestKernelList(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	dir := filepath.Join(cache, "pcn", "kernel", "own", "mine")
	qt.Assert(t, qt.IsNil(os.MkdirAll(dir, 0o755)))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, "linux"), nil, 0o755)))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, "kernel.yaml"),
		[]byte("name: mine\nversion: 7.3.4\nsource: /src\nsha256: \"0123456789abcdef\"\n"), 0o644)))
	text, err := runKernel(t, "list")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Matches(text, `(?s).*\nmine +7\.3\.4 +0123456789ab +/src\n`))
}
