// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/pcn-linux/pcn/loader"
)

// Host is this machine in the network namespace of the calling thread.
type Host struct{ root string }

// New returns the host whose pins are under [DefaultRoot].
func New() *Host { return At(DefaultRoot) }

// At returns the host whose pins are in another folder of a BPF file system. Hosts of one machine
// share the names of congestion controls.
func At(root string) *Host { return &Host{filepath.Clean(root)} }

func (h *Host) folder(name string) folder { return folder{filepath.Join(h.root, name)} }

// components returns the names of the pinned components, whole or not.
func (h *Host) components() ([]string, error) {
	names, err := folder{h.root}.pins("")
	slices.Sort(names)
	return names, err
}

// Change is what Up or Down did to a component.
type Change struct {
	Component string `json:"component"`
	What      string `json:"what"` // "added", "changed", "kept" or "removed"
}

// The kinds of change.
const (
	Added   = "added"
	Changed = "changed"
	Kept    = "kept"
	Removed = "removed"
)

// Up makes the host run what the configuration asks for. It changes running components in place and
// removes those that are no longer configured. Connections survive, with the programs of their
// congestion control and their entry in the flow table. If Up fails, the host is as it was.
func (h *Host) Up(ctx context.Context, c *Config) (changes []Change, err error) {
	unlock, err := lock(ctx, h.root)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := haveKernel(); err != nil {
		return nil, err
	}
	components, err := h.plan(ctx, c)
	if err != nil {
		return nil, err
	}
	var t transaction
	defer func() { err = t.end(err) }()
	if err := t.makeFolder(folder{h.root}); err != nil {
		return nil, fmt.Errorf("make %s: %w", h.root, err)
	}
	objects, err := h.load(&t, components)
	if err != nil {
		return nil, err
	}
	there, err := h.components()
	if err != nil {
		return nil, err
	}
	for i, one := range components {
		what, err := h.applyComponent(&t, one, objects[i])
		if err != nil {
			return nil, err
		}
		changes = append(changes, Change{one.name, what})
		there = slices.DeleteFunc(there, func(name string) bool { return name == one.name })
	}
	there = slices.DeleteFunc(there, isSwitchPort) // pcn host switch has them
	for _, name := range inRemovalOrder(there) {
		if err := t.remove(h.folder(name)); err != nil {
			return nil, err
		}
		changes = append(changes, Change{name, Removed})
	}
	return changes, nil
}

// haveKernel fails if this kernel lacks a feature, such as links of struct_ops (6.4) or tcx (6.6).
func haveKernel() error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("raise the limit of locked memory: %w", err)
	}
	for _, have := range []func() error{loader.HavePermission, loader.HaveBTF,
		loader.HaveTCPStructOps, loader.HaveStructOpsLink, loader.HaveTCX} {
		if err := have(); err != nil {
			return err
		}
	}
	return nil
}

// load loads all components before anything is changed.
func (h *Host) load(t *transaction, components []component) ([]*object, error) {
	controls := map[string]*loader.Control{}
	var objects []*object
	for _, one := range components {
		old := map[string]*ebpf.Map{}
		if err := openPins(h.folder(one.name), mapPrefix, ebpf.LoadPinnedMap, old); err != nil {
			return nil, err
		}
		t.after = append(t.after, func() {
			for _, m := range old {
				m.Close()
			}
		})
		o, err := one.load(old, controls)
		if err != nil {
			return nil, err
		}
		t.after = append(t.after, func() { o.close() })
		objects = append(objects, o)
	}
	return objects, nil
}

// applyComponent changes one component to its object, if they differ.
func (h *Host) applyComponent(t *transaction, c component, o *object) (what string, err error) {
	f := h.folder(c.name)
	now, err := f.state()
	if err != nil {
		return "", err
	}
	what = Changed
	if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
		what = Added
	}
	if now != nil && reflect.DeepEqual(*now, state{c.settings, o.fingerprint}) {
		same, err := attached(f, o)
		if err != nil || same {
			return Kept, err
		}
	}
	return what, t.apply(f, c, o)
}

// attached reports whether the folder has exactly the object's links, and all of them are alive.
func attached(f folder, o *object) (bool, error) {
	p, err := f.open()
	if err != nil {
		return false, err
	}
	defer p.close()
	for _, a := range o.attachments {
		if l := p.links[a.pin]; l == nil || isDetached(l) {
			return false, nil
		}
	}
	return len(p.links) == len(o.attachments), nil
}

// inRemovalOrder sorts components for removal: those that use a control come before the control.
func inRemovalOrder(names []string) []string {
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int {
		return boolToInt(strings.HasPrefix(a, controlPrefix)) - boolToInt(strings.HasPrefix(b,
			controlPrefix))
	})
	return names
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Down removes everything. Connections keep their congestion control; new ones get the system's
// default.
func (h *Host) Down(ctx context.Context) (changes []Change, err error) {
	if _, err := os.Stat(h.root); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	unlock, err := lock(ctx, h.root)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var t transaction
	defer func() {
		if err = t.end(err); err == nil {
			err = removePorts()
		}
	}()
	names, err := h.components()
	if err != nil {
		return nil, err
	}
	for _, name := range inRemovalOrder(names) {
		if err := t.remove(h.folder(name)); err != nil {
			return nil, err
		}
		changes = append(changes, Change{name, Removed})
	}
	if err := os.Remove(h.root); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove %s: %w", h.root, err)
	}
	return changes, nil
}
