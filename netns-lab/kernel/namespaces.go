// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/loader/ns"
)

// namespace is the network namespace of a node.
type namespace struct {
	name     string
	handle   netns.NsHandle
	nl       *netlink.Handle
	requests *nl.SocketHandle // for requests that nl has no function for
}

// namespaces holds the namespaces of all nodes, in the order of the plan.
type namespaces []namespace

// newNamespaces makes a namespace for each name. Close the result even after an error.
func newNamespaces(names []string) (namespaces, error) {
	nodes := make(namespaces, len(names))
	err := parallel(len(names), func(i int) (err error) {
		nodes[i], err = newNamespace(names[i])
		return err
	})
	return nodes, err
}

// do calls fn, which changes nothing else of the thread, on one that is in the namespace.
func (n namespace) do(fn func() error) error { return ns.Visit(n.handle, fn) }

// close gives the handles back. The registry deletes the namespaces.
func (nodes namespaces) close() error {
	var errs []error
	for _, n := range nodes {
		if n.nl == nil {
			continue // never made
		}
		n.nl.Close()
		n.requests.Close()
		errs = append(errs, n.handle.Close())
	}
	return errors.Join(errs...)
}

// newNamespace makes a namespace and netlink sockets in it, on a thread that then ends.
func newNamespace(name string) (n namespace, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		n, err = enterNewNamespace(name)
	}()
	<-done
	return n, err
}

func enterNewNamespace(name string) (namespace, error) {
	home, err := netns.Get()
	if err != nil {
		return namespace{}, fmt.Errorf("get the network namespace to return to: %w", err)
	}
	defer home.Close()
	defer netns.Set(home) // Go never ends the main thread, which would keep the namespace alive
	h, err := netns.NewNamed(name)
	if err != nil {
		return namespace{}, fmt.Errorf("make network namespace %s: %w", name, err)
	}
	n, err := openNetlink(name, h)
	if err != nil {
		h.Close()
		return namespace{}, fmt.Errorf("prepare network namespace %s: %w", name, err)
	}
	return n, nil
}

// openNetlink disables IPv6 and opens the sockets, in the namespace of the thread.
func openNetlink(name string, h netns.NsHandle) (namespace, error) {
	if err := disableIPv6(); err != nil {
		return namespace{}, fmt.Errorf("disable IPv6: %w", err)
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return namespace{}, fmt.Errorf("open netlink: %w", err)
	}
	requests, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		handle.Close()
		return namespace{}, fmt.Errorf("open netlink: %w", err)
	}
	return namespace{name, h, handle, &nl.SocketHandle{Socket: requests}}, nil
}

// disableIPv6 disables IPv6 in the thread's namespace, because its neighbour solicitations would
// disturb experiments.
func disableIPv6() error {
	for _, conf := range []string{"all", "default"} {
		err := writeSetting("/proc/sys/net/ipv6/conf/"+conf+"/disable_ipv6", "1")
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
			return err
		}
	}
	return nil
}

// writeSetting writes a file of /proc/sys. With os.WriteFile Go's poller would watch the file: that
// takes seven system calls, not three, and a network has hundreds of settings.
func writeSetting(path, value string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, writeErr := unix.Write(fd, []byte(value))
		err = errors.Join(writeErr, unix.Close(fd))
	}
	if err != nil {
		return fmt.Errorf("write %s to %s: %w", value, path, err)
	}
	return nil
}
