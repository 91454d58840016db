// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// What comes of a change.
const (
	killed   = "killed"
	survived = "SURVIVED"
	broken   = "does not compile"
)

// suite is the tests of a package.
type suite struct {
	dir, work string
	options   options
	tests     []test  // the fastest first
	blocks    []block // all there are
}

// test is one test function, or all that run in a microVM.
type test struct {
	run    string // the test's name, or a pattern of many
	cpu    time.Duration
	blocks []block // that it runs
	all    bool    // it wrote no profile, as it ran in a microVM: it may run anything
}

// block is a part of a file that runs as a whole.
type block struct {
	file                           string // without its folder
	line, column, toLine, toColumn int
}

func (b block) has(s site) bool {
	before := func(line, column, line2, column2 int) bool {
		return line < line2 || line == line2 && column <= column2
	}
	return b.file == filepath.Base(s.file) &&
		before(b.line, b.column, s.at.Line, s.at.Column) &&
		before(s.at.Line, s.at.Column, b.toLine, b.toColumn)
}

// measure runs each test of a package by itself, without a change.
func measure(dir, work string, o options) (*suite, error) {
	s := &suite{dir: dir, work: work, options: o}
	binary := filepath.Join(work, "measured.test")
	if out, err := s.build(binary, "-cover"); err != nil {
		return nil, fmt.Errorf("build the tests of %s: %w\n%s", dir, err, out)
	}
	skip, err := regexp.Compile(o.skip)
	if err != nil {
		return nil, fmt.Errorf("invalid -skip: %w", err)
	}
	list := exec.Command(binary, "-test.list", o.run)
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", dir, withOutput(err))
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if strings.Contains(name, " ") || name == "" || o.skip != "" && skip.MatchString(name) {
			continue // what a TestMain prints, or what is not to run
		}
		t, err := s.measureTest(binary, "^"+name+"$")
		if err == nil && t.all {
			return s, s.measureTogether(binary)
		}
		if err != nil {
			return nil, err
		}
		s.tests = append(s.tests, t)
	}
	if len(s.tests) == 0 {
		return nil, fmt.Errorf("%s has no test that matches %s", dir, o.run)
	}
	slices.SortStableFunc(s.tests, func(a, b test) int { return cmp.Compare(a.cpu, b.cpu) })
	return s, nil
}

// measureTogether runs all tests of a package whose tests run in a microVM. They are built without
// -cover: programs that they start would write a warning.
func (s *suite) measureTogether(binary string) error {
	if out, err := s.build(binary); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", s.dir, err, out)
	}
	all, err := s.measureTest(binary, s.options.run)
	s.tests = []test{all}
	return err
}

func (s *suite) measureTest(binary, run string) (test, error) {
	profile := filepath.Join(s.work, "profile")
	_ = os.Remove(profile)
	t := test{run: run}
	cpu, out, err := s.runTest(context.Background(), binary, run, "-test.coverprofile="+profile)
	if err != nil {
		return t, fmt.Errorf("%s of %s fails without a change: %w\n%s", run, s.dir, err, out)
	}
	t.cpu = cpu
	text, err := os.ReadFile(profile)
	if errors.Is(err, os.ErrNotExist) {
		t.all = true
		return t, nil
	}
	if err != nil {
		return t, fmt.Errorf("read a profile: %w", err)
	}
	s.blocks, t.blocks = blocksOf(string(text))
	return t, nil
}

// blocksOf returns the blocks of a profile, and those that ran: it has lines of
// "file:line.column,line.column statements n".
func blocksOf(profile string) (all, ran []block) {
	for line := range strings.Lines(profile) {
		file, place, ok := strings.Cut(strings.TrimSpace(line), ".go:")
		if !ok {
			continue
		}
		b := block{file: filepath.Base(file) + ".go"}
		var statements, count int
		n, err := fmt.Sscanf(place, "%d.%d,%d.%d %d %d",
			&b.line, &b.column, &b.toLine, &b.toColumn, &statements, &count)
		if err != nil || n != 6 {
			continue
		}
		all = append(all, b)
		if count > 0 {
			ran = append(ran, b)
		}
	}
	return all, ran
}

// build compiles the package's tests.
func (s *suite) build(to string, flags ...string) ([]byte, error) {
	args := slices.Concat([]string{"test", "-c", "-vet=off", "-o", to}, flags, []string{"."})
	c := exec.Command("go", args...)
	c.Dir = s.dir
	return c.CombinedOutput()
}

// runTest runs tests until one fails, and returns the CPU time that they took.
func (s *suite) runTest(
	ctx context.Context, binary, run string, flags ...string,
) (time.Duration, []byte, error) {
	args := append([]string{"-test.run=" + run, "-test.skip=" + s.options.skip, "-test.failfast",
		"-test.paniconexit0"}, flags...)
	if s.options.short {
		args = append(args, "-test.short")
	}
	c := exec.CommandContext(ctx, binary, args...)
	c.Dir = s.dir
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		return 0, out, err
	}
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime(), out, err
}

// reach returns the tests that run a line, the fastest first. What is in no block, such as the
// value of a variable of the package, all of them reach.
func (s *suite) reach(at site) []test {
	has := func(b block) bool { return b.has(at) }
	if !slices.ContainsFunc(s.blocks, has) {
		return s.tests
	}
	var tests []test
	for _, t := range s.tests {
		if t.all || slices.ContainsFunc(t.blocks, has) {
			tests = append(tests, t)
		}
	}
	return tests
}

// try makes a change, and runs the tests until one fails. It says by what the change was killed, or
// how many tests it survived.
func (s *suite) try(at site) (verdict, by string, err error) {
	changed, overlay := filepath.Join(s.work, "changed.go"), filepath.Join(s.work, "overlay.json")
	if err := at.change(changed); err != nil {
		return "", "", err
	}
	replace := map[string]map[string]string{"Replace": {at.file: changed}}
	text, err := json.Marshal(replace)
	if err != nil {
		return "", "", fmt.Errorf("write an overlay: %w", err)
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", "", fmt.Errorf("write an overlay: %w", err)
	}
	binary := filepath.Join(s.work, "changed.test")
	if out, err := s.build(binary, "-overlay", overlay); err != nil {
		first, _, _ := strings.Cut(string(out), "\n")
		return broken, first, nil
	}
	var used time.Duration
	tests := s.reach(at)
	for i, t := range tests {
		if used += t.cpu; i > 0 && used > s.options.budget {
			return survived, fmt.Sprintf("the %d fastest of %d tests", i, len(tests)), nil
		}
		if failed := s.fails(binary, t); failed != "" {
			return killed, failed, nil
		}
	}
	return survived, fmt.Sprintf("%d tests", len(tests)), nil
}

// fails returns the name of a test that fails, or does not end: it may take twenty times as long as
// without the change, as other work may run beside it.
func (s *suite) fails(binary string, t test) string {
	ctx, stop := context.WithTimeout(context.Background(), 20*t.cpu+time.Minute)
	defer stop()
	_, out, err := s.runTest(ctx, binary, t.run)
	if err == nil {
		return ""
	}
	if _, failed, ok := strings.Cut(string(out), "--- FAIL: "); ok {
		name, _, _ := strings.Cut(failed, " ")
		return name
	}
	return t.run + ": " + err.Error()
}

// withOutput adds what a command wrote to its error.
func withOutput(err error) error {
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%w: %s", err, e.Stderr)
	}
	return err
}
