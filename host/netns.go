// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host/internal/rights"
	"github.com/pcn-linux/pcn/loader/ns"
)

// Namespace is a network namespace of this machine.
type Namespace struct {
	// Cookie identifies it until the next boot. It is not used again, unlike an inode.
	Cookie uint64 `json:"cookie"`
	// Inode is its number in lsns and in /proc/PID/ns/net.
	Inode uint64 `json:"inode"`
	// Name is that of its file, as in ip netns; empty if it has none.
	Name string `json:"name,omitempty"`

	path string // a file by which it can be entered
}

// String returns its name, or its inode as lsns shows it.
func (n Namespace) String() string {
	if n.Name != "" {
		return n.Name
	}
	return strconv.FormatUint(n.Inode, 10)
}

// netnsFolders are where ip netns and container engines keep the files of namespaces.
var netnsFolders = []string{"/run/netns", "/var/run/netns", "/run/docker/netns"}

// threadNetns is the namespace of the calling thread. /proc/self would show the main thread's.
const threadNetns = "/proc/thread-self/ns/net"

// currentNamespace returns the namespace of the calling thread.
func currentNamespace() (Namespace, error) {
	n := Namespace{path: threadNetns}
	var st unix.Stat_t
	if err := unix.Stat(threadNetns, &st); err != nil {
		return n, fmt.Errorf("look for the network namespace: %s: %w", threadNetns, err)
	}
	n.Inode = st.Ino
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return n, fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(fd)
	n.Cookie, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return n, fmt.Errorf("read the cookie of the network namespace (Linux 5.14+): %w", err)
	}
	for path, inode := range netnsFiles() {
		if inode == n.Inode {
			n.Name = filepath.Base(path)
		}
	}
	return n, nil
}

// netnsFiles returns the inodes of the namespaces that have a file.
func netnsFiles() map[string]uint64 {
	files := map[string]uint64{}
	add := func(path string) {
		var fsinfo unix.Statfs_t
		var st unix.Stat_t
		if unix.Statfs(path, &fsinfo) == nil && fsinfo.Type == unix.NSFS_MAGIC &&
			unix.Stat(path, &st) == nil {
			files[path] = st.Ino
		}
	}
	for _, folder := range netnsFolders {
		entries, _ := os.ReadDir(folder) // missing ones have none
		for _, e := range entries {
			add(filepath.Join(folder, e.Name()))
		}
	}
	for _, path := range netnsMounts() {
		add(path)
	}
	return files
}

// netnsMounts returns where this process sees namespaces mounted, such as those of containers.
func netnsMounts() []string {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	var paths []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		const root, mountPoint = 3, 4
		fields := strings.Fields(lines.Text())
		if len(fields) > mountPoint && strings.HasPrefix(fields[root], "net:[") {
			paths = append(paths, fields[mountPoint])
		}
	}
	return paths
}

// allNamespaces returns the network namespaces of this machine that have a file or a process, the
// caller's first. closed counts those that could not be entered.
func allNamespaces() (all []Namespace, closed int, err error) {
	here, err := currentNamespace()
	if err != nil {
		return nil, 0, err
	}
	all = []Namespace{here}
	seen := map[uint64]bool{here.Inode: true}
	enter := func(path, name string, inode uint64) {
		if seen[inode] {
			return
		}
		seen[inode] = true
		n, err := namespaceAt(path)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				closed++
			}
			return
		}
		n.Name = name
		all = append(all, n)
	}
	files := netnsFiles()
	for path, inode := range files {
		enter(path, filepath.Base(path), inode)
	}
	hidden := map[uint64]bool{} // by the inode of a file in /proc/PID/net
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, 0, err
	}
	for _, process := range processes {
		path := process + "/ns/net"
		var st unix.Stat_t
		switch err := unix.Stat(path, &st); {
		case err == nil:
			enter(path, "", st.Ino)
		case errors.Is(err, fs.ErrPermission):
			if ino := netDirInode(process); ino != 0 {
				hidden[ino] = true
			}
		}
	}
	delete(hidden, netDirInode("/proc/thread-self"))
	slices.SortStableFunc(all[1:], func(a, b Namespace) int {
		return strings.Compare(a.String(), b.String())
	})
	return all, closed + len(hidden), nil
}

