// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/image"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/loader/ns"
)

// hostRoot is the file system that programs of a host see: this machine's, which they can't write,
// below a layer in memory.
type hostRoot struct {
	node  namespace
	name  string
	dir   string
	image *image.Image // in place of this machine's files; nil: none
}

// rootsFolder is where file systems of hosts are, in memory.
const rootsFolder = "/run/pcn-roots"

// hostRoots are the file systems of the hosts that programs have run on.
type hostRoots struct {
	fabric *fabric
	byHost map[string]*hostRoot // and image
	lower  map[string]string    // where each image, and this machine, is mounted
}

// of returns the file system of a host, with an image or, if it is nil, this machine's files.
func (h *hostRoots) of(host string, i *image.Image) (*hostRoot, error) {
	machine := &image.Image{Root: "/"}
	if i != nil {
		machine = i
	}
	key := host + ":" + machine.Root
	if r := h.byHost[key]; r != nil {
		return r, nil
	}
	f := h.fabric
	if !f.plan.virtualTime {
		return nil, errors.New("programs need User Mode Linux: run pcn setup, and pcn " +
			"without --native and --kernel")
	}
	if h.byHost == nil {
		h.byHost, h.lower = map[string]*hostRoot{}, map[string]string{}
	}
	lower, ok := h.lower[machine.Root]
	if !ok {
		lower = filepath.Join(rootsFolder, "lower", fmt.Sprint(len(h.lower)))
		const flags = unix.MS_RDONLY | unix.MS_NODEV
		if err := mountAt("none", lower, "hostfs", flags, machine.Root); err != nil {
			return nil, err
		}
		h.lower[machine.Root] = lower
	}
	r := &hostRoot{
		node: f.nodes[f.plan.number[host]], name: host, image: i,
		dir: filepath.Join(rootsFolder, host, fmt.Sprint(len(h.byHost)), "root"),
	}
	if err := r.mount(lower, f.plan); err != nil {
		return nil, fmt.Errorf("file system of host %s: %w", host, err)
	}
	h.byHost[key] = r
	return r, nil
}

func mountAt(source, at, kind string, flags uintptr, options string) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return fmt.Errorf("make a folder to mount at: %w", err)
	}
	if err := unix.Mount(source, at, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s at %s: %w", kind, at, err)
	}
	return nil
}

// mount puts the layers together, and on them what differs from this machine.
func (r *hostRoot) mount(machine string, p *plan) error {
	upper, work := filepath.Join(r.dir, "../upper"), filepath.Join(r.dir, "../work")
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make a layer: %w", err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", machine, upper, work)
	if err := mountAt("overlay", r.dir, "overlay", 0, options); err != nil {
		return err
	}
	for _, m := range [][2]string{
		{"proc", "proc"}, {"devtmpfs", "dev"}, {"devpts", "dev/pts"}, {"tmpfs", "dev/shm"},
		{"tmpfs", "tmp"}, {"tmpfs", "run"}, {"tmpfs", "var/tmp"},
	} {
		if err := mountAt(m[0], r.path(m[1]), m[0], 0, ""); err != nil {
			return err
		}
	}
	for _, link := range [][2]string{ // as udev makes them
		{"/proc/self/fd", "dev/fd"}, {"/proc/self/fd/0", "dev/stdin"},
		{"/proc/self/fd/1", "dev/stdout"}, {"/proc/self/fd/2", "dev/stderr"},
	} {
		err := os.Symlink(link[0], r.path(link[1]))
		if err != nil && !errors.Is(err, os.ErrExist) { // hosts share devtmpfs
			return fmt.Errorf("make a link: %w", err)
		}
	}
	// sysfs shows the devices of the namespace that mounts it
	err := r.node.do(func() error { return mountAt("sysfs", r.path("sys"), "sysfs", 0, "") })
	if err != nil {
		return err
	}
	return r.writeNames(p)
}

