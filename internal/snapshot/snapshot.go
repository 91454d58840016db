// SPDX-License-Identifier: Apache-2.0

// Package snapshot saves what a graph of Go values holds, and loads it into another one that was
// built in the same way: by the same program, from the same input. What such a build fixes, such as
// functions and descriptions, stays as it was built; numbers, text, slices, maps and pointers to
// them become as they were saved, and pointers that were equal are equal.
//
// A snapshot says nothing of types. Who saves one must see to it that the program is the same that
// loads it, and that it is whole.
package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unsafe"
)

// Rules say what is not walked as it stands. Kinds of values that nobody can save (functions,
// channels, unsafe pointers) must be in Fixed; else they are refused.
type Rules struct {
	Fixed []reflect.Type // what stays as it was built
	// Own has functions that save or load values of a type, which they get the address of.
	Own map[reflect.Type]func(c *Codec, at any) error
}

// Save writes a snapshot of what root points to.
func Save(w io.Writer, root any, rules Rules) error {
	c := newCodec(rules)
	c.to = w
	return c.walkRoot(root)
}

// Load reads a snapshot of so many bytes into what root points to.
func Load(r io.Reader, bytes uint64, root any, rules Rules) error {
	c := newCodec(rules)
	c.from, c.left = r, bytes
	if err := c.walkRoot(root); err != nil {
		return err
	}
	if c.left != 0 {
		return fmt.Errorf("%w: %d bytes are left over", errBroken, c.left)
	}
	return nil
}

// errBroken says that a snapshot can't be what was saved.
var errBroken = errors.New("the snapshot is broken")

// Codec saves or loads. Both walk the same way, so that one follows the other.
type Codec struct {
	to    io.Writer // nil: it loads
	from  io.Reader
	left  uint64 // bytes to load
	fixed map[reflect.Type]bool
	own   map[reflect.Type]func(c *Codec, at any) error
	plain map[reflect.Type]bool // of types that were asked for: they have no references

	// Pointers, slices and maps are numbered as they are met; text is by its bytes.
	saved   map[identity]object
	loaded  []reflect.Value
	texts   map[string]uint64
	loading []string
	taken   map[unsafe.Pointer]bool // memory that was loaded into
}

// identity is that of a pointer, a slice or a map.
type identity struct {
	at unsafe.Pointer
	t  reflect.Type
}

// object is a pointer, a slice or a map that was saved.
type object struct {
	number uint64
	len    int // of a slice
}

func newCodec(rules Rules) *Codec {
	c := &Codec{
		fixed: map[reflect.Type]bool{}, own: rules.Own, plain: map[reflect.Type]bool{},
		saved: map[identity]object{}, texts: map[string]uint64{},
		taken: map[unsafe.Pointer]bool{},
	}
	for _, t := range rules.Fixed {
		c.fixed[t] = true
	}
	return c
}

func (c *Codec) walkRoot(root any) error {
	v := reflect.ValueOf(root)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("a snapshot is of what a pointer leads to, not of %T", root)
	}
	return c.walk(v.Elem())
}

// Loading reports whether the codec loads.
func (c *Codec) Loading() bool { return c.to == nil }

// Bytes saves or loads memory.
func (c *Codec) Bytes(b []byte) error {
	if !c.Loading() {
		_, err := c.to.Write(b)
		return err
	}
	if uint64(len(b)) > c.left {
		return fmt.Errorf("%w: it ends too early", errBroken)
	}
	if _, err := io.ReadFull(c.from, b); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	c.left -= uint64(len(b))
	return nil
}

// Uint saves or loads a number.
func (c *Codec) Uint(n *uint64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], *n)
	err := c.Bytes(b[:])
	*n = binary.LittleEndian.Uint64(b[:])
	return err
}

// length saves or loads how much comes, of which each needs a byte at least.
func (c *Codec) length(n int) (int, error) {
	u := uint64(n)
	if err := c.Uint(&u); err != nil {
		return 0, err
	}
	if c.Loading() && u > c.left {
		return 0, fmt.Errorf("%w: %d values can't be in %d bytes", errBroken, u, c.left)
	}
	return int(u), nil
}

// Value saves or loads what a pointer leads to.
func (c *Codec) Value(at any) error { return c.walkRoot(at) }

