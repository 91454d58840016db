// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/netns-lab/vm/debian"
)

// Progress is told how far a build is, from 0 to 1. It may be nil.
type Progress func(done float64)

// builder is the name of the user that the kernel names as its builder.
const builder = "pcn"

// stagingPrefix begins the names of folders in which a kernel is being made.
const stagingPrefix = ".setup-"

// Build builds the kernel from its package, a Debian package of Linux's source, and puts it into
// the cache, in place of those of other recipes. It removes what earlier calls left when they were
// killed, so only one may run at a time. It needs no root.
func Build(ctx context.Context, cache string, source []byte, progress Progress) error {
	if err := Missing(); err != nil {
		return err
	}
	return install(cache, func(staging string) (string, error) {
		tree := filepath.Join(staging, "linux")
		if err := prepare(ctx, tree, source); err != nil {
			return "", err
		}
		if err := compile(ctx, tree, progress); err != nil {
			return "", err
		}
		image := filepath.Join(staging, imageFile+".stripped")
		if err := run(ctx, tree, "strip", "--strip-debug", "-o", image, imageFile); err != nil {
			return "", err
		}
		return image, check(image)
	})
}

// Install puts a kernel that was built elsewhere into the cache. It fails if the file is not a
// kernel of this recipe.
func Install(cache, file string) error {
	return install(cache, func(staging string) (string, error) {
		image := filepath.Join(staging, imageFile)
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read the kernel: %w", err)
		}
		if err := os.WriteFile(image, data, 0o755); err != nil {
			return "", fmt.Errorf("copy the kernel: %w", err)
		}
		return image, check(image)
	})
}

// install puts the file that produce returns into the cache. produce gets a folder that is removed.
func install(cache string, produce func(staging string) (file string, err error)) error {
	home := folder(cache)
	if err := os.MkdirAll(home, 0o755); err != nil {
		return fmt.Errorf("make the cache's folder: %w", err)
	}
	if err := removeAll(home, stagingPrefix+"*"); err != nil {
		return err
	}
	staging, err := os.MkdirTemp(home, stagingPrefix)
	if err != nil {
		return fmt.Errorf("make a folder to build in: %w", err)
	}
	defer os.RemoveAll(staging)
	file, err := produce(staging)
	if err != nil {
		return err
	}
	fresh := filepath.Join(staging, "new")
	err = errors.Join(os.Mkdir(fresh, 0o755), os.Rename(file, filepath.Join(fresh, imageFile)))
	if err != nil {
		return fmt.Errorf("write the kernel: %w", err)
	}
	// of other recipes, and what has this one's name but not its content
	if err := removeAll(home, "[^.]*"); err != nil {
		return err
	}
	if err := os.Rename(fresh, dir(cache)); err != nil {
		return fmt.Errorf("put the kernel into the cache: %w", err)
	}
	return nil
}

func removeAll(dir, pattern string) error {
	old, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return fmt.Errorf("look for old kernels: %w", err)
	}
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove an old kernel: %w", err)
		}
	}
	return nil
}