// netDirInode tells namespaces apart that may not be looked at: each has files of its own in
// /proc/PID/net, which anyone may read. It is 0 if the process is gone.
func netDirInode(process string) uint64 {
	var st unix.Stat_t
	if unix.Stat(process+"/net/dev", &st) != nil {
		return 0
	}
	return st.Ino
}

// namespaceAt enters the namespace of a file, to read its cookie.
func namespaceAt(path string) (n Namespace, err error) {
	err = inNamespaceOf(path, func() error {
		n, err = currentNamespace()
		return err
	})
	n.path = path
	return n, err
}

// inNamespaceOf runs fn on a thread in the namespace of a file.
func inNamespaceOf(path string, fn func() error) error {
	if path == threadNetns {
		return fn()
	}
	h, err := netns.GetFromPath(path)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer h.Close()
	return ns.Do(h, fn)
}

// In runs fn in a network namespace: one that ip netns list shows, or that of a file, such as
// /proc/1234/ns/net. fn must use it in its own goroutine only. With an empty name fn runs in the
// caller's.
func In(name string, fn func() error) error {
	if name == "" {
		return fn()
	}
	path := name
	if !strings.Contains(name, "/") {
		path = filepath.Join(netnsFolders[0], name)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrPermission) {
		return rights.Explain(
			fmt.Errorf("network namespace %s: %w", name, err), rights.Entering...)
	} else if err != nil {
		return fmt.Errorf("network namespace %s: %w: give a name that ip netns list shows, or a "+
			"file such as /proc/PID/ns/net", name, err)
	}
	if !isNetns(path) {
		return fmt.Errorf("network namespace %s: %s is not the file of a network namespace", name,
			path)
	}
	entered := false
	err := inNamespaceOf(path, func() error {
		entered = true
		return fn()
	})
	if entered || err == nil {
		return err
	}
	if refused, ok := errors.AsType[unix.Errno](err); ok {
		err = refused // without the namespace's numbers
	}
	return rights.Explain(
		fmt.Errorf("enter network namespace %s: %w", name, err), rights.Entering...)
}

func isNetns(path string) bool {
	var fsinfo unix.Statfs_t
	return unix.Statfs(path, &fsinfo) == nil && fsinfo.Type == unix.NSFS_MAGIC
}

// Components at interfaces belong to a namespace: their folders are named NAME@COOKIE. Controls
// and cgroups are the machine's.
const cookieMark = "@"

func (n Namespace) folderOf(component string) string {
	return component + cookieMark + strconv.FormatUint(n.Cookie, 10)
}

// splitFolder returns the component of a folder, and the cookie of its namespace; 0 if it is the
// machine's.
func splitFolder(name string) (component string, cookie uint64) {
	component, number, _ := strings.Cut(name, cookieMark)
	cookie, _ = strconv.ParseUint(number, 10, 64)
	return component, cookie
}

// isMachineWide reports whether a component is the machine's, not a namespace's.
func isMachineWide(component string) bool {
	return strings.HasPrefix(component, ControlPrefix) || strings.HasPrefix(component, cgroupPrefix)
}

// Choice is a network namespace whose net.ipv4.tcp_congestion_control names a control of ours.
type Choice struct {
	Namespace Namespace `json:"namespace"`
	Control   string    `json:"control"`
}

// IsHere reports whether it is the namespace of the thread that asked.
func (c Choice) IsHere() bool { return c.Namespace.path == threadNetns }

const defaultFile = "/proc/sys/net/ipv4/tcp_congestion_control"

