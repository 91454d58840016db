// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host/internal/bpffs"
	"github.com/pcn-linux/pcn/host/internal/rights"
	"github.com/pcn-linux/pcn/loader"
)

// Host is this machine in the network namespace of the calling thread.
type Host struct{ root string }

// New returns the host whose pins are under [DefaultRoot].
func New() *Host { return At(DefaultRoot) }

// At returns the host whose pins are in another folder of a BPF file system. Hosts of one machine
// share the names of congestion controls.
func At(root string) *Host { return &Host{filepath.Clean(root)} }

// Root returns the folder of its pins.
func (h *Host) Root() string { return h.root }

func (h *Host) folder(name string) folder { return folder{filepath.Join(h.root, name)} }

// components returns the names of the pinned components, whole or not. It fails where there are
// none because this process has other mounts than those who pin.
func (h *Host) components() ([]string, error) {
	if err := checkOwner(h.root); err != nil {
		return nil, err
	}
	names, err := folder{h.root}.pins("")
	if err == nil && len(names) == 0 {
		err = bpffs.CheckMount(h.root)
	}
	slices.Sort(names)
	return names, err
}

// Change is what Up or Down did to a component.
type Change struct {
	Component string `json:"component"`
	What      string `json:"what"`
	// Namespace is the network namespace where it was done; empty in that of the caller, and for
	// what is the machine's.
	Namespace string `json:"namespace,omitempty"`
	// Note says what else there is to know or to do.
	Note string `json:"note,omitempty"`
}

// The kinds of change.
const (
	Added   = "added"
	Changed = "changed"
	Kept    = "kept"
	Removed = "removed"

	// Reselected is a control that a namespace had chosen by sysctl, and now has anew.
	Reselected = "selected again"
	// NotReselected could not be done.
	NotReselected = "not selected again"
	// GivenBack are connections that Adopt had changed.
	GivenBack = "given back"
	// StillChosen is a control that was removed and that a namespace's sysctl names.
	StillChosen = "still chosen"
)

// IsProblem reports whether there is something left to do.
func (c Change) IsProblem() bool { return c.What == NotReselected || c.What == StillChosen }

// Up makes the host run what the configuration asks for, in the network namespace of the calling
// thread. It changes running components in place and removes those that are no longer configured.
// Connections survive, with the programs of their congestion control and their entry in the flow
// table. If Up fails, the host is as it was.
//
// Controls and cgroups are the machine's: those that another namespace's Up asked for stay.
// Namespaces that chose a control by sysctl get its new programs.
func (h *Host) Up(ctx context.Context, c *Config) (changes []Change, err error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	if changes, err = h.up(ctx, c); err != nil {
		return nil, err
	}
	return append(changes, reselect(changes)...), h.useKey(key)
}

func (h *Host) up(ctx context.Context, c *Config) (changes []Change, err error) {
	if err := HaveKernel(); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, h.root)
	if err != nil {
		return nil, err
	}
	defer unlock()
	components, err := h.plan(ctx, c)
	if err != nil {
		return nil, err
	}
	var t transaction
	defer func() { err = t.end(err) }()
	if err := t.makeFolder(folder{h.root}); err != nil {
		return nil, fmt.Errorf("make %s: %w", h.root, err)
	}
	s, err := h.survey()
	if err != nil {
		return nil, err
	}
	if err := t.adopt(h, s); err != nil {
		return nil, err
	}
	objects, err := h.load(&t, s, components)
	if err != nil {
		return nil, err
	}
	for i, one := range components {
		change, err := h.applyComponent(&t, s, one, objects[i])
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	removed, err := h.removeAll(&t, s, s.unwanted(components))
	if err != nil {
		return nil, err
	}
	return append(changes, removed...), h.syncClocks()
}

// unwanted returns the folders of this namespace, and of the machine, that are not configured. This
// namespace's switch ports are not among them: pcn host switch has them.
func (s *survey) unwanted(components []component) []string {
	return slices.DeleteFunc(s.mine(), func(folder string) bool {
		return s.isPortHere(folder) || slices.ContainsFunc(components, func(c component) bool {
			return c.folderIn(s.here) == folder
		})
	})
}

// survey is what there is before a change.
type survey struct {
	here    Namespace
	folders []string
	alive   map[uint64]Namespace // by cookie: those that have a file or a process
	root    *Host
}

func (h *Host) survey() (*survey, error) {
	folders, err := h.components()
	if err != nil {
		return nil, err
	}
	all, _, err := allNamespaces()
	if err != nil {
		return nil, err
	}
	s := &survey{here: all[0], folders: folders, alive: map[uint64]Namespace{}, root: h}
	for _, n := range all {
		s.alive[n.Cookie] = n
	}
	return s, nil
}

