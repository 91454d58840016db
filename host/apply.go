// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// transaction records how to undo each step, and what to free in the end.
type transaction struct {
	undo  []func() error
	after []func()
}

// do runs a step and records how to undo it. A step that fails must have done nothing.
func (t *transaction) do(do, undo func() error) error {
	if err := do(); err != nil {
		return err
	}
	t.undo = append(t.undo, undo)
	return nil
}

// end undoes all steps if err is not nil, and frees resources. It returns err with the failures of
// undoing.
func (t *transaction) end(err error) error {
	if err != nil {
		for _, undo := range slices.Backward(t.undo) {
			if failed := undo(); failed != nil {
				err = fmt.Errorf("%w; and it could not be undone: %w: pcn host down removes what "+
					"is left", err, failed)
			}
		}
	}
	for _, f := range slices.Backward(t.after) {
		f()
	}
	return err
}

// apply makes the component's pins and attachments those of the object.
func (t *transaction) apply(f folder, c component, o *object, new state) error {
	old, err := f.open()
	if err != nil {
		return err
	}
	t.after = append(t.after, old.close)
	if err := t.makeFolder(f); err != nil {
		return err
	}
	if err := t.unpin(f, statePin, old.state); err != nil {
		return err
	}
	if err := t.replaceLinks(f, o, old); err != nil {
		return err
	}
	if c.applied != nil {
		if err := c.applied(); err != nil {
			return err
		}
	}
	if err := replacePins(t, f, progPrefix, old.programs, o.programs); err != nil {
		return err
	}
	if err := t.replaceMaps(f, old.maps, o.maps); err != nil {
		return err
	}
	return t.pinState(f, new)
}

func (t *transaction) pinState(f folder, s state) error {
	m, err := stateMap(s)
	if err != nil {
		return err
	}
	defer m.Close()
	return t.pin(f, statePin, m)
}

// writeState replaces the state of a component that stays as it is.
func (t *transaction) writeState(f folder, s state) error {
	old, err := f.open()
	if err != nil {
		return err
	}
	t.after = append(t.after, old.close)
	if err := t.unpin(f, statePin, old.state); err != nil {
		return err
	}
	return t.pinState(f, s)
}

// adopt gives the folders of versions that knew no namespaces to this one, if what they are
// attached to is here: then the interface of each index has one of the names in the settings.
func (t *transaction) adopt(h *Host, s *survey) error {
	for i, name := range s.folders {
		component, cookie := splitFolder(name)
		if cookie != 0 || isMachineWide(component) || !isAttachedHere(h.folder(name)) {
			continue
		}
		to := s.here.folderOf(component)
		old, new := h.folder(name).path, h.folder(to).path
		if err := t.do(func() error { return os.Rename(old, new) },
			func() error { return os.Rename(new, old) }); err != nil {
			return fmt.Errorf("take over %s: %w", old, err)
		}
		s.folders[i] = to
	}
	return nil
}

func isAttachedHere(f folder) bool {
	st, err := f.state()
	if err != nil || st == nil {
		return false
	}
	links := map[string]link.Link{}
	if err := openPins(f, linkPrefix, link.LoadPinnedLink, links); err != nil || len(links) == 0 {
		return false
	}
	all := true
	for _, l := range links {
		p, ok := tcxOf(l)
		l.Close()
		_, isHere := p.chain()
		device, err := net.InterfaceByIndex(p.device)
		all = all && ok && isHere && err == nil &&
			slices.Contains(strings.Split(st.setting("interfaces"), ","), device.Name)
	}
	return all
}

func (t *transaction) makeFolder(f folder) error {
	if _, err := os.Stat(f.path); err == nil {
		return nil
	}
	return t.do(func() error { return os.Mkdir(f.path, 0o700) },
		func() error { return os.Remove(f.path) })
}

// pinner can be pinned: a program, a map or a link.
type pinner interface {
	Pin(path string) error
	Unpin() error
}

func (t *transaction) pin(f folder, name string, v pinner) error {
	path := f.at(name)
	return t.do(func() error {
		if err := v.Pin(path); err != nil {
			return fmt.Errorf("pin %s: %w", path, err)
		}
		return nil
	}, v.Unpin)
}

