// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/pcn-linux/pcn/config/scheme"
)

// counted returns flags with which a user's file counts what C leaves undefined. The simulator
// stops there: simulate.go.
func (c *compiler) counted() []string {
	return []string{
		"-include", filepath.Join(c.dir, "bpf", "include", "undefined.h"),
		"-fsanitize=integer-divide-by-zero,shift-exponent",
		"-fsanitize-undefined-strip-path-components=-1", // the same object in each folder
	}
}

// callThroughPointer is BPF_CALL | BPF_X.
const callThroughPointer = asm.OpCode(0x8d)

// call is a call of a function, with its line of C.
type call struct {
	from, to, line string
}

// checkState refuses a flow's state with what only kernels refuse.
func checkState(path string, object *scheme.Object) error {
	spec, err := object.Spec()
	if err != nil {
		return err
	}
	flows := spec.Maps[scheme.FlowsMap]
	if flows == nil {
		return nil
	}
	if field := pointerIn(flows.Value); field != "" {
		return fmt.Errorf("%s: error: a flow's state keeps the pointer %q, and kernels "+
			"follow no pointer that was kept\n"+
			"(hint: keep an index, or the number that it points to)",
			lineWith(path, `\*\s*`+regexp.QuoteMeta(field)+`\b`), field)
	}
	return nil
}

// checkCalls refuses calls that only kernels refuse, or whose output nobody would see.
func checkCalls(object []byte) error {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		if err := checkProgram(spec.Programs[name]); err != nil {
			return err
		}
	}
	return nil
}

// pointerIn returns the name of a pointer in a type; "" if there is none.
func pointerIn(t btf.Type) string {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Array:
		return pointerIn(t.Type)
	case *btf.Struct:
		for _, m := range t.Members {
			if _, ok := btf.UnderlyingType(m.Type).(*btf.Pointer); ok {
				return m.Name
			}
			if name := pointerIn(m.Type); name != "" {
				return name
			}
		}
	}
	return ""
}

// sharedVariables returns a warning of each variable that programs change and a user's file
// declares: there is one for all flows of all hosts.
func sharedVariables(path string, object []byte) (warnings []string) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil // who loads it says why
	}
	for _, m := range spec.Maps {
		section, ok := btf.UnderlyingType(m.Value).(*btf.Datasec)
		if !ok || strings.HasPrefix(section.Name, ".rodata") {
			continue
		}
		for _, v := range section.Vars {
			name := v.Type.TypeName()
			name = name[strings.LastIndex(name, ".")+1:] // of a function's: function.variable
			place := declaredAt(path, name)
			if place == "" || name == scheme.CountedVariable {
				continue
			}
			warnings = append(warnings, fmt.Sprintf("%s: all flows of all hosts share the "+
				"variable %s\n(hint: keep it in the state of a flow or port, or make it const)",
				place, name))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// declaredAt returns where one of the user's files declares a variable outside of a function, or a
// static one; "" if none does. An object has no files: it is its place.
func declaredAt(path, name string) string {
	if filepath.Ext(path) == ".o" {
		return filepath.Base(path)
	}
	for _, file := range append([]string{path}, headersBeside(path)...) {
		at := lineWith(file, strings.ReplaceAll(
			`(?m)^\s*static\b[^\n(]*\bNAME\b|^\w[^\n(]*\bNAME\s*[[=;,]`, "NAME", name))
		if strings.Contains(at, ":") {
			return at
		}
	}
	return ""
}

func checkProgram(p *ebpf.ProgramSpec) error {
	var (
		calls []call
		at    call
	)
	for _, ins := range p.Instructions {
		if name := ins.Symbol(); name != "" {
			at.from = name
		}
		if source, ok := ins.Source().(*btf.Line); ok {
			at.line = fmt.Sprintf("%s:%d", filepath.Base(source.FileName()), source.LineNumber())
		}
		printk := ins.Constant == int64(asm.FnTracePrintk) ||
			ins.Constant == int64(asm.FnTraceVprintk)
		if ins.IsBuiltinCall() && printk {
			return fmt.Errorf("%s: error: bpf_printk prints into the kernel's trace, which no run "+
				"shows\n(hint: %s)", at.line, cantPrint)
		}
		if ins.OpCode == callThroughPointer {
			return fmt.Errorf("%s: error: a function is called through a pointer, which kernels "+
				"refuse\n(hint: choose with if or switch, and call each by its name)", at.line)
		}
		if ins.IsFunctionCall() {
			at.to = ins.Reference()
			calls = append(calls, at)
		}
	}
	for _, c := range calls {
		if reaches(calls, c.to, c.from, map[string]bool{}) {
			return fmt.Errorf("%s: error: function %s calls itself, which kernels refuse\n"+
				"(hint: %s)", c.line, c.from, noRecursion)
		}
	}
	return nil
}

// reaches reports whether one function is another, or calls it, also through others.
func reaches(calls []call, from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(calls, func(c call) bool {
		return c.from == from && reaches(calls, c.to, to, seen)
	})
}

// lineWith returns the file with the first line that a pattern matches; the file alone if none
// does.
func lineWith(path, pattern string) string {
	name := filepath.Base(path)
	text, err := os.ReadFile(path)
	if err != nil {
		return name
	}
	at := regexp.MustCompile(pattern).FindIndex(text)
	if at == nil {
		return name
	}
	return fmt.Sprintf("%s:%d", name, 1+bytes.Count(text[:at[0]], []byte("\n")))
}
