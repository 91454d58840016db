// SPDX-License-Identifier: Apache-2.0

// Package compile compiles a user's own congestion control with PCN's headers.
package compile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/pcn-linux/pcn/bpf"
	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
)

// The programs that are looked for, in this order.
var (
	compilers = []string{"clang-19", "clang-20", "clang-21", "clang"}
	strippers = []string{"llvm-strip-19", "llvm-strip-20", "llvm-strip-21", "llvm-strip"}
	linkers   = []string{"wasm-ld-19", "wasm-ld-20", "wasm-ld-21", "wasm-ld"}
)

// maxSource is the most that is read of a control's C file or object, in bytes.
const maxSource = 16_000_000

// Sources are of switch ports: a marking rule is compiled into them. Either may be nil if there is
// none for it.
type Sources struct {
	Kernel    fs.FS // has npecn.bpf.c
	Simulator fs.FS // has port.c
	// Counted says that the user's files count what C leaves undefined, see
	// [scheme.CountedVariable].
	Counted bool
}

// Scheme compiles the control in a C file, and the marking rule and notification point that it
// names, for kernels and for the simulator. It takes an object (.o) as it is. The error contains
// the compiler's messages, with file and line. What can't be compiled for the simulator is no
// error: the scheme says why it can't be simulated.
func Scheme(ctx context.Context, path string, ports Sources) (scheme.Own, error) {
	if filepath.Ext(path) == ".o" {
		data, err := config.ReadFile(path, maxSource)
		return scheme.Own{Control: data, Warnings: sharedVariables(path, data),
			Simulated: scheme.Simulated{
				Missing: "it was given as an object: give its C file"}}, err
	}
	if _, err := config.ReadFile(path, maxSource); err != nil {
		return scheme.Own{}, err // clang reads what never ends until memory is full
	}
	c, err := newCompiler(ports)
	if err != nil {
		return scheme.Own{}, err
	}
	defer os.RemoveAll(c.dir)
	own := scheme.Own{}
	if own.Control, err = c.compile(ctx, source{path: path, of: path}); err != nil {
		return own, err
	}
	object, err := scheme.NewObject(own.Control)
	if err != nil {
		return own, described(path, nil, err)
	}
	if err := checkReaction(object); err != nil {
		return own, described(path, object, err)
	}
	if err := checkState(path, object); err != nil {
		return own, err
	}
	if err := checkCalls(own.Control); err != nil {
		return own, err
	}
	if err := checkLock(object); err != nil {
		return own, err
	}
	own.Warnings = sharedVariables(path, own.Control)
	notification, marker, err := c.parts(path, object)
	if err != nil {
		return own, err
	}
	if notification.path != "" {
		if own.Notification, err = c.compile(ctx, notification); err != nil {
			return own, err
		}
		if err := checkCalls(own.Notification); err != nil {
			return own, err
		}
		if err := checkParams(path, own); err != nil {
			return own, err
		}
		own.Warnings = append(own.Warnings, sharedVariables(notification.of, own.Notification)...)
	}
	if marker != "" {
		if own.Port, err = c.compile(ctx, c.port(kernelPort, marker)); err != nil {
			return own, err
		}
		if err := checkCalls(own.Port); err != nil {
			return own, err
		}
		own.Warnings = append(own.Warnings, sharedVariables(marker, own.Port)...)
	}
	own.Simulated = c.simulate(ctx, source{path: path, of: path}, object, notification, marker)
	return own, nil
}

// checkReaction fails if a control hears messages and has no program for them.
func checkReaction(object *scheme.Object) error {
	spec, err := object.Spec()
	if err != nil {
		return err
	}
	paced := spec.Programs[scheme.SetRate] != nil
	if sender := object.Attribute("sender"); paced && sender == "window" ||
		!paced && sender == "rate" {
		return fmt.Errorf("its sender is %q, and its last #include is of the other kind\n(hint: "+
			"include/rate_control.h makes a rate, include/window_control.h a window)", sender)
	}
	hears, _, _ := strings.Cut(object.Attribute("hears"), " ")
	header, ok := map[string]string{
		"cnp": "include/react.h", "cnm": "include/react_cnm.h",
	}[hears]
	if n := object.Attribute("notification"); !ok && n != "" && n != scheme.None {
		return fmt.Errorf("receivers answer by notification %q, and the scheme hears nothing\n"+
			"(hint: add SCHEME(\"hears\", \"cnp\"), or remove the notification)", n)
	}
	if !ok {
		return nil
	}
	if spec.Programs[scheme.ReactionPoint] == nil {
		return fmt.Errorf("the scheme hears %q, and nothing reads them\n(hint: #include %q at the "+
			"end of the file)", hears, header)
	}
	return nil
}

