// SPDX-License-Identifier: Apache-2.0

//go:build !js

package sim

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// This file runs modules with wazero, which compiles them to machine code. machine_js.go has the
// same in a browser, which compiles modules itself.

// cache keeps the machine code of modules.
type cache = wazero.CompilationCache

func newCache() cache { return wazero.NewCompilationCache() }

// runtime holds the modules of a run.
type runtime struct{ wazero.Runtime }

func newRuntime(ctx context.Context, c cache) runtime {
	return runtime{wazero.NewRuntimeWithConfig(ctx,
		wazero.NewRuntimeConfig().WithCompilationCache(c))}
}

// provide gives modules functions that they import from another, by their names.
func (r runtime) provide(ctx context.Context, from string, functions map[string]any) error {
	b := r.NewHostModuleBuilder(from)
	for _, name := range sortedKeys(functions) {
		b = b.NewFunctionBuilder().WithFunc(functions[name]).Export(name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// instantiate makes an instance of a module.
func (r runtime) instantiate(ctx context.Context, name string, code []byte) (machine, error) {
	compiled, err := r.CompileModule(ctx, code)
	if err != nil {
		return machine{}, fmt.Errorf("compile %s: %w", name, err)
	}
	instance, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(name))
	if err != nil {
		return machine{}, fmt.Errorf("instantiate %s: %w", name, err)
	}
	m := machine{wasm: instance}
	if instance.Memory() != nil {
		m.see()
	}
	return m, nil
}

// machine is an instance of a module, with its memory.
type machine struct {
	wasm   api.Module
	memory []byte // of wasm; replaced when it grows
}

// see notes the memory as it is now.
func (m *machine) see() {
	m.memory, _ = m.wasm.Memory().Read(0, m.wasm.Memory().Size())
}

// size returns the bytes of memory.
func (m *machine) size() uint64 { return uint64(len(m.memory)) }

// grow adds pages to the memory; false if there is no room.
func (m *machine) grow(pages uint32) bool {
	if _, ok := m.wasm.Memory().Grow(pages); !ok {
		return false
	}
	m.see()
	return true
}

// global returns the value of a global, which is where a variable is; false if there is none.
func (m *machine) global(name string) (uint32, bool) {
	g := m.wasm.ExportedGlobal(name)
	if g == nil {
		return 0, false
	}
	return uint32(g.Get()), true
}

func (m *machine) u32(at uint32) uint32 { return binary.LittleEndian.Uint32(m.memory[at:]) }
func (m *machine) u64(at uint32) uint64 { return binary.LittleEndian.Uint64(m.memory[at:]) }

func (m *machine) put8(at uint32, value byte) { m.memory[at] = value }

func (m *machine) put16(at uint32, value uint16) {
	binary.LittleEndian.PutUint16(m.memory[at:], value)
}

func (m *machine) put32(at, value uint32) { binary.LittleEndian.PutUint32(m.memory[at:], value) }

func (m *machine) put64(at uint32, value uint64) {
	binary.LittleEndian.PutUint64(m.memory[at:], value)
}

// bytes returns a part of the memory, which holds until the next call.
func (m *machine) bytes(at, size uint32) []byte { return m.memory[at : at+size] }

func (m *machine) write(at uint32, data []byte) { copy(m.memory[at:], data) }

// touch brings a part of the memory into the CPU's cache. Its value means nothing.
func (m *machine) touch(at uint32) uint64 { return uint64(m.memory[at]) }

// callee is an exported function.
type callee = api.Function

// exported returns an exported function; false if there is none.
func (m *machine) exported(name string) (callee, bool) {
	fn := m.wasm.ExportedFunction(name)
	return fn, fn != nil
}

// noContext is that of calls: wazero asks it for values at each, and a run's has many layers.
var noContext = context.Background()

// invoke calls a function. Arguments and the result are in the stack.
func invoke(fn callee, stack []uint64) error { return fn.CallWithStack(noContext, stack) }
