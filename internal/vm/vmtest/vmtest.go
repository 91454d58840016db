// SPDX-License-Identifier: Apache-2.0

// Package vmtest runs a package's tests in a microVM.
package vmtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/guest"
)

// Extra holds what a package's tests need in the microVM besides their testdata.
type Extra struct {
	Files   []vm.File
	Modules []string // of the kernel
	Flags   []string // of go test, behind the given ones
	CPUs    int      // 0: 1, which is reproducible. Several run by the clock, all at once
	// OnDebian are the tests that call [NeedsDebian] somewhere. They run once more, on a kernel of
	// Debian in QEMU. With PCN_TEST_QEMU in the environment all tests run there.
	OnDebian []string
}

// qemuEnv has all tests run on Debian's kernel in QEMU, and says in the guest that they do.
const qemuEnv = "PCN_TEST_QEMU"

// NeedsDebian skips a test that needs a kernel of Debian, or CPUs that take time, where there is
// neither. The package names it in [Extra.OnDebian].
func NeedsDebian(t *testing.T) {
	t.Helper()
	if os.Getenv(qemuEnv) == "" {
		t.Skip("needs Debian's kernel in QEMU, where RunTests runs it, too")
	}
}

// RunTests runs the tests as root in a microVM, with the flags of go test; call it from TestMain.
// The test binary is its own guest and has the package's testdata folder. Without QEMU or a kernel
// it fails and says what to install.
func RunTests(m *testing.M, extra Extra) int {
	if guest.Inside() {
		guest.Main(func([]string) int { return m.Run() })
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := runParts(ctx, extra)
	if err != nil {
		fmt.Fprintf(os.Stderr, "tests in the microVM: %v\n", err)
		return 1
	}
	return code
}

// runParts runs the tests, and those of extra.OnDebian in a second microVM.
func runParts(ctx context.Context, extra Extra) (int, error) {
	flags := guestFlags(os.Args[1:])
	if extra.CPUs > 1 || os.Getenv(qemuEnv) != "" {
		return runTests(ctx, extra, flags, true)
	}
	code, err := runTests(ctx, extra, flags, false)
	flags, wanted := wantedOf(flags, extra.OnDebian)
	if code != 0 || err != nil || !wanted {
		return code, err
	}
	return runTests(ctx, extra, flags, true)
}

// wantedOf returns the flags that run, of some tests, those that the given flags choose by -run,
// and whether there are any.
func wantedOf(flags, tests []string) ([]string, bool) {
	const run = "-test.run="
	i := slices.IndexFunc(flags, func(f string) bool { return strings.HasPrefix(f, run) })
	if i < 0 {
		return append(slices.Clone(flags), run+"^("+strings.Join(tests, "|")+")$"), len(tests) > 0
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(flags[i], run), "/")
	chosen, err := regexp.Compile(name)
	return flags, err == nil && slices.ContainsFunc(tests, chosen.MatchString)
}

// runTests runs the tests in one microVM, onDebian or on our kernel.
func runTests(ctx context.Context, extra Extra, flags []string, onDebian bool) (int, error) {
	find, env := vm.Default, []string(nil)
	if onDebian {
		find = func() (vm.Kernel, error) { return vm.FindKernel("") }
		env = []string{qemuEnv + "=1"}
	}
	kernel, err := find()
	if err != nil {
		return 0, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return 0, fmt.Errorf("find the working directory: %w", err)
	}
	files, err := testdata(dir)
	if err != nil {
		return 0, err
	}
	if extra.CPUs <= 1 { // ten minutes of the microVM's time, which no other counts, are soon over
		flags = append(flags, "-test.timeout=2h")
	}
	// On several emulated CPUs Linux sometimes panics at boot with "Oops: int3", as it patches its
	// own code: once in about ten boots. A panic before any program ran is no test's: boot again.
	const boots = 10
	for boot := 1; ; boot++ {
		console := &noticing{w: os.Stdout}
		res, err := vm.Run(ctx, vm.Config{
			Kernel: kernel, Args: slices.Concat(flags, extra.Flags), Env: env, Dir: dir,
			Files: append(files, extra.Files...), Modules: extra.Modules,
			CPUs: extra.CPUs, RealTime: extra.CPUs > 1, Emulated: extra.CPUs > 1,
			HostCPU: -1, Seed: 1, Console: console,
		})
		isBoot := errors.Is(err, vm.ErrPanic) && !console.used && extra.CPUs > 1
		if !isBoot || boot == boots {
			return res.ExitCode, err
		}
	}
}

// noticing notices whether something was written.
type noticing struct {
	w    io.Writer
	used bool
}

func (n *noticing) Write(p []byte) (int, error) {
	n.used = true
	return n.w.Write(p)
}

// hostFlags are the flags of go test that name files of the host.
var hostFlags = []string{
	"-test.testlogfile", "-test.coverprofile", "-test.gocoverdir", "-test.outputdir",
	"-test.cpuprofile", "-test.memprofile", "-test.blockprofile", "-test.mutexprofile",
	"-test.trace", "-test.fuzzcachedir",
}

func guestFlags(args []string) []string {
	var out []string
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if !slices.Contains(hostFlags, name) {
			out = append(out, arg)
		}
	}
	return out
}

// testdata returns the files of the package's testdata folder, and a file whose folder is the
// working directory.
func testdata(dir string) ([]vm.File, error) {
	files := []vm.File{{Path: filepath.Join(dir, ".pcn"), Mode: 0o644}}
	add := func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		files = append(files, vm.File{Path: name, Mode: 0o644, Data: data})
		return err
	}
	err := filepath.WalkDir(filepath.Join(dir, "testdata"), add)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("read testdata: %w", err)
	}
	return files, nil
}