// Choices returns the namespaces that chose one of the controls, and how many could not be looked
// into.
func Choices(controls []string) (chosen []Choice, closed int, err error) {
	all, closed, err := allNamespaces()
	if err != nil {
		return nil, 0, err
	}
	for _, n := range all {
		var control string
		if err := inNamespaceOf(n.path, func() (err error) {
			control, err = defaultControl()
			return err
		}); err != nil {
			closed++
			continue
		}
		if slices.Contains(controls, control) {
			chosen = append(chosen, Choice{n, control})
		}
	}
	return chosen, closed, nil
}

// defaultControl returns the congestion control of new sockets in the thread's namespace.
func defaultControl() (string, error) {
	text, err := os.ReadFile(defaultFile)
	if err != nil {
		return "", fmt.Errorf("read the default congestion control: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// choose makes a control that of new sockets in the namespace. Linux keeps a pointer to the
// operations that were registered when it was written, so after a change it must be written again.
func (n Namespace) choose(control string) error {
	return inNamespaceOf(n.path, func() error {
		return os.WriteFile(defaultFile, []byte(control), 0)
	})
}

// Registered returns the names of the pinned congestion controls.
func (h *Host) Registered() ([]string, error) {
	folders, err := h.components()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, folder := range folders {
		if name, ok := strings.CutPrefix(folder, ControlPrefix); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// reselect makes the namespaces that chose a control choose its newest programs, and returns what
// it did where the control is a new one, or could not do.
func reselect(changes []Change) []Change {
	what := map[string]string{} // what happened to each control
	var controls []string
	for _, c := range changes {
		if name, ok := strings.CutPrefix(c.Component, ControlPrefix); ok {
			what[name] = c.What
			controls = append(controls, name)
		}
	}
	if len(controls) == 0 {
		return nil
	}
	chosen, closed, err := Choices(controls)
	if err != nil {
		return []Change{{Component: "network namespaces", What: NotReselected, Note: err.Error()}}
	}
	var done []Change
	isNew := false
	for _, control := range controls {
		isNew = isNew || what[control] != Kept
	}
	for _, c := range chosen {
		one := Change{Component: ControlPrefix + c.Control}
		if c.Namespace.path != threadNetns {
			one.Namespace = c.Namespace.String()
		}
		if what[c.Control] == Removed {
			one.What, one.Note = StillChosen, "new connections there use the removed control: "+
				c.Namespace.Command("sysctl -w net.ipv4.tcp_congestion_control="+instead())
			done = append(done, one)
			continue
		}
		err := c.Namespace.choose(c.Control)
		switch {
		case err != nil:
			one.What, one.Note = NotReselected, err.Error()+": new connections there may use the "+
				"earlier control: "+c.Namespace.Command("sysctl -w "+
				"net.ipv4.tcp_congestion_control="+c.Control)
		case what[c.Control] == Kept:
			continue
		default:
			one.What = Reselected
		}
		done = append(done, one)
	}
	if closed > 0 && isNew {
		done = append(done, Change{Component: "network namespaces", What: NotReselected,
			Note: fmt.Sprintf("%d could not be entered (CAP_SYS_ADMIN, CAP_SYS_PTRACE): if they "+
				"chose a control of pcn, new connections there may use the earlier one; run pcn "+
				"host up as root with all capabilities", closed)})
	}
	return done
}

// allowedFile names the controls that other network namespaces than the first may choose.
const allowedFile = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"

// instead returns a control of Linux that every namespace may choose: CUBIC, or Reno, which always
// may be.
func instead() string {
	const cubic = "cubic"
	text, err := os.ReadFile(allowedFile)
	if err == nil && slices.Contains(strings.Fields(string(text)), cubic) {
		return cubic
	}
	return "reno"
}

// Command returns a command for a shell that runs in the namespace.
func (n Namespace) Command(text string) string {
	switch {
	case n.path == threadNetns:
		return text
	case filepath.Dir(n.path) == netnsFolders[0]:
		return "ip netns exec " + n.Name + " " + text
	default:
		return "nsenter --net=" + n.path + " " + text
	}
}
