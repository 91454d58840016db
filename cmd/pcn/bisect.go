// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/bisect"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/uml"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

func newBisect() *cobra.Command {
	var b bisection
	b.build, b.newEngine = b.buildKernel, func(kernel string) (launch.Engine, error) {
		return launch.NewMicroVMs(kernel, false)
	}
	c := &cobra.Command{
		Use:   "bisect TREE --good COMMIT --bad COMMIT --expect EXPERIMENT",
		Short: "Find the commit of Linux with which an experiment no longer meets its bounds",
		Long: `Find the first commit of a git tree of Linux with which an experiment no longer meets
its expectations, between a commit that is good and a later one that is bad. It follows first
parents. The tree is only read.

Each commit is built as pcn kernel build does, and runs the experiment with seed 1. If its results
are the same bytes as those of the good or the bad end, it is as good or bad as that. Else it runs
6, 12, 24 and 48 seeds, until the 95% interval of each expectation's median is within its bounds,
which is good, or that of one is outside, which is bad. What remains, and what can't be built or
run, can't be told, and is stepped over: then the answer may be several commits.

With --bytes no bounds are needed: good is what gives the same bytes as the good end, with seed 1.
That finds the first commit that changes anything of what the experiment sees.`,
		Example: `  pcn bisect ~/linux --good v7.2 --bad v7.3 --expect tcp.yaml
  pcn bisect ~/linux --good v7.2 --bad v7.3 --expect tcp.yaml --bytes`,
		Args: oneOf("a git tree of Linux, as a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b.tree, b.w, b.progress = args[0], cmd.OutOrStdout(), cmd.ErrOrStderr()
			return b.run(cmd.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&b.good, "good", "", "commit that meets the expectations")
	f.StringVar(&b.bad, "bad", "", "later commit that does not")
	f.StringVar(&b.expect, "expect", "", "experiment with the expectations: a name, or a path")
	f.BoolVar(&b.bytes, "bytes", false,
		"good is what gives the bytes of the good end, whatever the bounds")
	f.IntVar(&b.mostSeeds, "seeds", 48, "seeds of a commit, at most")
	f.StringVar(&b.out, "out", filepath.Join("runs", "bisect"),
		"folder for the results, new or empty")
	for _, name := range []string{"good", "bad", "expect"} {
		_ = c.MarkFlagRequired(name) // fails only for flags that do not exist
	}
	return c
}

// bisection looks for a commit.
type bisection struct {
	tree, good, bad, expect, out string
	mostSeeds                    int
	bytes                        bool
	w, progress                  io.Writer

	build     func(ctx context.Context, source, commit string) error
	newEngine func(kernel string) (launch.Engine, error)

	experiment *experiment.Experiment
	commits    []string // good, and those after it up to bad
	cache      string
	kernel     string // name of the kernel that is built of each
}

func (b *bisection) run(ctx context.Context) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	defer uml.RemoveOwn(b.cache, b.kernel) // a build that starts again removes it, too
	work, err := os.MkdirTemp("", "pcn-bisect-")
	if err != nil {
		return fmt.Errorf("make a folder for the sources: %w", err)
	}
	defer os.RemoveAll(work)
	test := func(commit int) (bisect.Verdict, error) { return b.test(ctx, work, commit) }
	if err := b.checkEnd(0, bisect.Good, test); err != nil {
		return err
	}
	if err := b.checkEnd(len(b.commits)-1, bisect.Bad, test); err != nil {
		return err
	}
	found, err := bisect.Search(len(b.commits), test)
	if err != nil {
		return err
	}
	return b.print(ctx, found)
}

// checkEnd fails if a commit is not what it is said to be.
func (b *bisection) checkEnd(
	commit int, want bisect.Verdict, test func(int) (bisect.Verdict, error),
) error {
	verdict, err := test(commit)
	if err != nil || verdict == want {
		return err
	}
	return fmt.Errorf("%s is %s, not %s: choose other commits, or bounds that tell them apart; "+
		"its results are in %s", b.commits[commit], verdict, want, b.resultsOf(commit))
}

// prepare checks all that is asked for before minutes of work.
func (b *bisection) prepare(ctx context.Context) error {
	var err error
	b.experiment, err = experiments.LoadWith(b.expect, experiment.Options{Compile: compileOwn})
	if err != nil {
		return err
	}
	if len(b.experiment.Expect) == 0 && !b.bytes {
		return fmt.Errorf("%s expects nothing: give it bounds under expect, or look for other "+
			"bytes with --bytes", b.expect)
	}
	if err := b.experiment.CheckEngine(experiment.EngineKernel); err != nil {
		return err
	}
	if b.mostSeeds < bisect.LeastSeeds {
		return usageError{fmt.Errorf("--seeds %d: want at least %d, which a verdict needs",
			b.mostSeeds, bisect.LeastSeeds)}
	}
	if err := uml.Missing(); err != nil {
		return err
	}
	if err := b.list(ctx); err != nil {
		return err
	}
	if entries, err := os.ReadDir(b.out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or name another folder with --out", b.out)
	}
	out, err := filepath.Abs(b.out)
	if err != nil {
		return err
	}
	b.kernel = fmt.Sprintf("bisect-%x", sha256.Sum256([]byte(out)))[:19]
	b.cache, err = vm.KernelCache()
	return err
}

// list lists the commits.
func (b *bisection) list(ctx context.Context) error {
	good, err := uml.Git(ctx, b.tree, nil, "rev-parse", "--verify", b.good+"^{commit}")
	if err != nil {
		return err
	}
	after, err := uml.Git(ctx, b.tree, nil, "rev-list", "--reverse", "--first-parent",
		b.good+".."+b.bad)
	if err != nil {
		return err
	}
	b.commits = append([]string{strings.TrimSpace(good)}, strings.Fields(after)...)
	if len(b.commits) < 2 {
		return fmt.Errorf("no commit of %s is after %s and leads to %s", b.tree, b.good, b.bad)
	}
	return nil
}

// test builds a commit and runs the experiment on it.
func (b *bisection) test(ctx context.Context, work string, commit int) (bisect.Verdict, error) {
	verdict, why, err := b.try(ctx, work, commit)
	if ctx.Err() != nil {
		return verdict, ctx.Err()
	}
	if err != nil {
		verdict, why = bisect.CantTell, err.Error()
	}
	fmt.Fprintf(b.w, "%.12s %s: %s\n", b.commits[commit], verdict, why)
	return verdict, nil
}

// try returns what a commit is, and why. The error says why it can't be told.
func (b *bisection) try(
	ctx context.Context, work string, commit int,
) (v bisect.Verdict, why string, err error) {
	source, err := b.checkOut(ctx, work, commit)
	if err != nil {
		return v, "", err
	}
	if err := b.build(ctx, source, b.commits[commit]); err != nil {
		return v, "", err
	}
	engine, err := b.newEngine(b.kernel)
	if err != nil {
		return v, "", err
	}
	var all result.SeedsSummary
	for from := 1; from <= b.mostSeeds; {
		to := min(b.mostSeeds, lastSeed(from))
		out := filepath.Join(b.resultsOf(commit), fmt.Sprintf("seeds-%d-%d", from, to))
		group, err := launch.RunSeeds(ctx, launch.Options{
			Experiment: b.experiment, Engine: engine, Out: out,
		}, seedsFrom(from, to))
		if err != nil {
			return v, "", err
		}
		if from == 1 {
			if end, same := b.sameAsAnEnd(commit, out); same {
				return end, fmt.Sprintf("the same bytes as the %s end", end), nil
			}
			if b.bytes {
				v, why := byBytes(commit)
				return v, why, nil
			}
		}
		all.Seeds = append(all.Seeds, group.Seeds[0].Seeds...)
		outcomes := all.Outcomes()
		if v = bisect.Judge(outcomes); v != bisect.CantTell {
			return v, describe(outcomes, to), nil
		}
		from = to + 1
	}
	return v, describe(all.Outcomes(), b.mostSeeds), nil
}

// byBytes says what a commit is whose bytes no end that ran before has.
func byBytes(commit int) (v bisect.Verdict, why string) {
	if commit == 0 {
		return bisect.Good, "its bytes are what is good"
	}
	return bisect.Bad, "other bytes than the good end's"
}

// lastSeed returns the last of the seeds that run at once from one on: 1, to compare with the ends,
// then as many as a verdict needs, then twice as many as there are.
func lastSeed(from int) int {
	switch from {
	case 1:
		return 1
	case 2:
		return bisect.LeastSeeds
	}
	return 2 * (from - 1)
}

// seedsFrom returns the seeds of a range.
func seedsFrom(from, to int) (seeds experiment.Seeds) {
	for s := from; s <= to; s++ {
		seeds = append(seeds, uint64(s))
	}
	return seeds
}

// describe says what came out.
func describe(outcomes []result.SeedsOutcome, seeds int) string {
	var parts []string
	for _, o := range outcomes {
		parts = append(parts, fmt.Sprintf("%s %s (%s)", o.Expect.What, o.Value(), o.Bound()))
	}
	return fmt.Sprintf("%s, %d seeds", strings.Join(parts, ", "), seeds)
}

func (b *bisection) resultsOf(commit int) string {
	return filepath.Join(b.out, b.commits[commit][:12])
}

// sameAsAnEnd reports whether a commit's results with seed 1 are those of the good or bad end.
func (b *bisection) sameAsAnEnd(commit int, out string) (bisect.Verdict, bool) {
	for end, verdict := range map[int]bisect.Verdict{
		0: bisect.Good, len(b.commits) - 1: bisect.Bad,
	} {
		of := filepath.Join(b.resultsOf(end), "seeds-1-1")
		if end != commit && sameTables(out, of) {
			return verdict, true
		}
	}
	return bisect.CantTell, false
}

// sameTables reports whether two folders have the same CSV files, and some.
func sameTables(a, b string) bool {
	tablesA, err1 := tablesOf(a)
	tablesB, err2 := tablesOf(b)
	if err1 != nil || err2 != nil || len(tablesA) == 0 || !slices.Equal(tablesA, tablesB) {
		return false
	}
	for _, name := range tablesA {
		x, err1 := os.ReadFile(filepath.Join(a, name))
		y, err2 := os.ReadFile(filepath.Join(b, name))
		if err1 != nil || err2 != nil || !bytes.Equal(x, y) {
			return false
		}
	}
	return true
}

func tablesOf(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".csv" {
			names = append(names, strings.TrimPrefix(path, dir))
		}
		return err
	})
	return names, err
}

