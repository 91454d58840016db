// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Programs of an interface run one after the other, and one that returns TCX_PASS hides the packet
// from those behind it. Cilium's return that. So what pcn attaches stands before all of others.

// chain is the programs at an interface and direction, in the order in which they run.
type chain []link.AttachedProgram

// chainAt reads a chain of the calling thread's network namespace.
func chainAt(device int, where ebpf.AttachType) (chain, error) {
	found, err := link.QueryPrograms(link.QueryOptions{Target: device, Attach: where})
	if err != nil {
		return nil, fmt.Errorf("look at the programs of interface %d: %w", device, err)
	}
	return found.Programs, nil
}

// indexOf returns where in the chain a link is; -1 if it is not there.
func (c chain) indexOf(id link.ID) int {
	return slices.IndexFunc(c, func(p link.AttachedProgram) bool {
		at, ok := p.LinkID()
		return ok && at == id
	})
}

// strangers returns the programs of others that run before a link of ours.
func (c chain) strangers(id link.ID, ours linkIDs) []ebpf.ProgramID {
	var before []ebpf.ProgramID
	for i := range c {
		at, ok := c[i].LinkID()
		if ok && at == id {
			return before
		}
		if !ok || !ours[at] {
			before = append(before, c[i].ID)
		}
	}
	return nil // it is not in this chain
}

// anchor returns where to attach: at the head, or behind those of ours that stand there.
func (c chain) anchor(wanted link.Anchor, ours linkIDs) link.Anchor {
	if wanted == link.Head() {
		return wanted
	}
	last := link.Head()
	for i := range c {
		at, ok := c[i].LinkID()
		if !ok || !ours[at] {
			break
		}
		last = link.AfterLinkByID(at)
	}
	return last
}

// linkIDs are the links that are pinned by pcn.
type linkIDs map[link.ID]bool

// ourLinks returns the links that are pinned in the folders of all components.
func ourLinks(root string) (linkIDs, error) {
	folders, err := folder{root}.pins("")
	if err != nil {
		return nil, err
	}
	ours := linkIDs{}
	for _, name := range folders {
		links := map[string]link.Link{}
		err := openPins(folder{filepath.Join(root, name)}, linkPrefix, link.LoadPinnedLink, links)
		for _, l := range links {
			if info, infoErr := l.Info(); infoErr == nil {
				ours[info.ID] = true
			}
			l.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a change goes on
			return nil, err
		}
	}
	return ours, nil
}

// tcxPlace is where a link of a tc program is.
type tcxPlace struct {
	id     link.ID
	device int
	where  ebpf.AttachType
}

// tcxOf returns where a tc program is attached; false if its device is gone, or it is of another
// kind.
func tcxOf(l link.Link) (tcxPlace, bool) {
	info, err := l.Info()
	if err != nil {
		return tcxPlace{}, false
	}
	tcx := info.TCX()
	if tcx == nil || tcx.Ifindex == 0 {
		return tcxPlace{}, false
	}
	return tcxPlace{info.ID, int(tcx.Ifindex), ebpf.AttachType(tcx.AttachType)}, true
}

// chain returns the chain that a link is in. The index of its device says little: a device that was
// moved to another network namespace may have the index of one that is here. So the link must be
// among the programs of the device here; if it is not, isHere is false.
func (p tcxPlace) chain() (c chain, isHere bool) {
	c, err := chainAt(p.device, p.where)
	if errors.Is(err, fs.ErrPermission) {
		return nil, true // as far as is known
	}
	return c, err == nil && c.indexOf(p.id) >= 0
}

// hidden says what is wrong with the place of a link; empty if nothing is.
func (p tcxPlace) hidden(ours linkIDs) string {
	c, isHere := p.chain()
	if !isHere {
		return ""
	}
	before := c.strangers(p.id, ours)
	if len(before) == 0 {
		return ""
	}
	ids := strings.Trim(fmt.Sprint(before), "[]")
	return fmt.Sprintf("programs of others run before it and may hide packets from it (bpftool "+
		"prog show id, of %s)", ids)
}
