// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/netns-lab/flock"
)

const (
	stateDir = "/run/pcn"
	netnsDir = "/run/netns"
)

// registry holds the lab's claim on the machine, and writes down the namespaces it makes and the
// settings it changes before it does, so that the next start undoes what a killed one left.
type registry struct {
	lock     *flock.Lock
	list     string
	settings string            // file of was
	was      map[string]string // the machine's settings that are changed, by file, as they were
}

// openRegistry claims the machine, and removes what a lab that was killed left behind.
func openRegistry() (*registry, error) {
	if err := os.MkdirAll(stateDir, 0o755); err != nil {
		return nil, fmt.Errorf("make the lab's state folder (are you root?): %w", err)
	}
	path := filepath.Join(stateDir, "lab.lock")
	lock, err := flock.TryPrivate(path)
	if errors.Is(err, flock.ErrHeld) {
		const hint = "wait until it ends (fuser %s shows it)"
		return nil, fmt.Errorf("another lab runs on this kernel: "+hint, path)
	}
	if err != nil {
		return nil, fmt.Errorf("claim the machine for the lab: %w", err)
	}
	r := &registry{
		lock: lock, list: filepath.Join(stateDir, "lab.namespaces"),
		settings: filepath.Join(stateDir, "lab.settings"), was: map[string]string{},
	}
	if err := errors.Join(r.clean(), r.restoreLeft()); err != nil {
		return nil, errors.Join(fmt.Errorf("remove what an earlier lab left: %w", err), r.unlock())
	}
	return r, nil
}

// claim writes the names down. None may exist.
func (r *registry) claim(names []string) error {
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(netnsDir, name)); err == nil {
			return fmt.Errorf("network namespace %s exists and is not a lab's: "+
				"remove it (ip netns del %s), or rename the node", name, name)
		}
	}
	if err := os.WriteFile(r.list, []byte(strings.Join(names, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("write down the lab's namespaces: %w", err)
	}
	return nil
}

// clean removes the namespaces that are written down.
func (r *registry) clean() error {
	b, err := os.ReadFile(r.list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	names := strings.Fields(string(b))
	errs := make([]error, len(names)) // one that can't be deleted does not keep the others
	_ = parallel(len(names), func(i int) error {
		if _, err := os.Lstat(filepath.Join(netnsDir, names[i])); err != nil {
			return nil // not made yet, or gone
		}
		if err := deleteNamespace(names[i]); err != nil {
			errs[i] = fmt.Errorf("delete network namespace %s: %w", names[i], err)
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.Remove(r.list)
}

// change sets a setting of the machine.
func (r *registry) change(file, value string) error {
	if _, changed := r.was[file]; changed {
		return os.WriteFile(file, []byte(value), 0)
	}
	was, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	r.was[file] = string(was)
	if err := r.writeSettings(); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(value), 0); err != nil {
		delete(r.was, file) // it is as it was
		return errors.Join(err, r.writeSettings())
	}
	return nil
}

// restore sets these settings as they were before they were changed.
func (r *registry) restore(files ...string) error {
	var errs []error
	for _, file := range files {
		was, changed := r.was[file]
		if !changed {
			continue
		}
		if err := os.WriteFile(file, []byte(was), 0); err != nil {
			errs = append(errs, fmt.Errorf("restore the machine's setting: %w", err))
			continue
		}
		delete(r.was, file)
	}
	return errors.Join(append(errs, r.writeSettings())...)
}

func (r *registry) restoreAll() error { return r.restore(slices.Sorted(maps.Keys(r.was))...) }

// restoreLeft restores what an earlier lab wrote down.
func (r *registry) restoreLeft() error {
	b, err := os.ReadFile(r.settings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &r.was); err != nil {
		return fmt.Errorf("%s: %w: remove it if no lab runs", r.settings, err)
	}
	return r.restoreAll()
}

// writeSettings writes down what was, at once or not at all.
func (r *registry) writeSettings() error {
	if len(r.was) == 0 {
		if err := os.Remove(r.settings); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := json.Marshal(r.was)
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.settings+".new", b, 0o600); err != nil {
		return fmt.Errorf("write down the machine's settings: %w", err)
	}
	return os.Rename(r.settings+".new", r.settings)
}

// deleteNamespace removes a named namespace, also one that a lab was killed in the middle of
// making.
func deleteNamespace(name string) error {
	err := netns.DeleteNamed(name)
	if errors.Is(err, unix.EINVAL) { // a file on which nothing is mounted yet
		return os.Remove(filepath.Join(netnsDir, name))
	}
	return err
}

// unlock gives the machine back.
func (r *registry) unlock() error { return r.lock.Release() }
