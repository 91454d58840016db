// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host/internal/bpffs"
	"github.com/pcn-linux/pcn/host/internal/rights"
	"github.com/pcn-linux/pcn/internal/flock"
	"github.com/pcn-linux/pcn/loader"
)

// DefaultRoot is where PCN is pinned.
const DefaultRoot = bpffs.DefaultRoot

// Each component has a folder with its pinned programs, maps and links, whose names have these
// prefixes, and its state. The state is missing while the component is being changed.
const (
	progPrefix = "prog_"
	mapPrefix  = "map_"
	linkPrefix = "link_"
	statePin   = "state"
)

// Setting is one parameter of a running component, with the key that the configuration uses.
type Setting struct {
	Key   string `json:"key"`   // its name in host files
	Value string `json:"value"` // as host files have it
}

// state describes a component: its settings and the fingerprint of its programs.
type state struct {
	Settings    []Setting `json:"settings"`
	Fingerprint string    `json:"fingerprint"`
	// Namespaces are that in which the component is attached, or those that want a component of
	// the machine. Earlier versions wrote none.
	Namespaces []Namespace `json:"namespaces,omitempty"`
	// Types are those of the component's maps, of [loader.MarshalTypes]. Earlier versions wrote
	// none.
	Types []byte `json:"types,omitempty"`
}

// mapTypes returns the types of the component's maps; none if the state has none.
func (s *state) mapTypes() (loader.MapTypes, error) {
	if s == nil {
		return nil, nil
	}
	return loader.UnmarshalTypes(s.Types)
}

// cookies returns the sorted cookies of its namespaces.
func (s state) cookies() []uint64 {
	var cookies []uint64
	for _, n := range s.Namespaces {
		cookies = append(cookies, n.Cookie)
	}
	slices.Sort(cookies)
	return cookies
}

// runs reports whether what runs is that of another state, for whatever namespace.
func (s state) runs(o state) bool {
	return s.Fingerprint == o.Fingerprint && slices.Equal(s.Settings, o.Settings)
}

func (s state) setting(key string) string { return settingIn(s.Settings, key) }

// settingIn returns the value of a setting, "" if it is not there.
func settingIn(settings []Setting, key string) string {
	for _, one := range settings {
		if one.Key == key {
			return one.Value
		}
	}
	return ""
}

// lock excludes other changes until unlock is called or this process ends.
func lock(ctx context.Context, root string) (unlock func(), err error) {
	parent := filepath.Dir(root)
	if err := bpffs.CheckMount(root); err != nil {
		return nil, err
	}
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	held, err := lockMounted(ctx, parent)
	if errors.Is(err, flock.ErrHeld) {
		return nil, fmt.Errorf("lock %s: another pcn host is changing this host: wait for it",
			parent)
	}
	if err != nil {
		return nil, rights.Explain(err, rights.Needed...)
	}
	return func() {
		// Neither matters to the caller: what stays is empty, and nothing was written to the lock.
		_, _ = bpffs.Drop(parent), held.Release()
	}, nil
}

// lockMounted locks the BPF file system, which it mounts if it is not there. Another that drops it
// meanwhile leaves a lock of what lies below: then it tries again.
func lockMounted(ctx context.Context, dir string) (*flock.Lock, error) {
	for {
		if err := bpffs.Have(dir); err != nil {
			return nil, err
		}
		var before, after unix.Stat_t
		if err := unix.Stat(dir, &before); err != nil {
			return nil, fmt.Errorf("look for the BPF file system: %w", err)
		}
		held, err := flock.Wait(ctx, dir)
		if err != nil {
			return nil, err
		}
		if unix.Stat(dir, &after) == nil && before.Dev == after.Dev {
			return held, nil
		}
		_ = held.Release() // nothing was written to it
	}
}

