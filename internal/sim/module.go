// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strings"

	"github.com/pcn-linux/pcn/config/lazy"
	"github.com/pcn-linux/pcn/config/scheme"
)

// module is an instance of a compiled C file, with its memory.
type module struct {
	machine
	name string
	free uint32    // address of the first byte that was not allocated
	dog  *watchdog // nil: none of its calls may be endless
}

// pageBytes is the size of a page of a wasm memory.
const pageBytes = 1 << 16

// newModule instantiates a module in a runtime.
func newModule(ctx context.Context, r runtime, name string, code []byte) (*module, error) {
	instance, err := r.instantiate(ctx, name, code)
	if err != nil {
		return nil, err
	}
	heap, ok := instance.global("__heap_base")
	if !ok || instance.size() == 0 {
		return nil, fmt.Errorf("module %s has no memory: compile it with "+
			"scripts/compile-simulator.sh", name)
	}
	return &module{machine: instance, name: name, free: heap}, nil
}

// align is what addresses are multiples of.
const align = 8

// alloc returns the address of so many bytes, which are zero. They are never freed.
func (m *module) alloc(bytes uint32) (uint32, error) {
	at := (m.free + align - 1) &^ (align - 1)
	end := uint64(at) + uint64(bytes)
	if missing := int64(end) - int64(m.size()); missing > 0 {
		pages := uint32((missing + pageBytes - 1) / pageBytes)
		pages = max(pages, uint32(m.size()/pageBytes)) // at least twice as much
		if !m.grow(pages) {
			return 0, fmt.Errorf("module %s needs more memory than the 4 GB of wasm: "+
				"run fewer flows", m.name)
		}
	}
	m.free = uint32(end)
	return at, nil
}

// reserve makes room for so many bytes, if it can. Each time that memory grows it is copied.
func (m *module) reserve(bytes uint64) {
	end := uint64(m.free) + bytes
	if missing := int64(end) - int64(m.size()); missing > 0 && end <= 1<<32-pageBytes {
		m.grow(uint32((missing + pageBytes - 1) / pageBytes))
	}
}

// set writes a variable. It ignores one that the module lacks.
func (m *module) set(variable string, value []byte) {
	if at, ok := m.global(variable); ok {
		m.write(at, value)
	}
}

// function is an exported function. Arguments and the result are in the stack.
type function struct {
	module *module
	name   string
	fn     callee
	stack  [8]uint64
}

// function returns an exported function; nil if there is none.
func (m *module) function(name string) *function {
	fn, ok := m.exported(name)
	if !ok {
		return nil
	}
	return &function{module: m, name: name, fn: fn}
}

// need returns exported functions that must be there.
func (m *module) need(names ...string) ([]*function, error) {
	functions := make([]*function, len(names))
	for i, name := range names {
		if functions[i] = m.function(name); functions[i] == nil {
			return nil, fmt.Errorf("module %s has no function %s: run make generate",
				m.name, name)
		}
	}
	return functions, nil
}

// trap is a panic with the error of a call: [catch] recovers it. C files of ours don't trap, those
// of users may.
type trap struct{ err error }

// catch makes a panic of a call the error of the function that defers it.
func catch(err *error) {
	if r := recover(); r != nil {
		t, ok := r.(trap)
		if !ok {
			panic(r)
		}
		*err = t.err
	}
}

// call calls the function with the arguments in its stack and returns the result.
func (f *function) call() uint64 {
	f.module.dog.begin()
	if err := invoke(f.fn, f.stack[:]); err != nil {
		panic(trap{f.explain(err)})
	}
	return f.stack[0]
}

// ownLine is a line of a user's C file in a stack trace: PCN's headers are in folders.
var ownLine = lazy.Regexp(`(?m)^\s+(?:0x[0-9a-f]+: )?([^\s/]+\.[ch]:\d+):\d+`)

// causes are what ends a call, by the words of the runtime.
var causes = []struct{ words, cause, hint string }{
	{errEndless.Error(), errEndless.Error(), "a call is stopped after 2^27 steps, or when the " +
		"run is interrupted: give the loop a bound"},
	{"control_allows_nothing", scheme.Standstill, scheme.StandstillHint},
	{"integer divide by zero", "division by zero", testDivisor},
	{"handle_divrem_overflow", "division by zero", testDivisor},
	{"handle_shift_out_of_bounds", "a shift by more bits than the number has",
		"limit it: << (n & 63) for a u64"},
	{"handle_out_of_bounds", "an index is out of its array's bounds",
		"limit the index before it is used: i & (SIZE - 1), or if (i < SIZE)"},
	{"wasm error: unreachable",
		"a null pointer, or one past the end of what it points to, is followed",
		"compare the pointer with NULL, or limit the index: i & (SIZE - 1), or if (i < SIZE)"},
	{"handle_type_mismatch", "a null pointer is followed", "compare the pointer with NULL before"},
	{"out of bounds memory access", "a pointer leads to no memory",
		"only pointers that the simulator handed out can be followed"},
}

const testDivisor = "test the divisor before; a kernel would go on with 0"

// callError is the error of a call. It says where and why, not the runtime's whole trace.
type callError struct {
	text string
	err  error
}

func (e *callError) Error() string { return e.text }
func (e *callError) Unwrap() error { return e.err }

// explain says which line of a user's file ended a call, and why. Helpers of BPF are calls of low
// addresses, where a module has no function.
func (f *function) explain(err error) error {
	of := fmt.Sprintf("function %s of module %s", f.name, f.module.name)
	text := err.Error()
	if m := ownLine().FindStringSubmatch(text); m != nil {
		of = m[1] + ": " + of
	}
	for _, c := range causes {
		if strings.Contains(text, c.words) {
			return &callError{fmt.Sprintf("%s: %s\n(hint: %s)", of, c.cause, c.hint), err}
		}
	}
	hint := ""
	if strings.Contains(text, "invalid table access") ||
		strings.Contains(text, "indirect call type mismatch") {
		hint = "\n(hint: it calls a BPF helper that the simulator lacks: bpf/include/simulator.h " +
			"has the others; or run it with `--engine kernel`)"
	}
	return fmt.Errorf("%s: %w%s", of, err, hint)
}