// mine returns the folders that an Up or Down here may change: those of this namespace, those of
// namespaces that are gone, and what is the machine's.
func (s *survey) mine() []string {
	var names []string
	for _, name := range s.folders {
		component, cookie := splitFolder(name)
		isHere := cookie == s.here.Cookie
		if isHere || isMachineWide(component) || cookie != 0 && s.isGone(name, cookie) {
			names = append(names, name)
		}
	}
	return names
}

// isPortHere reports whether a folder is that of a switch port of this namespace.
func (s *survey) isPortHere(folder string) bool {
	_, cookie := splitFolder(folder)
	return isSwitchPort(folder) && cookie == s.here.Cookie
}

// isGone reports whether the namespace of a folder is gone: nothing shows it, and neither are there
// the devices.
func (s *survey) isGone(name string, cookie uint64) bool {
	if _, ok := s.alive[cookie]; ok {
		return false
	}
	links := map[string]link.Link{}
	if err := openPins(s.root.folder(name), linkPrefix, link.LoadPinnedLink, links); err != nil {
		return false
	}
	gone := true
	for pin, l := range links {
		isAtNone := strings.HasPrefix(pin, qdiscPin)
		gone = gone && (isAtNone || isDetached(l))
		l.Close()
	}
	return gone
}

// others returns the namespaces beside this one that want a component of the machine.
func (s *survey) others(st *state) []Namespace {
	var others []Namespace
	if st == nil {
		return nil
	}
	for _, n := range st.Namespaces {
		isPresent := func(name string) bool {
			_, cookie := splitFolder(name)
			return cookie == n.Cookie && !s.isGone(name, cookie)
		}
		_, isAlive := s.alive[n.Cookie]
		if n.Cookie != s.here.Cookie && (isAlive || slices.ContainsFunc(s.folders, isPresent)) {
			others = append(others, n)
		}
	}
	return others
}

func namesOf(namespaces []Namespace) string {
	var names []string
	for _, n := range namespaces {
		names = append(names, n.String())
	}
	return strings.Join(names, ", ")
}

// removal is a component to remove, or one that other namespaces keep.
type removal struct {
	Change
	folder folder
	stays  *state // nil if it goes
}

// removals says what becomes of folders that this namespace does not want. What is the machine's
// stays if other namespaces want it.
func (h *Host) removals(s *survey, folders []string) ([]removal, error) {
	var all []removal
	for _, name := range inRemovalOrder(folders) {
		component, cookie := splitFolder(name)
		one := removal{Change{Component: component, What: Removed}, h.folder(name), nil}
		if cookie != 0 && cookie != s.here.Cookie {
			one.Namespace = h.nameOf(name, cookie)
		}
		st, err := one.folder.state()
		if err != nil {
			return nil, err
		}
		if others := s.others(st); isMachineWide(component) && len(others) > 0 {
			if !slices.Contains(st.cookies(), s.here.Cookie) {
				continue // it never was this one's
			}
			one.stays = &state{st.Settings, st.Fingerprint, others, st.Types}
			one.What = Kept
			one.Note = "network namespaces that use it: " + namesOf(others)
		}
		all = append(all, one)
	}
	return all, nil
}

// removeAll removes folders, as removals says.
func (h *Host) removeAll(t *transaction, s *survey, folders []string) ([]Change, error) {
	all, err := h.removals(s, folders)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, one := range all {
		if one.stays != nil {
			err = t.writeState(one.folder, *one.stays)
		} else {
			err = t.remove(one.folder)
		}
		if err != nil {
			return nil, err
		}
		changes = append(changes, one.Change)
	}
	return changes, nil
}

// nameOf returns the name of a folder's namespace, from its state.
func (h *Host) nameOf(folder string, cookie uint64) string {
	st, err := h.folder(folder).state()
	if err == nil && st != nil && len(st.Namespaces) > 0 {
		return st.Namespaces[0].String()
	}
	return fmt.Sprintf("with cookie %d", cookie)
}

