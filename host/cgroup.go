// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/loader"
)

const cgroupPrefix = "cgroup_" // of its component

// Cgroup sets the congestion control of a cgroup.
type Cgroup struct {
	// Path is its folder, such as /sys/fs/cgroup/storage.slice. Required.
	Path string `yaml:"path"`
	// Control is the congestion control of its new connections, from PCN or from the kernel.
	// Required.
	Control string `yaml:"control"`
}

func (c *Config) validateCgroup(d *config.Decoder, path string, g Cgroup) {
	if !filepath.IsAbs(g.Path) {
		d.Fail(path+".path", fmt.Sprintf("%q is not the path of a cgroup", g.Path),
			"write /sys/fs/cgroup/storage.slice")
	}
	if g.Control == "" || len(g.Control) > 15 {
		d.Fail(path+".control", fmt.Sprintf("%q can't be a congestion control", g.Control),
			"write pcn")
	}
	first := slices.IndexFunc(c.Cgroups,
		func(o Cgroup) bool { return filepath.Clean(o.Path) == filepath.Clean(g.Path) })
	if fmt.Sprintf("cgroups[%d]", first) != path {
		d.Fail(path+".path", fmt.Sprintf("duplicate cgroup %q", g.Path), "keep one of them")
	}
}

// cgroupComponent returns the component of a cgroup, named by its inode, which is its id.
func cgroupComponent(g Cgroup) (*component, error) {
	var st unix.Stat_t
	if err := unix.Stat(g.Path, &st); err != nil {
		return nil, notReady{fmt.Errorf("cgroup %s: %w", g.Path, err)}
	}
	return &component{
		name:     fmt.Sprintf("%s%d", cgroupPrefix, st.Ino),
		settings: []Setting{{"path", g.Path}, {"control", g.Control}},
		load: func(_ map[string]*ebpf.Map, controls map[string]*loader.Control) (*object, error) {
			if controls[g.Control] == nil {
				if _, err := loader.KernelControl(g.Control); err != nil {
					return nil, fmt.Errorf("cgroup %s: %w", g.Path, err)
				}
			}
			return chooseObject(g)
		},
	}, nil
}

func chooseObject(g Cgroup) (*object, error) {
	spec, err := loadChoose()
	if err != nil {
		return nil, err
	}
	var name [16]byte
	copy(name[:], g.Control)
	if err := spec.Variables["control"].Set(name); err != nil {
		return nil, fmt.Errorf("cgroup %s: set the control: %w", g.Path, err)
	}
	fingerprint := loader.Fingerprint(spec)
	types, err := loader.MarshalTypes(spec)
	if err != nil {
		return nil, fmt.Errorf("cgroup %s: %w", g.Path, err)
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("load the program that chooses congestion controls: %w", err)
	}
	return &object{
		fingerprint: fingerprint, programs: coll.Programs, maps: coll.Maps, types: types,
		close: func() error { coll.Close(); return nil },
		attachments: []attachment{{
			pin: "choose",
			attach: func(linkIDs) (link.Link, error) {
				l, err := link.AttachCgroup(link.CgroupOptions{Path: g.Path,
					Attach: ebpf.AttachCGroupSockOps, Program: coll.Programs["choose"]})
				return l, explainSockOps(g.Path, err)
			},
			update: func(l link.Link) error { return l.Update(coll.Programs["choose"]) },
			restore: func(l link.Link,
				old *pinned) error {
				return l.Update(old.programs["choose"])
			},
		}},
	}, nil
}

// explainSockOps names the cgroup whose program lets no other run beside it. The kernel says no
// more than that it is not permitted, which root would not understand.
func explainSockOps(path string, err error) error {
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	for at := path; checkCgroup(at) == nil; at = filepath.Dir(at) {
		programs, queryErr := sockOpsAt(at)
		if queryErr != nil || len(programs) == 0 {
			continue
		}
		return fmt.Errorf("cgroup %s has the sock_ops program %d (bpftool prog show id %d), which "+
			"lets no other run beside it: attach that one with BPF_F_ALLOW_MULTI (bpftool cgroup "+
			"attach ... multi), or name a cgroup that is not %s nor below it", at, programs[0],
			programs[0], at)
	}
	return err
}

// sockOpsAt returns the sock_ops programs that are attached to a cgroup itself.
func sockOpsAt(path string) (programs []ebpf.ProgramID, err error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	found, err := link.QueryPrograms(link.QueryOptions{
		Target: int(dir.Fd()), Attach: ebpf.AttachCGroupSockOps})
	if err != nil {
		return nil, err
	}
	for _, p := range found.Programs {
		programs = append(programs, p.ID)
	}
	return programs, nil
}

// checkCgroups fails where Up would fail to attach.
func (c *Config) checkCgroups() error {
	for _, g := range c.Cgroups {
		if err := checkCgroup(g.Path); err != nil {
			return err
		}
	}
	return nil
}

func checkCgroup(path string) error {
	var fsinfo unix.Statfs_t
	if err := unix.Statfs(path, &fsinfo); err != nil {
		return fmt.Errorf("cgroup %s: %w", path, err)
	}
	if fsinfo.Type != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("cgroup %s is no cgroup of version 2: want a folder such as "+
			"/sys/fs/cgroup/storage.slice", path)
	}
	return nil
}
