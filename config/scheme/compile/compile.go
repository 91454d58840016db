// SPDX-License-Identifier: Apache-2.0

// Package compile compiles a user's own congestion control with PCN's headers.
package compile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pcn-linux/pcn/bpf"
	"github.com/pcn-linux/pcn/config/scheme"
)

// The compilers and strippers that are looked for, in this order.
var (
	compilers = []string{"clang-19", "clang-20", "clang-21", "clang"}
	strippers = []string{"llvm-strip-19", "llvm-strip-20", "llvm-strip-21", "llvm-strip"}
)

// portSource holds the source of switch ports, into which a marking rule is compiled.
type portSource = fs.FS

// Scheme compiles the control in a C file, and the marking rule and notification point that it
// names. It takes an object (.o) as it is. port has the sources of switch ports, for a marking
// rule. The error contains the compiler's messages, with file and line.
func Scheme(ctx context.Context, path string, port portSource) (scheme.Own, error) {
	if filepath.Ext(path) == ".o" {
		data, err := os.ReadFile(path)
		return scheme.Own{Control: data}, err
	}
	c, err := newCompiler(port)
	if err != nil {
		return scheme.Own{}, err
	}
	defer os.RemoveAll(c.dir)
	own := scheme.Own{}
	if own.Control, err = c.compile(ctx, path); err != nil {
		return own, err
	}
	object, err := scheme.NewObject(own.Control)
	if err != nil {
		return own, fmt.Errorf("%s: %w", path, err)
	}
	if file := object.OwnFile("notification"); file != "" {
		if own.Notification, err = c.compile(ctx, pathBeside(path, file)); err != nil {
			return own, err
		}
	}
	if file := object.OwnFile("marker"); file != "" {
		marker, err := filepath.Abs(pathBeside(path, file))
		if err != nil {
			return own, err
		}
		own.Port, err = c.compile(ctx, filepath.Join(c.dir, portFile),
			fmt.Sprintf("-DOWN_MARKER=%q", marker))
		if err != nil {
			return own, err
		}
	}
	return own, nil
}

// pathBeside returns the path of a file that another one names.
func pathBeside(path, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(path), file)
}

// portFile is the source of switch ports in a compiler's folder.
const portFile = "port/npecn.bpf.c"

// compiler is a clang with a folder of headers.
type compiler struct {
	clang, strip string
	dir          string
}

func newCompiler(port portSource) (*compiler, error) {
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
	c := &compiler{clang: clang, strip: strip, dir: dir}
	err = os.CopyFS(filepath.Join(dir, "bpf"), bpf.Headers)
	if err == nil && port != nil {
		err = os.CopyFS(filepath.Join(dir, "port"), port)
	}
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
func (c *compiler) compile(ctx context.Context, path string, flags ...string) ([]byte, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	out := filepath.Join(c.dir, "out.o")
	args := append([]string{
		"-O2", "-g", "-Wall", "-Werror=implicit-function-declaration", "-mcpu=v3", "--target=bpf",
		"-mlittle-endian", "-fno-color-diagnostics", "-fdebug-compilation-dir=.",
		"-ffile-prefix-map=" + filepath.Dir(path) + "/=", "-ffile-prefix-map=" + c.dir + "/=",
		"-I" + filepath.Join(c.dir, "bpf"), "-c", path, "-o", out,
	}, flags...)
	if err := run(ctx, c.clang, args...); err != nil {
		return nil, fmt.Errorf("compile %s:\n%w", path, err)
	}
	if err := run(ctx, c.strip, "-g", out); err != nil {
		return nil, fmt.Errorf("strip the object of %s: %w", path, err)
	}
	return os.ReadFile(out)
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