// HaveKernel fails if this kernel lacks a feature, such as links of struct_ops (6.4) or tcx (6.6).
func HaveKernel() error {
	// First the rights: without them the kernel refuses what the other probes try.
	if err := rights.Have(); err != nil {
		return err
	}
	// Before 5.11 maps were locked memory, and the limit hid what such a kernel lacks. Package
	// rlimit of cilium/ebpf tells kernels apart, by a map that each pcn would make at its start.
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY,
		Max: unix.RLIM_INFINITY})
	for _, have := range []func() error{loader.HavePermission, loader.HaveBTF,
		loader.HaveTCPStructOps, loader.HaveStructOpsLink, loader.HaveTCX} {
		if err := have(); errors.Is(err, loader.ErrNotSupported) {
			return fmt.Errorf("%w: boot Linux 6.6 or later with BTF: see pcn docs kernels", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// load loads all components before anything is changed.
func (h *Host) load(t *transaction, s *survey, components []component) ([]*object, error) {
	controls := map[string]*loader.Control{}
	var objects []*object
	for _, one := range components {
		old := map[string]*ebpf.Map{}
		f := h.folder(one.folderIn(s.here))
		if err := openPins(f, mapPrefix, ebpf.LoadPinnedMap, old); err != nil {
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
func (h *Host) applyComponent(
	t *transaction, s *survey, c component, o *object,
) (Change, error) {
	f := h.folder(c.folderIn(s.here))
	d, err := s.decide(f, c, o)
	if err != nil {
		return Change{}, err
	}
	switch {
	case d.What != Kept:
		err = t.apply(f, c, o, d.want)
	case !slices.Equal(d.now.cookies(), d.want.cookies()),
		!bytes.Equal(d.now.Types, d.want.Types):
		err = t.writeState(f, d.want)
	}
	return d.Change, err
}

// decision is what to do with a component.
type decision struct {
	Change
	now  *state // nil if there is none
	want state
}

// decide compares a component with what is pinned in its folder.
func (s *survey) decide(f folder, c component, o *object) (d decision, err error) {
	if d.now, err = f.state(); err != nil {
		return d, err
	}
	d.want = state{c.settings, o.fingerprint, []Namespace{s.here}, o.types}
	if isMachineWide(c.name) {
		d.want.Namespaces = append(d.want.Namespaces, s.others(d.now)...)
	}
	d.Change = Change{Component: c.name, What: Changed}
	if others := d.want.Namespaces[1:]; len(others) > 0 {
		d.Note = "network namespaces that use it too: " + namesOf(others)
	}
	if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
		d.What = Added
	}
	if d.now == nil || !d.now.runs(d.want) {
		return d, nil
	}
	same, err := attached(f, o)
	if same {
		d.What = Kept
	}
	return d, err
}

// attached reports whether the folder has exactly the object's links, and all of them are alive.
func attached(f folder, o *object) (bool, error) {
	ours, err := ourLinks(filepath.Dir(f.path))
	if err != nil {
		return false, err
	}
	p, err := f.open()
	if err != nil {
		return false, err
	}
	defer p.close()
	for _, a := range o.attachments {
		if l := p.links[a.pin]; l == nil || isDetached(l) || !a.isAt(l, ours) {
			return false, nil
		}
	}
	return len(p.links) == len(o.attachments), nil
}

// inRemovalOrder sorts components for removal: those that use a control come before the control.
func inRemovalOrder(names []string) []string {
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int {
		return boolToInt(strings.HasPrefix(a, ControlPrefix)) - boolToInt(strings.HasPrefix(b,
			ControlPrefix))
	})
	return names
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Down removes what the Ups in the network namespace of the calling thread installed. Controls and
// cgroups that another namespace's Up asked for stay. Connections keep their congestion control;
// new ones get the system's default.
// Those that Adopt changed get back what they had.
func (h *Host) Down(ctx context.Context) ([]Change, error) {
	return h.takeDown(ctx, func(s *survey) []string { return s.mine() }, removePorts)
}

// DownAll removes everything, in all network namespaces.
func (h *Host) DownAll(ctx context.Context) ([]Change, error) {
	return h.takeDown(ctx, func(s *survey) []string {
		s.alive = map[uint64]Namespace{}
		all := s.folders
		s.folders = nil // so that nobody wants what is the machine's
		return all
	}, removeAllPorts)
}

// takeDown removes folders, and after them the veth pairs of switch ports.
func (h *Host) takeDown(
	ctx context.Context, which func(*survey) []string, removePorts func() error,
) (changes []Change, err error) {
	if changes, err = h.down(ctx, which, removePorts); err != nil {
		return nil, err
	}
	return append(changes, reselect(changes)...), nil
}

func (h *Host) down(
	ctx context.Context, which func(*survey) []string, removePorts func() error,
) (changes []Change, err error) {
	if _, err := os.Stat(h.root); errors.Is(err, fs.ErrNotExist) {
		return nil, bpffs.CheckMount(h.root)
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
	s, err := h.survey()
	if err != nil {
		return nil, err
	}
	if err := t.adopt(h, s); err != nil {
		return nil, err
	}
	back, err := h.giveBack()
	if err != nil {
		return nil, err
	}
	if changes, err = h.removeAll(&t, s, which(s)); err != nil {
		return nil, err
	}
	return append(changes, back.change()...), h.removeRoot()
}

// removeRoot removes the folder of all components, if none is left, and then what adopted
// connections had.
func (h *Host) removeRoot() error {
	err := os.Remove(h.root)
	if err == nil {
		err = os.Remove(h.adoptedPin())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("remove %s: %w", h.root, err)
	}
	return nil
}