// Find returns whether the cache has a kernel of this recipe. It fails if a file is there and is
// none.
func Find(cache string) (found bool, err error) {
	err = check(Image(cache))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// check fails if a file is not a kernel of this recipe.
func check(image string) error {
	data, err := os.ReadFile(image)
	if err != nil {
		return fmt.Errorf("read the kernel: %w", err)
	}
	if !bytes.HasPrefix(data, []byte("\x7fELF")) || !bytes.Contains(data, []byte(banner())) {
		return fmt.Errorf("%s is not the kernel that this version of pcn needs: want a program "+
			"that says %q", image, banner())
	}
	return nil
}

// unused are files of Linux that the build does not read, as tar's --exclude has them: two thirds
// of all. Kconfig and make read their neighbours' files of all drivers.
var unused = []string{
	"Documentation/*.rst", "Documentation/*.yaml", "Documentation/*.svg", "samples/*.[ch]",
	"arch/[!ux]*/*.[chS]", "arch/[!ux]*/*.dts*", "rust/*.rs", "tools/testing/*", "tools/perf/*",
	"sound/*.[ch]", "drivers/gpu/*.[ch]", "drivers/media/*.[ch]", "drivers/staging/*.[ch]",
	"drivers/net/ethernet/*.[ch]", "drivers/net/wireless/*.[ch]", "drivers/infiniband/*.[ch]",
	"drivers/scsi/*.[ch]", "drivers/iio/*.[ch]", "drivers/usb/*.[ch]", "drivers/accel/*.[ch]",
	"drivers/clk/*.[ch]", "drivers/pinctrl/*.[ch]", "drivers/crypto/*.[ch]",
}

// prepare unpacks the source into a folder, with our files and changes, and configures it.
func prepare(ctx context.Context, tree string, source []byte) error {
	if err := os.Mkdir(tree, 0o755); err != nil {
		return fmt.Errorf("make a folder to build in: %w", err)
	}
	archive, err := debian.SourceArchive(source)
	if err != nil {
		return err
	}
	defer archive.Close()
	args := []string{"-x", "--xz", "--strip-components=1", "-C", tree, "--anchored"}
	for _, pattern := range unused {
		args = append(args, "--exclude=linux-source-*/"+pattern)
	}
	tar := exec.CommandContext(ctx, "tar", args...)
	tar.Stdin = archive
	if out, err := tar.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack Linux: %w\n%s", err, out)
	}
	if err := apply(tree); err != nil {
		return err
	}
	added := filepath.Join(tree, "arch/x86/um/pcn")
	if err := os.Mkdir(added, 0o755); err != nil {
		return fmt.Errorf("add files to Linux: %w", err)
	}
	files, err := fs.Sub(ours, "linux")
	if err != nil {
		return err
	}
	if err := os.CopyFS(added, files); err != nil {
		return fmt.Errorf("add files to Linux: %w", err)
	}
	config := filepath.Join(added, "config")
	err = run(ctx, tree, "make", "ARCH=um", "KCONFIG_ALLCONFIG="+config, "allnoconfig")
	if err != nil {
		return err
	}
	return checkConfig(filepath.Join(tree, ".config"), config)
}

// checkConfig fails if Linux was not configured as wanted: an option has another name, or lacks
// what it needs.
func checkConfig(configured, wanted string) error {
	have, err1 := os.ReadFile(configured)
	want, err2 := os.ReadFile(wanted)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("check the kernel's configuration: %w", err)
	}
	set := strings.Split(string(have), "\n")
	for line := range strings.Lines(string(want)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "CONFIG_") && !slices.Contains(set, line) {
			return fmt.Errorf("configure Linux: %s did not take effect", line)
		}
		off, found := strings.CutPrefix(line, "# CONFIG_")
		name, _, isOff := strings.Cut(off, " is not set")
		if found && isOff && strings.Contains(string(have), "\nCONFIG_"+name+"=") {
			return fmt.Errorf("configure Linux: CONFIG_%s cannot be switched off", name)
		}
	}
	return nil
}

// compile builds the kernel, with all CPUs.
func compile(ctx context.Context, tree string, progress Progress) error {
	cmd := makeLinux(ctx, tree, "ARCH=um", fmt.Sprintf("-j%d", runtime.NumCPU()), imageFile)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("build Linux: %w", err)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build Linux: %w", err)
	}
	follow(out, progress)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("build Linux: %w\n%s", err, lastLines(complaints.String()))
	}
	return nil
}

// follow counts the objects that make says it compiles.
func follow(out io.Reader, progress Progress) {
	compiled := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "  CC ") {
			continue
		}
		compiled++
		if progress != nil {
			progress(min(1, float64(compiled)/float64(Tested().Objects)))
		}
	}
}

// makeLinux returns make's command for Linux. The kernel has no time, user, machine or path of its
// build, so that each build has the same bytes.
func makeLinux(ctx context.Context, tree string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "make", args...)
	cmd.Dir = tree
	cmd.Env = append(os.Environ(), "LC_ALL=C", "KBUILD_BUILD_TIMESTAMP=2026-01-01",
		"KBUILD_BUILD_VERSION=1", "KBUILD_BUILD_USER="+builder, "KBUILD_BUILD_HOST="+Recipe(),
		"MAKEFLAGS=", "KCFLAGS=", "ARCH=")
	return cmd
}

// run runs a program in the tree.
func run(ctx context.Context, tree, program string, args ...string) error {
	cmd := makeLinux(ctx, tree, args...)
	path, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	cmd.Path, cmd.Args[0] = path, program
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w\n%s", program, err, lastLines(string(out)))
	}
	return nil
}

// lastLines returns the end of a program's output, for errors.
func lastLines(s string) string {
	const n = 20
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