// parts returns the notification point and the file of the marking rule that a control names;
// empty if it names none.
func (c *compiler) parts(
	path string, object *scheme.Object,
) (notification source, marker string, err error) {
	if file := object.OwnFile("notification"); file != "" {
		at := pathBeside(path, file)
		notification = source{path: at, of: at}
		if err := isThere(path, at, file); err != nil {
			return notification, "", err
		}
	}
	if file := object.OwnFile("marker"); file != "" {
		if marker, err = filepath.Abs(pathBeside(path, file)); err != nil {
			return notification, "", err
		}
		err = isThere(path, marker, file)
	}
	return notification, marker, err
}

// checkParams fails if a control's parameters of its notification point are not those that the
// point has.
func checkParams(path string, own scheme.Own) error {
	var layouts [2]string
	for i, of := range []struct {
		object   []byte
		variable string
	}{
		{own.Control, scheme.NotificationVariable}, {own.Notification, scheme.ParamsVariable},
	} {
		spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(of.object))
		if err != nil {
			return err
		}
		if v := spec.Variables[of.variable]; v != nil {
			layouts[i] = layoutOf(v.Type.Type)
		}
	}
	if layouts[0] == layouts[1] {
		return nil
	}
	return fmt.Errorf("%s: error: np_params has %s, and params of the notification point has %s\n"+
		"(hint: declare both as the same struct)", lineWith(path, `\bnp_params\b`),
		cmp.Or(layouts[0], "nothing"), cmp.Or(layouts[1], "nothing"))
}

// layoutOf lists a struct's members with their places.
func layoutOf(t btf.Type) string {
	s, ok := btf.UnderlyingType(t).(*btf.Struct)
	if !ok {
		return ""
	}
	var members []string
	for _, m := range s.Members {
		members = append(members, fmt.Sprintf("%s at %d", m.Name, m.Offset.Bytes()))
	}
	return fmt.Sprintf("%s (%d bytes)", strings.Join(members, ", "), s.Size)
}

// isThere fails if a file that a control names is not.
func isThere(path, at, file string) error {
	if _, err := os.Stat(at); err != nil {
		return fmt.Errorf("%s: error: file %s can't be read: %w\n(hint: its path begins at the "+
			"folder of %s)", lineWith(path, `SCHEME.*`+regexp.QuoteMeta(file)), file,
			errors.Unwrap(err), filepath.Base(path))
	}
	return nil
}

// source is a C file with the flags that it needs, and the file of the user's that is compiled by
// it.
type source struct {
	path, of string
	flags    []string
}

// port is the source of a port with a marking rule. What C leaves undefined is looked for in the
// rule, and not in PCN's files.
func (c *compiler) port(file, marker string) source {
	return source{filepath.Join(c.dir, file), marker, []string{
		fmt.Sprintf("-DOWN_MARKER=%q", marker),
		"-fsanitize-ignorelist=" + filepath.Join(c.dir, ignoreList),
	}}
}

// pathBeside returns the path of a file that another one names.
func pathBeside(path, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(path), file)
}

// The sources of switch ports in a compiler's folder.
const (
	kernelPort    = "kernel/npecn.bpf.c"
	simulatorPort = "simulator/port.c"
)

// ignoreList is a file in a compiler's folder, by which clang's sanitizer ignores that folder.
const ignoreList = "ignored"

// compiler is a clang with a folder of headers.
type compiler struct {
	clang, strip string
	dir          string
	counts       bool
}

func newCompiler(ports Sources) (*compiler, error) {
	clang, err := find(compilers)
	if err != nil {
		return nil,
			fmt.Errorf("compile a control: %w: apt install clang-19 llvm-19 libbpf-dev, or give "+
				"its object (.o)", err)
	}
	strip, err := find(strippers)
	if err != nil {
		return nil, fmt.Errorf("compile a control: %w: apt install llvm-19", err)
	}
	dir, err := os.MkdirTemp("", "pcn-compile-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for headers: %w", err)
	}
	c := &compiler{clang: clang, strip: strip, dir: dir, counts: ports.Counted}
	for folder, files := range map[string]fs.FS{
		"bpf": bpf.Headers, filepath.Dir(kernelPort): ports.Kernel,
		filepath.Dir(simulatorPort): ports.Simulator,
	} {
		if files != nil {
			err = errors.Join(err, os.CopyFS(filepath.Join(dir, folder), files))
		}
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, ignoreList),
		[]byte("src:"+dir+"/*\n"), 0o600))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write headers: %w", err), os.RemoveAll(dir))
	}
	return c, nil
}