// checkOut brings the sources in the folder work to a commit, by an index of their own: the tree's
// is not touched.
func (b *bisection) checkOut(ctx context.Context, work string, commit int) (string, error) {
	source := filepath.Join(work, "source")
	if err := os.MkdirAll(source, 0o755); err != nil {
		return "", fmt.Errorf("make a folder for the sources: %w", err)
	}
	_, err := uml.Git(ctx, b.tree, []string{"GIT_INDEX_FILE=" + filepath.Join(work, "index")},
		"--work-tree="+source, "read-tree", "--reset", "-u", b.commits[commit])
	return source, err
}

// buildKernel builds a commit's kernel.
func (b *bisection) buildKernel(ctx context.Context, source, commit string) error {
	cache, unlock, err := lockCache(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	bar := newProgress(b.progress, "building", 1)
	defer bar.finish()
	_, err = uml.BuildOwn(ctx, cache, source,
		uml.Own{Name: b.kernel, Source: b.tree, Commit: commit},
		func(done float64) { bar.set(commit[:12], done) })
	return err
}

// print prints the commit, or those that it may be.
func (b *bisection) print(ctx context.Context, found bisect.Found) error {
	if found.First == found.Last {
		fmt.Fprint(b.w, "first bad commit: ")
	} else {
		fmt.Fprintln(b.w, "the first bad commit is one of these:")
	}
	for _, commit := range b.commits[found.First : found.Last+1] {
		line, err := uml.Git(ctx, b.tree, nil, "show", "--no-patch", "--format=%h %s", commit)
		if err != nil {
			return err
		}
		fmt.Fprint(b.w, line)
	}
	if found.First != found.Last {
		return errors.New("the others can't be told: see above why, or give more --seeds")
	}
	return nil
}
