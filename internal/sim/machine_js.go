// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"unsafe"
)

// This file runs modules in a browser, which compiles them. The simulator is such a module itself,
// and can't see the memory of others: what it imports from "modules" is JavaScript that does
// (machine.js).

// cache is empty: browsers keep compiled modules themselves.
type cache struct{}

func newCache() cache { return cache{} }

// runtime holds the modules of a run. A program has one at a time.
type runtime struct{}

func newRuntime(context.Context, cache) runtime {
	forget()
	provided = nil
	return runtime{}
}

// Close forgets the modules.
func (runtime) Close(context.Context) error {
	forget()
	return nil
}

// provided has the functions that modules import, by the numbers that JavaScript knows them by.
var provided []any

// provide gives modules functions that they import from another, by their names.
func (runtime) provide(_ context.Context, from string, functions map[string]any) error {
	for _, name := range sortedKeys(functions) {
		provide(from, name, int32(len(provided)))
		provided = append(provided, functions[name])
	}
	return nil
}

// callProvided calls a function that was provided. JavaScript gives arguments that it lacks as 0.
//
//go:wasmexport provided
func callProvided(number int32, a, b, c uint32) uint32 {
	switch f := provided[number].(type) {
	case func():
		f()
	case func(a, b, c uint32):
		f(a, b, c)
	case func(a, b uint32) uint32:
		return f(a, b)
	case func(a, b, c uint32) uint32:
		return f(a, b, c)
	default:
		panic(fmt.Sprintf("provided function %d is of type %T: add that here", number, f))
	}
	return 0
}

// instantiate makes an instance of a module.
func (runtime) instantiate(_ context.Context, name string, code []byte) (machine, error) {
	number := instantiate(unsafe.Pointer(unsafe.SliceData(code)), int32(len(code)))
	if number < 0 {
		return machine{}, fmt.Errorf("instantiate %s: %w", name, lastError())
	}
	return machine{number}, nil
}

// lastError returns the text of what JavaScript caught last.
func lastError() error {
	text := make([]byte, 1000)
	n := failure(unsafe.Pointer(unsafe.SliceData(text)), int32(len(text)))
	return errors.New(string(text[:n]))
}

// machine is an instance of a module, by its number.
type machine struct{ number int32 }

// missing is what JavaScript returns for what is not there; no address is as large.
const missing = ^uint32(0)

func (m *machine) size() uint64           { return uint64(pages(m.number)) * pageBytes }
func (m *machine) grow(pages uint32) bool { return grow(m.number, pages) }

func (m *machine) global(name string) (uint32, bool) {
	value := global(m.number, name)
	return value, value != missing
}

func (m *machine) u32(at uint32) uint32 { return load32(m.number, at) }
func (m *machine) u64(at uint32) uint64 {
	return uint64(load32(m.number, at)) | uint64(load32(m.number, at+4))<<32
}
func (m *machine) put8(at uint32, value byte)    { store8(m.number, at, uint32(value)) }
func (m *machine) put16(at uint32, value uint16) { store16(m.number, at, uint32(value)) }
func (m *machine) put32(at, value uint32)        { store32(m.number, at, value) }
func (m *machine) put64(at uint32, value uint64) {
	store32(m.number, at, uint32(value))
	store32(m.number, at+4, uint32(value>>32))
}

func (m *machine) bytes(at, size uint32) []byte {
	data := make([]byte, size)
	read(m.number, at, unsafe.Pointer(unsafe.SliceData(data)), int32(size))
	return data
}

func (m *machine) write(at uint32, data []byte) {
	write(m.number, at, unsafe.Pointer(unsafe.SliceData(data)), int32(len(data)))
}

func (m *machine) touch(uint32) uint64 { return 0 }

// callee is an exported function, by its number.
type callee = int32

func (m *machine) exported(name string) (callee, bool) {
	fn := exported(m.number, name)
	return fn, fn >= 0
}

func invoke(fn callee, stack []uint64) error {
	if !call(fn, unsafe.Pointer(unsafe.SliceData(stack))) {
		return lastError()
	}
	return nil
}

//go:wasmimport modules forget
func forget()

//go:wasmimport modules provide
func provide(from, name string, number int32)

//go:wasmimport modules instantiate
func instantiate(code unsafe.Pointer, size int32) (number int32)

//go:wasmimport modules failure
func failure(text unsafe.Pointer, size int32) (length int32)

//go:wasmimport modules global
func global(number int32, name string) uint32

//go:wasmimport modules exported
func exported(number int32, name string) callee

//go:wasmimport modules call
func call(fn callee, stack unsafe.Pointer) (ok bool)

//go:wasmimport modules pages
func pages(number int32) uint32

//go:wasmimport modules grow
func grow(number int32, pages uint32) (ok bool)

//go:wasmimport modules load32
func load32(number int32, at uint32) uint32

//go:wasmimport modules store32
func store32(number int32, at, value uint32)

//go:wasmimport modules store16
func store16(number int32, at, value uint32)

//go:wasmimport modules store8
func store8(number int32, at, value uint32)

//go:wasmimport modules read
func read(number int32, at uint32, into unsafe.Pointer, size int32)

//go:wasmimport modules write
func write(number int32, at uint32, from unsafe.Pointer, size int32)
