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
	"time"

	"github.com/pcn-linux/pcn/internal/vm/debian"
)

// Progress is told how far a build is, from 0 to 1. It may be nil.
type Progress func(done float64)

// builder is the name of the user that the kernel names as its builder.
const builder = "pcn"

// addedDir is the folder of a tree of Linux that has our files.
const addedDir = "arch/x86/um/pcn"

// Build builds the kernel from its package, a Debian package of Linux's source, and puts it into
// the cache. It removes what earlier calls left when they were killed, so only one may run at a
// time, and kernels of other recipes after a month. It needs no root.
func Build(ctx context.Context, cache string, source []byte, progress Progress) error {
	if err := Missing(); err != nil {
		return err
	}
	return install(cache, func(staging, image string) error {
		tree := filepath.Join(staging, "linux")
		if err := prepare(ctx, tree, source); err != nil {
			return err
		}
		if err := compile(ctx, tree, progress, allHeaders); err != nil {
			return err
		}
		return run(ctx, tree, "strip", "--strip-debug", "-o", image, imageFile)
	})
}

// Install puts a kernel that was built elsewhere into the cache. It fails if the file is not a
// kernel of this recipe.
func Install(cache, file string) error {
	return install(cache, func(_, image string) error {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the kernel: %w", err)
		}
		return os.WriteFile(image, data, 0o755)
	})
}

// keptFor is how long a kernel of another recipe stays: another version of pcn may need it, such as
// that of a checkout beside this one.
const keptFor = 30 * 24 * time.Hour

// removeOld removes the kernels that were put into the folder before then.
func removeOld(folder string, then time.Time) error {
	kernels, err := os.ReadDir(folder)
	for _, k := range kernels {
		info, statErr := k.Info()
		if statErr == nil && info.ModTime().Before(then) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(folder, k.Name())))
		}
	}
	return err
}

// install puts the kernel that produce writes into the cache, and removes old ones.
func install(cache string, produce func(staging, image string) error) error {
	err := debian.Replace(dir(cache), func(staging, fresh string) error {
		image := filepath.Join(fresh, imageFile)
		if err := produce(staging, image); err != nil {
			return err
		}
		if err := check(image); err != nil {
			return err
		}
		return removeOld(folder(cache), time.Now().Add(-keptFor))
	})
	if err != nil {
		return fmt.Errorf("put the kernel into the cache: %w", err)
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
	archive, err := debian.SourceArchive(source)
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := unpack(ctx, tree, archive, "xz"); err != nil {
		return err
	}
	if err := apply(tree); err != nil {
		return err
	}
	return configure(ctx, tree)
}

// unpack unpacks an archive of Linux, compressed by a program, into a new folder.
func unpack(ctx context.Context, tree string, archive io.Reader, compression string) error {
	if err := os.Mkdir(tree, 0o755); err != nil {
		return fmt.Errorf("make a folder to build in: %w", err)
	}
	args := []string{"-x", "--strip-components=1", "-C", tree, "--anchored"}
	if compression != "" {
		args = append(args, "--use-compress-program="+compression)
	}
	for _, pattern := range unused {
		args = append(args, "--exclude=*/"+pattern)
	}
	tar := exec.CommandContext(ctx, "tar", args...)
	tar.Stdin = archive
	if out, err := tar.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack Linux: %w\n%s", err, out)
	}
	return nil
}

// flagsFile has the compiler's options that name the tree's own folder. make compares the commands
// that it ran before: with the path in them it would compile all of a copied tree again.
const flagsFile = ".pcn-flags"

// fewerPlaces keeps places of variables out of debug information, of which only types are used. To
// follow variables takes a tenth of the compiler's time.
const fewerPlaces = "-fno-var-tracking -gno-statement-frontiers"

// hidePath keeps the tree's path out of debug information. The kernel is without that, but not
// without the hash of it, by which debuggers know a program.
func hidePath(tree string) error {
	folder, err := filepath.EvalSymlinks(tree) // as the compiler names it
	if err != nil {
		return fmt.Errorf("find the folder of Linux: %w", err)
	}
	option := "-fdebug-prefix-map=" + folder + "=.\n" + fewerPlaces + "\n"
	if err := os.WriteFile(filepath.Join(tree, flagsFile), []byte(option), 0o644); err != nil {
		return fmt.Errorf("write the compiler's options: %w", err)
	}
	return nil
}

// configure adds our files to a tree of Linux that has our changes, and configures it.
func configure(ctx context.Context, tree string) error {
	if err := hidePath(tree); err != nil {
		return err
	}
	added := filepath.Join(tree, addedDir)
	if err := addOurs(added); err != nil {
		return fmt.Errorf("add files to Linux: %w", err)
	}
	config := filepath.Join(added, "config")
	err := run(ctx, tree, "make", "ARCH=um", "KCONFIG_ALLCONFIG="+config, "allnoconfig")
	if err != nil {
		return err
	}
	return checkConfig(filepath.Join(tree, ".config"), config)
}

// addOurs writes our files into a folder, those that are not there already.
func addOurs(dir string) error {
	files, err := ours.ReadDir(oursDir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		text, err := ours.ReadFile(oursDir + "/" + f.Name())
		if err != nil {
			return err
		}
		to := filepath.Join(dir, f.Name())
		if have, err := os.ReadFile(to); err == nil && bytes.Equal(have, text) {
			continue // make compiles what is newer
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// older are options that the tested Linux does not have, but older ones.
var older = []string{"CONFIG_PROC_SYSCTL=y"}

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
		if strings.HasPrefix(line, "CONFIG_") && !slices.Contains(set, line) &&
			!slices.Contains(older, line) {
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

// allHeaders has make compile the headers that most files include once, for all files: common.h
// says which. It takes two fifths off a build of all of Linux. But each file depends on all of them
// then, so it is not for a tree in which a user changes files.
const allHeaders = "PCN_HEADERS=1"

// compile builds the kernel, with all CPUs. settings are make's.
func compile(ctx context.Context, tree string, progress Progress, settings ...string) error {
	args := append(settings, "ARCH=um", fmt.Sprintf("-j%d", runtime.NumCPU()), imageFile)
	cmd := makeLinux(ctx, tree, args...)
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
		return fmt.Errorf("build Linux: %w\n%s", err, LastLines(complaints.String()))
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
		"MAKEFLAGS=", "KCFLAGS=@"+flagsFile, "KAFLAGS=@"+flagsFile, "ARCH=",
		"HOSTCFLAGS=-O0") // the build's own programs run for moments
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
		return fmt.Errorf("run %s: %w\n%s", program, err, LastLines(string(out)))
	}
	return nil
}

// LastLines returns the end of a program's output, for errors.
func LastLines(s string) string {
	const n = 20
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
