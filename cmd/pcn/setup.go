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

	"github.com/pcn-linux/pcn/netns-lab/flock"
	"github.com/pcn-linux/pcn/netns-lab/launch"
	"github.com/pcn-linux/pcn/netns-lab/vm"
	"github.com/pcn-linux/pcn/netns-lab/vm/debian"
)

func newSetup() *cobra.Command {
	var debs []string
	var mirror string
	c := &cobra.Command{
		Use:   "setup",
		Short: "Fetch the microVM's kernel, and find QEMU or say how to install it",
		Long: fmt.Sprintf(`Prepare this machine for experiments in the microVM, on Linux or macOS.
It needs no root:

  1. Fetch the packages of the kernel that was tested, Debian's %s,
     verify their SHA-256, and unpack them into the cache. They come from Debian's mirror, or else
     from its archive of snapshots. http_proxy and https_proxy are respected.
  2. Find QEMU and its firmware, or say how this system installs them.
  3. Boot a microVM.

What is there already is verified and kept, so it is safe and quick to run again. If it is stopped,
it leaves no half kernel. The first run saves a microVM that has booted beside the kernel, in
pcn/state; later runs resume it.

Without a network: fetch the packages elsewhere, and name them with --deb. It also takes packages of
other kernels of Debian. Results are the same bytes only with the same kernel.`,
			debian.Tested().Version),
		Example: `  pcn setup
  pcn setup --mirror http://ftp.de.debian.org/debian
  pcn setup --deb linux-binary-7.deb,linux-modules-7.deb,linux-base-7.deb`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := setUp{cmd.OutOrStdout(), cmd.ErrOrStderr(), debian.Tested(), debian.Fetcher{}}
			if mirror != "" {
				s.fetcher.Mirrors = []string{strings.TrimRight(mirror, "/")}
			}
			kernelErr := s.kernel(cmd.Context(), debs)
			qemuErr := s.qemu(cmd.Context())
			if err := errors.Join(kernelErr, qemuErr); err != nil {
				return err
			}
			return s.boot(cmd.Context())
		},
	}
	c.Flags().StringSliceVar(&debs, "deb", nil, "packages of one kernel, as files: fetch nothing")
	c.Flags().StringVar(&mirror, "mirror", "",
		"URL of Debian's archive (default: "+debian.Mirror+", then its snapshot)")
	c.MarkFlagsMutuallyExclusive("deb", "mirror")
	return c
}

// setUp prepares the machine step by step, and prints what it finds.
type setUp struct {
	out, progress io.Writer
	tested        debian.Release
	fetcher       debian.Fetcher
}

// kernel puts the kernel that was tested into the cache, or the one of packages that are at hand.
func (s setUp) kernel(ctx context.Context, debs []string) error {
	cache, err := vm.KernelCache()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("make the cache's folder: %w", err)
	}
	lock, err := flock.Wait(ctx, cache)
	if err != nil {
		return fmt.Errorf("wait for another pcn setup: %w", err)
	}
	defer lock.Release() // nothing was written through it
	if len(debs) > 0 {
		return s.unpack(cache, debs)
	}
	in, err := s.tested.Find(cache)
	switch {
	case err == nil:
		fmt.Fprintf(s.out, "kernel: %s is in %s, verified\n", in.Version, in.Dir)
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(s.progress, "%v: fetching it again\n", err)
	}
	return s.fetch(ctx, cache)
}

// unpack unpacks packages that are at hand.
func (s setUp) unpack(cache string, debs []string) error {
	packages, err := debian.Read(debs)
	if err != nil {
		return err
	}
	return s.install(cache, packages)
}

func (s setUp) install(cache string, packages []debian.File) error {
	in, err := debian.Install(cache, packages, s.tested)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "kernel: %s is in %s\n", in.Version, in.Dir)
	return nil
}

// fetch downloads the kernel that was tested.
func (s setUp) fetch(ctx context.Context, cache string) error {
	fmt.Fprintf(s.out, "fetching kernel %s, packages: %d\n", s.tested.Version,
		len(s.tested.Packages))
	bar := newProgress(s.progress, "fetching", len(s.tested.Packages))
	s.fetcher.Progress = func(file string, done, size int64) {
		if size > 0 {
			bar.set(file, float64(done)/float64(size))
		}
	}
	packages, err := s.fetcher.Fetch(ctx, s.tested)
	bar.finish()
	if err != nil {
		return fmt.Errorf("%w\nRun pcn setup again, or fetch the packages elsewhere and run "+
			"pcn setup --deb with their names", err)
	}
	return s.install(cache, packages)
}

// qemu finds QEMU.
func (s setUp) qemu(ctx context.Context) error {
	version, err := vm.CheckQEMU(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "QEMU: %s\n", version)
	return nil
}

// boot boots a microVM, if its program is built in.
func (s setUp) boot(ctx context.Context) error {
	if _, err := launch.GuestSHA256(); err != nil {
		fmt.Fprintf(s.out, "microVM: not tried: %v\n", err)
		return nil
	}
	vms, err := launch.NewMicroVMs("", false)
	if err != nil {
		return err
	}
	took, err := vms.Boot(ctx)
	if err != nil {
		return fmt.Errorf("boot a microVM: %w", err)
	}
	fmt.Fprintf(s.out, "microVM: boots in %.1f s\n", took.Seconds())
	return nil
}
