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
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/netns-lab/flock"
)

// DefaultRoot is where PCN is pinned.
const DefaultRoot = "/sys/fs/bpf/pcn"

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
	Key   string `json:"key"`
	Value string `json:"value"`
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
	if err := checkMount(root); err != nil {
		return nil, err
	}
	if err := haveBPFFS(parent); err != nil {
		return nil, err
	}
	const patience = 20 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	held, err := flock.Wait(ctx, parent)
	if errors.Is(err, flock.ErrHeld) {
		return nil, fmt.Errorf("lock %s: another pcn host is changing this host: wait for it",
			parent)
	}
	if err != nil {
		return nil, explainRefusal(err, neededCapabilities...)
	}
	return func() { _ = held.Release() }, nil // nothing was written to it
}

// mountCommand mounts a BPF file system that only root may use. Without a mode all users may.
func mountCommand(dir string) string { return "mount -t bpf -o mode=0700 bpf " + dir }

// haveBPFFS mounts a BPF file system at dir, unless one is there.
func haveBPFFS(dir string) error {
	var fsinfo unix.Statfs_t
	err := unix.Statfs(dir, &fsinfo)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s: want a BPF file system there: containers have none "+
			"unless they are given one, such as by systemd-nspawn --bind=%s: %w", dir, dir, err)
	}
	if err != nil {
		return fmt.Errorf("look for the BPF file system: %s: %w", dir, err)
	}
	if fsinfo.Type == unix.BPF_FS_MAGIC {
		return nil
	}
	if err := unix.Mount("bpf", dir, "bpf", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		"mode=0700"); err != nil {
		return explainRefusal(fmt.Errorf("no BPF file system at %s, and it can't be mounted (%w): "+
			"%s", dir, err, mountCommand(dir)), mounting)
	}
	return nil
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
		return explainRefusal(fmt.Errorf("look for pins: %w", err), neededCapabilities...)
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

// checkMount fails if the BPF file system would go with this process's mounts: ip netns exec mounts
// a /sys of its own, so what is pinned there is gone when it ends.
func checkMount(root string) error {
	if root != DefaultRoot {
		return nil // someone mounted it for us
	}
	parent := filepath.Dir(root)
	var mine, first unix.Stat_t
	var fsinfo unix.Statfs_t
	err := errors.Join(unix.Stat(parent, &mine), unix.Statfs(parent, &fsinfo))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing can be pinned there, or have been
	}
	if err != nil {
		return fmt.Errorf("look for the BPF file system: %s: %w", parent, err)
	}
	isOwn := ownMounts()
	if fsinfo.Type == unix.BPF_FS_MAGIC {
		// Services have mounts of their own too, but with the BPF file system of process 1.
		if unix.Stat("/proc/1/root"+parent, &first) == nil {
			isOwn = first.Dev != mine.Dev
		}
	}
	if !isOwn {
		return nil
	}
	return fmt.Errorf("the mounts of this process are its own, so what is pinned in %s would be "+
		"gone with it: ip netns exec does that; run it outside, with --netns NAME, or with "+
		"nsenter --net=/run/netns/NAME", parent)
}

// ownMounts reports whether this process has other mounts than process 1. Where that may not be
// looked at, it knows those of ip netns exec only.
func ownMounts() bool {
	mine, err := os.Readlink("/proc/self/ns/mnt")
	first, firstErr := os.Readlink("/proc/1/ns/mnt")
	if err == nil && firstErr == nil {
		return mine != first
	}
	mounts, err := procfs.GetMounts()
	return err == nil && slices.ContainsFunc(mounts, isOfNetnsExec)
}

// isOfNetnsExec reports whether ip netns exec made a mount: that of /sys has the name of the
// network namespace for its source.
func isOfNetnsExec(m *procfs.MountInfo) bool {
	name := m.Source
	if m.MountPoint != "/sys" || m.FSType != "sysfs" || name == "" || strings.Contains(name, "/") {
		return false
	}
	_, err := os.Stat(filepath.Join(netnsFolders[0], name))
	return err == nil
}

// folder is the folder of a component's pins.
type folder struct{ path string }

// pins returns the names of the pins with a prefix; none if the folder does not exist.
func (f folder) pins(prefix string) ([]string, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, explainRefusal(fmt.Errorf("read pins: %w", err), neededCapabilities...)
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
	return explainRefusal(fmt.Errorf("open %s: %w", path, err), neededCapabilities...)
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
