// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config/scheme"
)

// OperationsMap is the key of the map of a control's operations, among [Control.Maps].
const OperationsMap = "control"

// Option changes how a control is registered.
type Option func(*definition)

// Reuse gives the control the flow table and counters of an earlier one of its name, from
// [Control.Maps], so that it knows live flows. It ignores maps of another layout or size.
func Reuse(maps map[string]*ebpf.Map) Option {
	return func(d *definition) { d.reuse = maps }
}

// Unregistered loads the control without registering it: call [Control.Register] or
// [Control.Replace].
func Unregistered() Option {
	return func(d *definition) { d.unregistered = true }
}

// Maps returns the control's maps by name. [OperationsMap] is the key of its operations.
func (c *Control) Maps() map[string]*ebpf.Map {
	if c.coll == nil {
		return nil
	}
	all := maps.Clone(c.coll.Maps)
	all[OperationsMap] = all[c.ops]
	if c.ops != OperationsMap {
		delete(all, c.ops)
	}
	return all
}

// Fingerprint returns a hash of the control's programs and parameters; "" if they are not its own.
func (c *Control) Fingerprint() string {
	if c.fingerprint == nil {
		return ""
	}
	return c.fingerprint()
}

// Link returns the control's registration, for pinning; nil if it has no link.
func (c *Control) Link() link.Link { return c.link }

// Replace puts the control in the place of an earlier one of its name. New connections use the new
// control; old ones keep the old programs until they end. With [Reuse] both share one flow table.
func (c *Control) Replace(registration link.Link) error {
	if err := UpdateStructOps(registration, c.coll.Maps[c.ops]); err != nil {
		return fmt.Errorf("replace congestion control %s: %w", c.Name(), err)
	}
	return nil
}

// UpdateStructOps replaces the operations of a registration atomically. It does nothing if they are
// the same: kernels up to at least 6.18 hang for ever on such an update.
func UpdateStructOps(registration link.Link, operations *ebpf.Map) error {
	l, ok := registration.(interface{ FD() int })
	if !ok {
		return fmt.Errorf("a link of type %T can't be updated: %w", registration, ErrNotSupported)
	}
	current, err := structOpsMapID(l.FD())
	if err != nil {
		return err
	}
	info, err := operations.Info()
	if err != nil {
		return fmt.Errorf("read the new operations: %w", err)
	}
	id, ok := info.ID()
	if !ok {
		return fmt.Errorf("read the new operations' id: %w", ErrNotSupported)
	}
	if uint32(id) == current {
		return nil
	}
	attr := struct{ link, newMap, flags, oldMap uint32 }{link: uint32(l.FD()),
		newMap: uint32(operations.FD())}
	if err := bpf(unix.BPF_LINK_UPDATE, unsafe.Pointer(&attr), unsafe.Sizeof(attr)); err != nil {
		return fmt.Errorf("update the registration: %w", err)
	}
	runtime.KeepAlive(operations)
	return nil
}

// structOpsMapID returns the id of the map behind a struct_ops link, which cilium/ebpf does not
// expose.
func structOpsMapID(fd int) (uint32, error) {
	info := struct { // struct bpf_link_info
		kind, id, prog, _ uint32
		mapID             uint32
		_                 [12]byte
	}{}
	attr := struct { // of BPF_OBJ_GET_INFO_BY_FD
		fd, length uint32
		info       uint64
	}{uint32(fd), uint32(unsafe.Sizeof(info)), uint64(uintptr(unsafe.Pointer(&info)))}
	if err := bpf(unix.BPF_OBJ_GET_INFO_BY_FD, unsafe.Pointer(&attr),
		unsafe.Sizeof(attr)); err != nil {
		return 0, fmt.Errorf("read a registration: %w", err)
	}
	runtime.KeepAlive(&info)
	if info.kind != unix.BPF_LINK_TYPE_STRUCT_OPS {
		return 0, fmt.Errorf("read a registration: link %d is of type %d, not struct_ops", info.id,
			info.kind)
	}
	return info.mapID, nil
}

func bpf(command uintptr, attr unsafe.Pointer, size uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(attr), size); errno != 0 {
		return errno
	}
	return nil
}

// FromFlows returns the control of a pinned flow table, whoever registered it: its flows can be
// read. The type of the entries goes with the table, so it may be another build's, or a control of
// the user's own. Without types it is the kernel's.
func FromFlows(name string, flows *ebpf.Map, types MapTypes) (*Control, error) {
	entry, err := types.ValueType(flowsMap, flows)
	if err != nil {
		return nil, fmt.Errorf("flow table of congestion control %s: %w", name, err)
	}
	layout, err := layoutOfEntry(entry, flows)
	if err != nil {
		return nil, fmt.Errorf("flow table of congestion control %s: %w: run pcn host up with "+
			"this program", name, err)
	}
	s, ok := scheme.Builtin().ByControl(name)
	if !ok {
		s = scheme.Scheme{Name: name, Control: name}
	}
	return &Control{scheme: s, layout: layout, flows: flows}, nil
}

// layoutOfEntry reads the layout of a table's entries.
func layoutOfEntry(entry *btf.Struct, flows *ebpf.Map) (*flowLayout, error) {
	if entry.Size != flows.ValueSize() {
		return nil, fmt.Errorf("its entries have %d bytes, %s has %d", flows.ValueSize(),
			entry.Name, entry.Size)
	}
	stats, err := scheme.StatsOf(entry, entry.Size)
	if err != nil {
		return nil, err
	}
	return entryLayout(entry, entry.Size, stats)
}

// Types returns the types of the control's flow table and counters, for [UnmarshalTypes]; nil if
// its programs are not its own.
func (c *Control) Types() ([]byte, error) {
	if c.types == nil {
		return nil, nil
	}
	return c.types()
}

// Fingerprint hashes an object's programs, map sizes and variables: objects with equal hashes run
// alike.
func Fingerprint(spec *ebpf.CollectionSpec) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		p := spec.Programs[name]
		fmt.Fprintln(h, name, p.Type, p.AttachType, p.AttachTo)
		for _, ins := range p.Instructions {
			fmt.Fprintln(h, uint8(ins.OpCode), ins.Dst, ins.Src, ins.Offset, ins.Constant,
				ins.Reference())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Variables)) {
		fmt.Fprintln(h, name, spec.Variables[name].Value)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Maps)) {
		m := spec.Maps[name]
		fmt.Fprintln(h, name, m.Type, m.KeySize, m.ValueSize, m.MaxEntries, m.Flags)
		for _, kv := range m.Contents {
			fmt.Fprintln(h, kv.Key, kv.Value)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
