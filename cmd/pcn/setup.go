// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/flock"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/debian"
	"github.com/pcn-linux/pcn/internal/vm/uml"
)

func newSetup() *cobra.Command {
	var debs []string
	var mirror, kernelFile string
	var withQEMU bool
	c := &cobra.Command{
		Use:   "setup",
		Short: "Build or fetch the microVM's kernel, once",
		Long: fmt.Sprintf(`Prepare this machine for experiments in the microVM. It needs no root.

On Linux on amd64 the microVM is User Mode Linux (UML), which is the kernel as a program:

  1. Fetch Debian's source of Linux %s and verify its SHA-256. It comes from
     Debian's mirror, or else from its archive of snapshots. http_proxy and https_proxy are
     respected.
  2. Build the kernel, in a few minutes, and put it into the cache. Where the compiler or a library
     is missing, it says how to install it. --kernel-file takes a kernel that was built elsewhere.
  3. Boot a microVM.

On other systems, and with --qemu or --deb, the microVM is Debian's kernel %s in QEMU:
it fetches the kernel's packages, and finds QEMU and its firmware, or says how this system installs
them. pcn run --kernel then takes that kernel.

What is there already is verified and kept, so it is safe and quick to run again. If it is stopped,
it leaves no half kernel.

Without a network: build the kernel elsewhere, and name it with --kernel-file. For QEMU, fetch the
packages elsewhere, and name them with --deb, which also takes those of other kernels of Debian.
Results are the same bytes only with the same kernel.`,
			uml.Tested().Version, debian.Tested().Version),
		Example: `  pcn setup
  pcn setup --mirror http://ftp.de.debian.org/debian
  pcn setup --kernel-file linux
  pcn setup --qemu
  pcn setup --deb linux-binary-7.deb,linux-modules-7.deb,linux-base-7.deb`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := setUp{cmd.OutOrStdout(), cmd.ErrOrStderr(), debian.Tested(), debian.Fetcher{}}
			if mirror != "" {
				s.fetcher.Mirrors = []string{strings.TrimRight(mirror, "/")}
			}
			if uml.Runs() && !withQEMU && len(debs) == 0 {
				if err := s.uml(cmd.Context(), kernelFile); err != nil {
					return err
				}
				return s.boot(cmd.Context(), "")
			}
			kernelErr := s.kernel(cmd.Context(), debs)
			qemuErr := s.qemu(cmd.Context())
			if err := errors.Join(kernelErr, qemuErr); err != nil {
				return err
			}
			return s.boot(cmd.Context(), s.tested.Version)
		},
	}
	c.Flags().StringVar(&kernelFile, "kernel-file", "",
		"User Mode Linux that was built elsewhere, as a file: build nothing")
	c.Flags().BoolVar(&withQEMU, "qemu", false, "prepare QEMU and Debian's kernel")
	c.Flags().StringSliceVar(&debs, "deb", nil, "packages of one kernel, as files: fetch nothing")
	c.Flags().StringVar(&mirror, "mirror", "",
		"URL of Debian's archive (default: "+debian.Mirror+", then its snapshot)")
	c.MarkFlagsMutuallyExclusive("deb", "mirror", "kernel-file")
	c.MarkFlagsMutuallyExclusive("qemu", "kernel-file")
	return c
}

// setUp prepares the machine step by step, and prints what it finds.
type setUp struct {
	out, progress io.Writer
	tested        debian.Release
	fetcher       debian.Fetcher
}

// uml puts User Mode Linux into the cache: it builds it, or takes a file.
func (s setUp) uml(ctx context.Context, file string) error {
	cache, unlock, err := lockCache(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if file != "" {
		if err := uml.Install(cache, file); err != nil {
			return err
		}
	}
	found, err := uml.Find(cache)
	if err != nil {
		fmt.Fprintf(s.progress, "%v: building it again\n", err)
	}
	if !found {
		if err := s.buildUML(ctx, cache); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.out, "kernel: %s is in %s\n", uml.Release(), filepath.Dir(uml.Image(cache)))
	return nil
}

// buildUML builds User Mode Linux from its source, which it fetches.
func (s setUp) buildUML(ctx context.Context, cache string) error {
	if err := uml.Missing(); err != nil { // before minutes of work
		return err
	}
	fmt.Fprintf(s.out, "building kernel %s from Debian's source: some minutes, once\n",
		uml.Release())
	bar := newProgress(s.progress, "fetching", 1)
	s.fetcher.Progress = bar.set
	source, err := uml.Fetch(ctx, s.fetcher, cache)
	bar.finish()
	if err != nil {
		return fmt.Errorf("%w\nRun pcn setup again, or build the kernel elsewhere, and run "+
			"pcn setup --kernel-file", err)
	}
	bar = newProgress(s.progress, "building", 1)
	defer bar.finish()
	return uml.Build(ctx, cache, source, func(done float64) { bar.set("linux", done) })
}

// lockCache makes the cache of kernels, and waits until no other pcn setup changes it.
func lockCache(ctx context.Context) (cache string, unlock func(), err error) {
	if cache, err = vm.KernelCache(); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", nil, fmt.Errorf("make the cache's folder: %w", err)
	}
	lock, err := flock.Wait(ctx, cache)
	if err != nil {
		return "", nil, fmt.Errorf("wait for another pcn setup: %w", err)
	}
	return cache, func() { lock.Release() }, nil // nothing was written through it
}

// kernel puts the kernel that was tested into the cache, or the one of packages that are at hand.
func (s setUp) kernel(ctx context.Context, debs []string) error {
	cache, unlock, err := lockCache(ctx)
	if err != nil {
		return err
	}
	defer unlock()
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
	s.fetcher.Progress = bar.set
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

// boot boots a microVM of a kernel, if its program is built in.
func (s setUp) boot(ctx context.Context, kernel string) error {
	if _, err := launch.GuestSHA256(); err != nil {
		fmt.Fprintf(s.out, "microVM: not tried: %v\n", err)
		return nil
	}
	vms, err := launch.NewMicroVMs(kernel, false)
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
