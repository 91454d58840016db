// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/debian"
	"github.com/pcn-linux/pcn/internal/vm/uml"
)

func newKernel() *cobra.Command {
	c := &cobra.Command{
		Use:   "kernel",
		Short: "Build, list and remove kernels of your own for experiments on Linux",
		Long: `Build kernels of your own for experiments on Linux, list them, and remove them.

pcn run --kernel NAME runs an experiment on one. Two builds of the same source give the same bytes,
whatever the compiler and its options. So a difference of results is one of what Linux does.`,
	}
	c.AddCommand(newKernelBuild(), newKernelList(), newKernelRemove())
	return c
}

func newKernelBuild() *cobra.Command {
	var name, mirror string
	c := &cobra.Command{
		Use:   "build SOURCE",
		Short: "Build a kernel for experiments, from a source of Linux",
		Long: `Build a kernel for experiments, User Mode Linux, from a source of Linux:

  - a folder with Linux's source, which is only read. In git its files are those that git knows or
    would add, with changes that are not committed.
  - an archive, such as linux-7.3.4.tar.xz, or a package linux-source-*.deb of Debian;
  - a version that Debian has now, such as 7.2, or 7.2.12, which is fetched.

The sources of Linux 7.2 and 7.3 can be built. The first build takes minutes. What it compiled is
kept in the cache, about 1 GB, so that a build of the same name compiles what has changed since.
pcn kernel remove gives the place back.`,
		Example: `  pcn kernel build ~/linux --as mine
  pcn kernel build 7.2.12
  pcn run hol --kernel mine`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b := kernelBuild{cmd.OutOrStdout(), cmd.ErrOrStderr(), debian.Fetcher{}}
			if mirror != "" {
				b.fetcher.Mirrors = []string{strings.TrimRight(mirror, "/")}
			}
			if name == "" {
				if !debian.IsVersion(args[0]) {
					return usageError{errors.New("--as: name the kernel, such as --as mine")}
				}
				name = args[0]
			}
			return b.build(cmd.Context(), args[0], name)
		},
	}
	c.Flags().StringVar(&name, "as", "",
		"name of the kernel, for --kernel (default: the version, if that is the source)")
	c.Flags().StringVar(&mirror, "mirror", "",
		"URL of Debian's archive (default: "+debian.Mirror+")")
	return c
}

type kernelBuild struct {
	out, progress io.Writer
	fetcher       debian.Fetcher
}

// build builds a kernel of a source under a name.
func (b kernelBuild) build(ctx context.Context, source, name string) error {
	if !uml.Runs() {
		return errors.New("kernels of one's own are User Mode Linux, which needs Linux on amd64")
	}
	if err := errors.Join(uml.CheckOwnName(name), uml.Missing()); err != nil {
		return err
	}
	cache, unlock, err := lockCache(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	unpacked, err := os.MkdirTemp(cache, ".source-")
	if err != nil {
		return fmt.Errorf("make a folder to unpack in: %w", err)
	}
	defer os.RemoveAll(unpacked)
	bar := newProgress(b.progress, "fetching", 1)
	b.fetcher.Progress = bar.set
	folder, k, err := uml.OpenSource(ctx, b.fetcher, source, unpacked)
	bar.finish()
	if err != nil {
		return err
	}
	k.Name = name
	bar = newProgress(b.progress, "building", 1)
	k, err = uml.BuildOwn(ctx, cache, folder, k, func(done float64) { bar.set(name, done) })
	bar.finish()
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "kernel %s: Linux %s, for pcn run --kernel %s\n", name, k.Version, name)
	return nil
}

func newKernelList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the kernels that were built",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := ownKernels()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), all)
			}
			t := newTable(cmd.OutOrStdout())
			fmt.Fprintln(t, "NAME\tLINUX\tSHA-256\tSOURCE")
			for _, k := range all {
				fmt.Fprintf(t, "%s\t%s\t%.12s\t%s\n", k.Name, k.Version, k.SHA256,
					strings.TrimSpace(k.Source+" "+k.Commit))
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// ownKernels returns the kernels that were built, by name.
func ownKernels() ([]uml.Own, error) {
	cache, err := vm.KernelCache()
	if err != nil {
		return nil, err
	}
	return uml.Owns(cache)
}

func newKernelRemove() *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAME...",
		Short:             "Remove kernels and what was compiled of them",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeOwnKernels,
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, unlock, err := lockCache(cmd.Context())
			if err != nil {
				return err
			}
			defer unlock()
			for _, name := range args {
				err := uml.RemoveOwn(cache, name)
				if errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("no kernel %q: pcn kernel list names those that are there",
						name)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// completeOwnKernels completes the names of kernels that were built.
func completeOwnKernels(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, err := ownKernels()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, k := range all {
		names = append(names, k.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
