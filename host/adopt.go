// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host/internal/bpffs"
	"github.com/pcn-linux/pcn/host/internal/rights"
	"github.com/pcn-linux/pcn/loader"
)

// Adoption says which established connections of the calling thread's network namespace get a
// congestion control: those that fit each of the conditions that are given.
type Adoption struct {
	Control   string
	Cgroup    string         // of version 2, with all below it
	Addresses []netip.Prefix // of either end
	Ports     []uint16       // of either end
}

// Adopted counts the connections that were meant.
type Adopted struct {
	Changed uint32 `json:"changed"`
	Refused uint32 `json:"refused"` // by the kernel
}

// change says of Down what it gave back.
func (a Adopted) change() []Change {
	if a.Changed+a.Refused == 0 {
		return nil
	}
	c := Change{Component: fmt.Sprintf("%d connections", a.Changed), What: GivenBack}
	if a.Refused > 0 {
		c.Note = fmt.Sprintf("%d others keep their control: the one that they had is gone",
			a.Refused)
	}
	return []Change{c}
}

// Adopt gives existing connections a congestion control of [Host.Up] or of the kernel. The kernel
// keeps what each had until GiveBack or Down. ECN is part of the handshake: a connection without it
// has the window of CUBIC under a control that needs it.
func (h *Host) Adopt(ctx context.Context, a Adoption) (Adopted, error) {
	if _, err := loader.KernelControl(a.Control); err != nil {
		return Adopted{}, fmt.Errorf("adopt: %w", err)
	}
	unlock, err := lock(ctx, h.root)
	if err != nil {
		return Adopted{}, err
	}
	defer unlock()
	return h.adopt(a, false)
}

// GiveBack gives the adopted connections of the calling thread's network namespace the congestion
// control that they had.
func (h *Host) GiveBack(ctx context.Context) (Adopted, error) {
	if !h.hasAdopted() {
		return Adopted{}, bpffs.CheckMount(h.root)
	}
	unlock, err := lock(ctx, h.root)
	if err != nil {
		return Adopted{}, err
	}
	defer unlock()
	return h.giveBack()
}

// adoptedPin is what keeps the former controls. It is no component: it outlives Up and Down of
// other namespaces.
func (h *Host) adoptedPin() string { return h.root + "_adopted" }

func (h *Host) hasAdopted() bool {
	_, err := os.Lstat(h.adoptedPin())
	return err == nil
}

// giveBack is GiveBack under the lock.
func (h *Host) giveBack() (Adopted, error) {
	if !h.hasAdopted() {
		return Adopted{}, nil
	}
	return h.adopt(Adoption{}, true)
}

func (h *Host) adopt(a Adoption, back bool) (done Adopted, err error) {
	coll, err := h.loadAdopt(a, back)
	if err != nil {
		return done, fmt.Errorf("adopt: %w", rights.Explain(err, rights.Needed...))
	}
	defer coll.Close()
	if err := a.fill(coll); err != nil {
		return done, fmt.Errorf("adopt: %w", err)
	}
	if err := runIterator(coll.Programs["adopt"]); err != nil {
		return done, fmt.Errorf("adopt: %w", rights.Explain(err, rights.Needed...))
	}
	return done, errors.Join(coll.Variables["changed"].Get(&done.Changed),
		coll.Variables["refused"].Get(&done.Refused))
}

// loadAdopt loads the iterator, with the pinned map of former controls. It pins a new one.
func (h *Host) loadAdopt(a Adoption, back bool) (*ebpf.Collection, error) {
	spec, err := loadAdopt()
	if err != nil {
		return nil, err
	}
	var name [16]byte
	copy(name[:], a.Control)
	if err := loader.SetVariables(spec, map[string]any{"control": name, "give_back": back,
		"by_cgroup": a.Cgroup != "", "by_address": len(a.Addresses) > 0,
		"by_port": len(a.Ports) > 0}); err != nil {
		return nil, err
	}
	former, err := ebpf.LoadPinnedMap(h.adoptedPin(), nil)
	replace := map[string]*ebpf.Map{}
	switch {
	case err == nil:
		defer former.Close()
		replace["adopted"] = former
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open %s: %w", h.adoptedPin(), err)
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		MapReplacements: replace})
	if err != nil || former != nil {
		return coll, err
	}
	if err := coll.Maps["adopted"].Pin(h.adoptedPin()); err != nil {
		coll.Close()
		return nil, fmt.Errorf("keep the connections' former controls: %w", err)
	}
	return coll, nil
}

// fill writes the conditions.
func (a Adoption) fill(coll *ebpf.Collection) error {
	const mappedBits = 96
	for _, p := range a.Addresses {
		if !p.IsValid() {
			return fmt.Errorf("invalid prefix %q: want one such as 10.0.0.0/8 or 2001:db8::/32", p)
		}
		bits := uint32(p.Bits())
		if p.Addr().Is4() {
			bits += mappedBits
		}
		addr := p.Masked().Addr().As16()
		key := binary.NativeEndian.AppendUint32(nil, bits)
		if err := coll.Maps["addresses"].Put(append(key, addr[:]...), uint32(0)); err != nil {
			return fmt.Errorf("addresses %s: %w", p, err)
		}
	}
	for _, port := range a.Ports {
		if err := coll.Maps["ports"].Put(port, uint32(0)); err != nil {
			return fmt.Errorf("port %d: %w", port, err)
		}
	}
	if a.Cgroup == "" {
		return nil
	}
	if err := checkCgroup(a.Cgroup); err != nil {
		return err
	}
	return filepath.WalkDir(a.Cgroup, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.IsDir() {
			return nil // a cgroup that ended meanwhile, or a file of one
		}
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return fmt.Errorf("cgroup %s: %w", path, err)
		}
		return coll.Maps["cgroups"].Put(st.Ino, uint32(0)) // a cgroup's id
	})
}

// runIterator runs an iterator's program to its end.
func runIterator(program *ebpf.Program) error {
	it, err := link.AttachIter(link.IterOptions{Program: program})
	if err != nil {
		return fmt.Errorf("attach the iterator over sockets: %w", err)
	}
	defer it.Close()
	r, err := it.Open()
	if err != nil {
		return fmt.Errorf("open the iterator over sockets: %w", err)
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("go through the sockets: %w", err)
	}
	return nil
}
