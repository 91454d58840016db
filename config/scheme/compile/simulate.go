// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/config/scheme"
)

// simulate compiles the parts of a scheme for the simulator. If one can't be compiled, none is.
func (c *compiler) simulate(
	ctx context.Context, control source, object *scheme.Object, notification source, marker string,
) scheme.Simulated {
	failed := func(err error) scheme.Simulated {
		// the same text in every folder
		text := strings.ReplaceAll(err.Error(), c.dir+"/", "")
		text = strings.ReplaceAll(text, filepath.Dir(control.path)+"/", "")
		return scheme.Simulated{Missing: text}
	}
	linker, err := find(linkers)
	if err != nil {
		return failed(fmt.Errorf("%w: apt install lld-19", err))
	}
	exports, err := exportsOf(object)
	if err != nil {
		return failed(err)
	}
	var s scheme.Simulated
	if s.Control, err = c.link(ctx, linker, control, exports); err != nil {
		return failed(err)
	}
	if notification.path != "" {
		if s.Notification, err = c.link(ctx, linker, notification, nil); err != nil {
			return failed(err)
		}
	}
	if marker != "" {
		if s.Port, err = c.link(ctx, linker, c.port(simulatorPort, marker), nil); err != nil {
			return failed(err)
		}
	}
	return s
}

// exportsOf returns linker flags for the maps of a control: the simulator needs their addresses.
func exportsOf(object *scheme.Object) ([]string, error) {
	spec, err := object.Spec()
	if err != nil {
		return nil, fmt.Errorf("find the control's maps: %w", err)
	}
	var flags []string
	for name := range spec.Maps {
		flags = append(flags, "--export-if-defined="+name)
	}
	slices.Sort(flags)
	return flags, nil
}

// checks are what clang's sanitizer looks for in the simulator.
const checks = "array-bounds,null,integer-divide-by-zero,shift-exponent"

// pastEnd looks for pointers past the end of what they point to: it ends a call without a function.
const pastEnd = "local-bounds"

// link compiles a C file into a wasm module.
func (c *compiler) link(
	ctx context.Context, linker string, from source, exports []string,
) ([]byte, error) {
	object, module := filepath.Join(c.dir, "out.wasm.o"), filepath.Join(c.dir, "out.wasm")
	flags := filepath.Join(c.dir, "bpf", "include", "simulator")
	// so that an endless loop can be stopped
	endless := filepath.Join(c.dir, "bpf", "include", "endless.h")
	// What the kernel's verifier refuses ends a call: an index out of bounds, and a null pointer.
	// So does what C leaves open and kernels answer silently: a division by zero, a shift too far.
	// Lines of C are for the messages.
	if err := c.clangTo(ctx, object, from, "@"+flags+".clang", "-include", endless,
		"-fsanitize-coverage=edge,no-prune,trace-pc", "-fsanitize="+checks,
		"-fno-sanitize-recover="+checks, "-fsanitize-minimal-runtime",
		"-fsanitize="+pastEnd, "-fsanitize-trap="+pastEnd,
		"-mllvm", "-ubsan-unique-traps", "-mllvm", "-enable-tail-merge=0",
		"-gline-tables-only",
		"-fdebug-compilation-dir=."); err != nil {
		return nil, err
	}
	linkFlags, err := os.ReadFile(flags + ".wasm-ld")
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", from.path, err)
	}
	args := append(exports, strings.Fields(strings.ReplaceAll(string(linkFlags), "--strip-all",
		""))...)
	args = append(args, "-o", module, object)
	if err := run(ctx, linker, args...); err != nil {
		return nil, fmt.Errorf("link %s:\n%w", from.path, err)
	}
	return os.ReadFile(module)
}