// checkOwner fails if others than root or this user may change what is in PCN's folder. A BPF file
// system that is mounted without a mode lets every user make folders and symbolic links in it, and
// so lead pcn to the programs and links of others.
func checkOwner(root string) error {
	info, err := os.Lstat(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return rights.Explain(fmt.Errorf("look for pins: %w", err), rights.Needed...)
	}
	user, isTheirs := OwnedByAnother(info)
	if info.IsDir() && !isTheirs && info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	return fmt.Errorf("%s is %v of user %d: want a folder that only root may change, as pcn host "+
		"up makes it: find out who made it, rm -r it, and chmod 700 %s", root, info.Mode(), user,
		filepath.Dir(root))
}

// OwnedByAnother returns the user that a file belongs to, and whether that is neither root nor the
// user of this process.
func OwnedByAnother(info fs.FileInfo) (user uint32, is bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, st.Uid != 0 && int(st.Uid) != os.Geteuid()
}

// folder is the folder of a component's pins.
type folder struct{ path string }

// pins returns the names of the pins with a prefix; none if the folder does not exist.
func (f folder) pins(prefix string) ([]string, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, rights.Explain(fmt.Errorf("read pins: %w", err), rights.Needed...)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), prefix); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (f folder) at(name string) string { return filepath.Join(f.path, name) }

// state reads the component's state; nil if a change of it was interrupted.
func (f folder) state() (*state, error) {
	m, err := ebpf.LoadPinnedMap(f.at(statePin), &ebpf.LoadPinOptions{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explainPin(f.at(statePin), err)
	}
	defer m.Close()
	text, err := m.LookupBytes(uint32(0))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.at(statePin), err)
	}
	var s state
	if err := json.Unmarshal([]byte(strings.TrimRight(string(text), "\x00")), &s); err != nil {
		return nil, fmt.Errorf("read %s, of another version of pcn: %w", f.at(statePin), err)
	}
	return &s, nil
}

// stateMap returns a map that holds the state, for pinning.
func stateMap(s state) (*ebpf.Map, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	size := (len(text) + 63) &^ 63
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "pcn_state", Type: ebpf.Array, KeySize: 4,
		ValueSize: uint32(size), MaxEntries: 1})
	if err != nil {
		return nil, fmt.Errorf("make the state's map: %w", err)
	}
	if err := m.Put(uint32(0), append(text, make([]byte, size-len(text))...)); err != nil {
		m.Close()
		return nil, fmt.Errorf("write the state's map: %w", err)
	}
	return m, nil
}

// pinned holds a component's opened pins by name.
type pinned struct {
	programs map[string]*ebpf.Program
	maps     map[string]*ebpf.Map
	links    map[string]link.Link
	state    *ebpf.Map
}

// open opens all of a component's pins.
func (f folder) open() (*pinned, error) {
	p := &pinned{map[string]*ebpf.Program{}, map[string]*ebpf.Map{}, map[string]link.Link{}, nil}
	err := openPins(f, progPrefix, ebpf.LoadPinnedProgram, p.programs)
	if err == nil {
		err = openPins(f, mapPrefix, ebpf.LoadPinnedMap, p.maps)
	}
	if err == nil {
		err = openPins(f, linkPrefix, link.LoadPinnedLink, p.links)
	}
	if err == nil {
		p.state, err = ebpf.LoadPinnedMap(f.at(statePin), nil)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func openPins[T any](f folder, prefix string, load func(string, *ebpf.LoadPinOptions) (T, error),
	into map[string]T) error {
	names, err := f.pins(prefix)
	if err != nil {
		return err
	}
	for _, name := range names {
		v, err := load(f.at(prefix+name), nil)
		if err != nil {
			return explainPin(f.at(prefix+name), err)
		}
		into[name] = v
	}
	return nil
}

func explainPin(path string, err error) error {
	return rights.Explain(fmt.Errorf("open %s: %w", path, err), rights.Needed...)
}

func (p *pinned) close() {
	for _, v := range p.programs {
		v.Close()
	}
	for _, v := range p.maps {
		v.Close()
	}
	for _, v := range p.links {
		v.Close()
	}
	if p.state != nil {
		p.state.Close()
	}
}