// walk saves or loads a value, which can be addressed.
func (c *Codec) walk(v reflect.Value) error {
	t := v.Type()
	if c.fixed[t] {
		return nil
	}
	at := unsafe.Pointer(v.UnsafeAddr())
	v = reflect.NewAt(t, at).Elem() // which may be set, also if nobody else sees the field
	if own := c.own[t]; own != nil {
		return own(c, v.Addr().Interface())
	}
	if c.isPlain(t) {
		return c.Bytes(unsafe.Slice((*byte)(at), t.Size()))
	}
	switch t.Kind() {
	case reflect.String:
		return c.text(v)
	case reflect.Struct:
		for i := range t.NumField() {
			if err := c.walk(v.Field(i)); err != nil {
				return within(err, "%s.%s", t, t.Field(i).Name)
			}
		}
		return nil
	case reflect.Array:
		return c.elements(v)
	case reflect.Slice, reflect.Map, reflect.Pointer:
		return c.reference(v)
	case reflect.Interface:
		return c.dynamic(v)
	default:
		return fmt.Errorf("a snapshot can't have a %s", t)
	}
}

// within says where an error is, in the innermost named type only.
func within(err error, format string, args ...any) error {
	if _, said := errors.AsType[*placed](err); said {
		return err
	}
	return &placed{fmt.Sprintf(format, args...), err}
}

type placed struct {
	at  string
	err error
}

func (p *placed) Error() string { return p.at + ": " + p.err.Error() }
func (p *placed) Unwrap() error { return p.err }

// isPlain reports whether values of a type are bytes without references, which are saved as they
// are in memory.
func (c *Codec) isPlain(t reflect.Type) bool {
	plain, known := c.plain[t]
	if known || c.fixed[t] || c.own[t] != nil {
		return plain
	}
	switch t.Kind() {
	case reflect.Array:
		plain = c.isPlain(t.Elem())
	case reflect.Struct:
		plain = true
		for field := range t.Fields() {
			plain = plain && c.isPlain(field.Type)
		}
	default:
		plain = t.Kind() <= reflect.Complex128 && t.Kind() != reflect.Uintptr &&
			t.Kind() != reflect.Invalid
	}
	c.plain[t] = plain
	return plain
}