// unpin removes a pin, if it is there. v is what it pins, for undoing.
func (t *transaction) unpin(f folder, name string, v pinner) error {
	path := f.at(name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return t.do(func() error {
		if err := v.Unpin(); err != nil {
			return fmt.Errorf("remove pin %s: %w", path, err)
		}
		return nil
	}, func() error { return v.Pin(path) })
}

// replaceMaps replaces the pins of maps. The pins of maps that stay are left alone: with the last
// one the kernel would stop the map's timer, and if this process is killed, nothing pins it again.
func (t *transaction) replaceMaps(f folder, old, new map[string]*ebpf.Map) error {
	old, new = maps.Clone(old), maps.Clone(new)
	for name, m := range new {
		same, err := isSameMap(old[name], m)
		if err != nil {
			path := f.at(mapPrefix + name)
			return fmt.Errorf("compare the map at %s with the new one: %w", path, err)
		}
		if same {
			delete(old, name)
			delete(new, name)
		}
	}
	return replacePins(t, f, mapPrefix, old, new)
}

// isSameMap reports whether both are one map of the kernel; old may be nil.
func isSameMap(old, new *ebpf.Map) (bool, error) {
	if old == nil {
		return false, nil
	}
	var ids [2]ebpf.MapID
	for i, m := range []*ebpf.Map{old, new} {
		info, err := m.Info()
		if err != nil {
			return false, err
		}
		id, ok := info.ID()
		if !ok {
			return false, errors.New("maps have no IDs: this needs Linux 4.13 or later")
		}
		ids[i] = id
	}
	return ids[0] == ids[1], nil
}

// replacePins replaces the pins of a kind by new ones.
func replacePins[T pinner](t *transaction, f folder, prefix string, old, new map[string]T) error {
	if err := unpinAll(t, f, prefix, old); err != nil {
		return err
	}
	for name, v := range new {
		if strings.HasPrefix(name, ".") { // variables
			continue
		}
		if err := t.pin(f, prefix+name, v); err != nil {
			return err
		}
	}
	return nil
}

// replaceLinks updates the links that stay, attaches new ones and removes the others.
func (t *transaction) replaceLinks(f folder, o *object, old *pinned) error {
	links, err := t.renameLinks(f, o, old)
	if err != nil {
		return err
	}
	for _, a := range o.attachments {
		l := links[a.pin]
		if l == nil {
			if err := t.attach(f, a); err != nil {
				return err
			}
			continue
		}
		delete(links, a.pin)
		err := t.do(func() error { return a.update(l) }, func() error { return a.restore(l, old) })
		if err != nil {
			return fmt.Errorf("update %s: %w", f.at(linkPrefix+a.pin), err)
		}
	}
	return unpinAll(t, f, linkPrefix, links)
}

// renameLinks gives links that stay the pins of the object, and returns the links by their pins.
// Earlier versions named pins by the index of the interface, and interfaces get other names. Dead
// links, and those that are elsewhere than their pin would have it, go.
func (t *transaction) renameLinks(
	f folder, o *object, old *pinned,
) (map[string]link.Link, error) {
	ours, err := ourLinks(filepath.Dir(f.path))
	if err != nil {
		return nil, err
	}
	links := maps.Clone(old.links)
	renamed := map[string]link.Link{}
	for name, l := range old.links {
		i := slices.IndexFunc(o.attachments, func(a attachment) bool {
			return a.program == programOf(name) && !isDetached(l) && a.isAt(l, ours)
		})
		if i >= 0 && o.attachments[i].pin == name {
			continue
		}
		isWanted := slices.ContainsFunc(o.attachments, func(a attachment) bool {
			return a.pin == name
		})
		if i < 0 && !isWanted {
			continue // it goes when the others are there
		}
		if err := t.unpin(f, linkPrefix+name, l); err != nil {
			return nil, err
		}
		delete(links, name)
		if i >= 0 {
			renamed[o.attachments[i].pin] = l
		}
	}
	for name, l := range renamed {
		if err := t.pin(f, linkPrefix+name, l); err != nil {
			return nil, err
		}
		links[name] = l
	}
	return links, nil
}

func (t *transaction) attach(f folder, a attachment) error {
	ours, err := ourLinks(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	l, err := a.attach(ours)
	if err != nil {
		return fmt.Errorf("attach %s: %w", f.at(linkPrefix+a.pin), err)
	}
	t.after = append(t.after, func() { l.Close() })
	return t.pin(f, linkPrefix+a.pin, l)
}

// isDetached reports whether a link's device or cgroup is gone.
func isDetached(l link.Link) bool {
	info, err := l.Info()
	if err != nil {
		return false
	}
	if tcx := info.TCX(); tcx != nil {
		return tcx.Ifindex == 0
	}
	if cgroup := info.Cgroup(); cgroup != nil {
		return cgroup.CgroupId == 0
	}
	return false
}

// remove removes a component. Its links stay open until the end, so that this can be undone.
func (t *transaction) remove(f folder) error {
	old, err := f.open()
	if err != nil {
		return err
	}
	t.after = append(t.after, old.close)
	if err := t.unpin(f, statePin, old.state); err != nil {
		return err
	}
	if err := unpinAll(t, f, linkPrefix, old.links); err != nil {
		return err
	}
	if err := unpinAll(t, f, progPrefix, old.programs); err != nil {
		return err
	}
	if err := unpinAll(t, f, mapPrefix, old.maps); err != nil {
		return err
	}
	return t.do(func() error { return os.Remove(f.path) },
		func() error { return os.Mkdir(f.path, 0o700) })
}

func unpinAll[T pinner](t *transaction, f folder, prefix string, old map[string]T) error {
	for name, v := range old {
		if err := t.unpin(f, prefix+name, v); err != nil {
			return err
		}
	}
	return nil
}