// writeNames makes the hosts' names known, and no others.
func (r *hostRoot) writeNames(p *plan) error {
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1 localhost\n")
	for _, n := range p.nodes {
		if n.addr.IsValid() {
			fmt.Fprintf(&hosts, "%s %s\n", n.addr, n.name)
		}
	}
	texts := map[string]string{
		"hosts": hosts.String(), "hostname": r.name + "\n", "resolv.conf": "",
		"nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n" +
			"services: files\nprotocols: files\n",
	}
	if p.ipv6() {
		hosts.WriteString("::1 localhost\n")
		for _, n := range p.nodes {
			if n.addr.IsValid() {
				fmt.Fprintf(&hosts, "%s %s\n", network.IPv6Addr(n.addr), n.name)
			}
		}
		texts["hosts"] = hosts.String()
		// IPv4 goes first, as for programs that ask for neither it always has
		texts["gai.conf"] = "precedence ::ffff:0:0/96 100\n"
	}
	if err := os.MkdirAll(r.path("etc"), 0o755); err != nil { // an image may have none
		return fmt.Errorf("write the host's names: %w", err)
	}
	for name, text := range texts {
		file := r.path("etc", name)
		_ = os.Remove(file) // of this machine, perhaps a link
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the host's names: %w", err)
		}
	}
	return nil
}

// path returns the path in the guest of one in the file system.
func (r *hostRoot) path(parts ...string) string {
	return filepath.Join(append([]string{r.dir}, parts...)...)
}

// scratch returns the folder of a program, in the file system.
func (r *hostRoot) scratch(program string) string { return "/tmp/" + program }

// deniedCapabilities are those by which a program could mount this machine's files anew, to write
// them, or look at the lab.
var deniedCapabilities = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO,
	unix.CAP_SYS_BOOT, unix.CAP_MKNOD, unix.CAP_SYS_TIME, unix.CAP_BPF, unix.CAP_PERFMON,
}

// command returns a program and its arguments, to be started by [hostRoot.do] in a folder of the
// host, which is its home, too.
func (r *hostRoot) command(dir string, args []string) *exec.Cmd {
	// the shell looks the program up inside of the host's root
	cmd := exec.Command("/bin/sh", append([]string{"-c", `exec "$0" "$@"`}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + experiment.ProgramPath, "HOME=" + dir, "LANG=C.UTF-8", "TZ=UTC", "USER=root",
	}
	if r.image != nil { // it may have no shell
		cmd.Env = append(cmd.Env, r.image.Env...)
		cmd.Path, cmd.Args = r.find(args[0]), args
		cmd.Dir = cmp.Or(r.image.Dir, dir)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: r.dir, Setsid: true}
	return cmd
}

// find looks a command up in the image's PATH. What a link there leads to is up to the host's root.
func (r *hostRoot) find(command string) string {
	folders := experiment.ProgramPath
	for _, variable := range r.image.Env {
		if path, ok := strings.CutPrefix(variable, "PATH="); ok {
			folders = path
		}
	}
	if strings.Contains(command, "/") {
		return command
	}
	for _, folder := range filepath.SplitList(folders) {
		file := filepath.Join("/", folder, command)
		if info, err := os.Lstat(r.path(file)); err == nil && !info.IsDir() {
			return file
		}
	}
	return command
}

// do calls fn on a thread that is on the host, and ends then. What it starts has the host's name,
// and few capabilities.
func (r *hostRoot) do(fn func() error) error {
	return ns.Do(r.node.handle, func() error {
		if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
			return fmt.Errorf("give the host a name: %w", err)
		}
		if err := unix.Sethostname([]byte(r.name)); err != nil {
			return fmt.Errorf("give the host a name: %w", err)
		}
		for _, capability := range deniedCapabilities {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
				return fmt.Errorf("drop capability %d: %w", capability, err)
			}
		}
		return fn()
	})
}