func (c *Codec) elements(v reflect.Value) error {
	for i := range v.Len() {
		if err := c.walk(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// text saves or loads a string. The same text is saved once.
func (c *Codec) text(v reflect.Value) error {
	number, known := c.texts[v.String()]
	if !c.Loading() && !known {
		number = uint64(len(c.texts))
		c.texts[v.String()] = number
	}
	if err := c.Uint(&number); err != nil {
		return err
	}
	if c.Loading() && number < uint64(len(c.loading)) {
		v.SetString(c.loading[number])
		return nil
	}
	if known && !c.Loading() {
		return nil
	}
	n, err := c.length(v.Len())
	if err != nil {
		return err
	}
	if !c.Loading() {
		return c.Bytes([]byte(v.String()))
	}
	b := make([]byte, n)
	if err := c.Bytes(b); err != nil {
		return err
	}
	v.SetString(string(b))
	c.loading = append(c.loading, v.String())
	return nil
}

// dynamic saves or loads what an interface holds: nothing, or a pointer that was built with it.
func (c *Codec) dynamic(v reflect.Value) error {
	name := ""
	if !v.IsNil() {
		name = v.Elem().Type().String()
	}
	built := name
	if err := c.Value(&name); err != nil {
		return err
	}
	switch {
	case name == "":
		v.SetZero()
		return nil
	case name != built:
		return fmt.Errorf("%s holds a %s, and was built with %q", v.Type(), name, built)
	case v.Elem().Kind() != reflect.Pointer:
		return fmt.Errorf("a snapshot can't have a %s in a %s", name, v.Type())
	}
	p := addressable(v.Elem())
	if err := c.walk(p); err != nil {
		return err
	}
	v.Set(p)
	return nil
}

// What a reference begins with; higher numbers are those of objects that came before.
const (
	isNil = iota
	isNew
	isOld
)

// reference saves or loads a slice, a map or a pointer.
func (c *Codec) reference(v reflect.Value) error {
	if c.Loading() {
		return c.loadReference(v)
	}
	what := uint64(isNil)
	id := identity{v.UnsafePointer(), v.Type()}
	old, seen := c.saved[id]
	switch {
	case v.IsNil():
	case seen && v.Kind() == reflect.Slice && old.len != v.Len():
		return fmt.Errorf("two %s of lengths %d and %d share their memory", v.Type(), old.len,
			v.Len())
	case seen:
		what = isOld + old.number
	default:
		what = isNew
		if v.Kind() != reflect.Slice || v.Cap() > 0 { // empty ones may all be at one place
			c.saved[id] = object{uint64(len(c.saved)), lengthOf(v)}
		}
	}
	if err := c.Uint(&what); err != nil || what != isNew {
		return err
	}
	switch v.Kind() {
	case reflect.Slice:
		hasMemory := uint64(min(v.Cap(), 1))
		if err := c.Uint(&hasMemory); err != nil {
			return err
		}
		if _, err := c.length(v.Len()); err != nil {
			return err
		}
		return c.slice(v)
	case reflect.Map:
		return c.saveMap(v)
	default:
		return c.walk(v.Elem())
	}
}

func lengthOf(v reflect.Value) int {
	if v.Kind() == reflect.Slice {
		return v.Len()
	}
	return 0
}

// slice saves or loads the elements of a slice.
func (c *Codec) slice(v reflect.Value) error {
	t := v.Type().Elem()
	if t.Size() == 0 {
		return fmt.Errorf("a snapshot can't have a %s", v.Type())
	}
	if c.isPlain(t) {
		return c.Bytes(unsafe.Slice((*byte)(v.UnsafePointer()), uintptr(v.Len())*t.Size()))
	}
	return c.elements(v)
}

func (c *Codec) loadReference(v reflect.Value) error {
	var what uint64
	if err := c.Uint(&what); err != nil {
		return err
	}
	switch {
	case what == isNil:
		v.SetZero()
		return nil
	case what >= isOld:
		if what-isOld >= uint64(len(c.loaded)) || c.loaded[what-isOld].Type() != v.Type() {
			return fmt.Errorf("%w: it has no such %s", errBroken, v.Type())
		}
		v.Set(c.loaded[what-isOld])
		return nil
	}
	if !v.IsNil() && c.taken[v.UnsafePointer()] && v.Kind() == reflect.Slice {
		v.SetZero() // it shared its memory with another, and does no more
	}
	switch v.Kind() {
	case reflect.Slice:
		return c.loadSlice(v)
	case reflect.Map:
		return c.loadMap(v)
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	c.remember(v)
	return c.walk(v.Elem())
}

// remember numbers what was loaded.
func (c *Codec) remember(v reflect.Value) {
	c.loaded = append(c.loaded, addressable(v))
	c.taken[v.UnsafePointer()] = true
}

func (c *Codec) loadSlice(v reflect.Value) error {
	var hasMemory uint64
	if err := c.Uint(&hasMemory); err != nil {
		return err
	}
	n, err := c.length(0)
	if err != nil {
		return err
	}
	if v.IsNil() {
		v.Set(reflect.MakeSlice(v.Type(), 0, n))
	}
	if n > v.Len() {
		v.Grow(n - v.Len())
	}
	v.SetLen(n)
	if hasMemory != 0 {
		c.remember(v)
	}
	return c.slice(v)
}

func (c *Codec) saveMap(v reflect.Value) error {
	if _, err := c.length(v.Len()); err != nil {
		return err
	}
	for entries := v.MapRange(); entries.Next(); {
		key, value := addressable(entries.Key()), addressable(entries.Value())
		if err := errors.Join(c.walk(key), c.walk(value)); err != nil {
			return err
		}
	}
	return nil
}

// addressable returns a copy of a value that can be addressed.
func addressable(v reflect.Value) reflect.Value {
	p := reflect.New(v.Type()).Elem()
	p.Set(v)
	return p
}

func (c *Codec) loadMap(v reflect.Value) error {
	n, err := c.length(0)
	if err != nil {
		return err
	}
	built := v
	m := reflect.MakeMap(v.Type())
	c.remember(m)
	for range n {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		if err := c.walk(key); err != nil {
			return err
		}
		if was := built.MapIndex(key); was.IsValid() {
			value.Set(was)
		}
		if err := c.walk(value); err != nil {
			return err
		}
		m.SetMapIndex(key, value)
	}
	v.Set(m)
	return nil
}