// find returns the first of these programs that is there.
func find(programs []string) (string, error) {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no %s is installed", programs[0])
}

// compile compiles a C file for BPF. The object is the same wherever the file lies.
func (c *compiler) compile(ctx context.Context, from source) ([]byte, error) {
	out := filepath.Join(c.dir, "out.o")
	flags := []string{"-O2", "-g", "-Wall", "-mcpu=v3", "--target=bpf", "-mlittle-endian",
		"-fdebug-compilation-dir=.",
		// the verifier refuses a null pointer that is followed; clang would leave the code out
		"-fno-delete-null-pointer-checks"}
	if c.counts {
		flags = append(flags, c.counted()...)
	}
	analysis, stop := context.WithCancel(ctx)
	defer stop()
	analysed := make(chan error, 1)
	go func() { analysed <- c.analyse(analysis, from) }() // takes as long as the other
	err := c.clangTo(ctx, out, from, flags...)
	if err != nil {
		stop() // one message is enough
	}
	if err := cmp.Or(err, <-analysed); err != nil {
		return nil, err
	}
	if err := run(ctx, c.strip, "-g", out); err != nil {
		return nil, fmt.Errorf("strip the object of %s: %w", from.path, err)
	}
	return os.ReadFile(out)
}

// uninitialised are the checkers of clang's analyser that find what is read before it has a value,
// also a field of a struct. The analyser has to know divisions by zero, or it goes on behind one;
// it takes parameters for numbers that may be 0, so it is silent about them.
const uninitialised = "core.DivideZero,core.uninitialized,core.UndefinedBinaryOperatorResult," +
	"core.CallAndMessage"

// analyse refuses a C file that reads what has no value yet.
func (c *compiler) analyse(ctx context.Context, from source) error {
	return c.clangTo(ctx, os.DevNull, from, "-O2", "--target=bpf", "-mlittle-endian", "--analyze",
		"--analyzer-no-default-checks", "--analyzer-output", "text-minimal",
		"-Xclang", "-analyzer-werror", "-Xclang", "-analyzer-opt-analyze-headers",
		"-Xclang", "-analyzer-checker="+uninitialised, "-Xclang", "-analyzer-config",
		// some files would take seconds
		"-Xclang", "max-nodes=5000,silence-checkers=core.DivideZero")
}

// clangTo compiles a C file with flags for a target.
func (c *compiler) clangTo(ctx context.Context, out string, from source, target ...string) error {
	if _, err := os.Stat(from.path); err != nil {
		return err
	}
	args := slices.Concat(target, []string{
		"-Werror=implicit-function-declaration", "-Werror=array-bounds",
		"-Werror=null-dereference", "-Werror=division-by-zero", "-Werror=return-type",
		"-Werror=uninitialized", "-Werror=sometimes-uninitialized", "-Werror=parentheses",
		"-Werror=shift-count-overflow", "-Werror=shift-count-negative",
		"-Werror=infinite-recursion", "-Werror=empty-body", "-Werror=xor-used-as-pow",
		"-Werror=integer-overflow", "-Werror=constant-conversion", "-Werror=unused-value",
		"-Werror=literal-conversion", "-Werror=logical-not-parentheses", "-Werror=self-assign",
		"-Werror=tautological-compare", "-Werror=tautological-unsigned-zero-compare",
		"-Werror=sizeof-pointer-memaccess", "-Werror=bitwise-op-parentheses",
		"-Werror=vla", "-Werror=visibility", "-Werror=undefined-internal",
		"-Werror=incompatible-pointer-types",
		"-Wno-error=incompatible-pointer-types-discards-qualifiers",
		"-fno-color-diagnostics",
		"-fmacro-backtrace-limit=1", "-fstrict-flex-arrays=3",
		"-ffile-prefix-map=" + filepath.Dir(from.path) + "/=",
		"-ffile-prefix-map=" + filepath.Dir(from.of) + "/=",
		"-ffile-prefix-map=" + c.dir + "/=",
		"-I" + filepath.Join(c.dir, "bpf"), "-c", from.path, "-o", out,
	}, from.flags)
	if err := run(ctx, c.clang, args...); err != nil {
		return fmt.Errorf("compile %s:\n%s", from.of, c.explain(from.of, err.Error()))
	}
	return nil
}

// run runs a program. Its error is the program's output.
func run(ctx context.Context, program string, args ...string) error {
	var says bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = &says
	err := cmd.Run()
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(says.String())
	if text == "" {
		return err
	}
	if strings.Contains(text, "'bpf/bpf_helpers.h' file not found") {
		text += "\n(hint: apt install libbpf-dev)"
	}
	return errors.New(text)
}
