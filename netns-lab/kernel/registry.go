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

	"github.com/pcn-linux/pcn/internal/flock"
)

const (
	stateDir = "/run/pcn"
	netnsDir = "/run/netns"
)

// registry holds the lab's lock on the machine. It records namespaces before making them and
// settings before changing them, so that the next start cleans up after a killed lab.
type registry struct {
	lock     *flock.Lock
	list     string
	settings string            // file of was
	was      map[string]string // the machine's settings that are changed, by file, as they were
}

// openRegistry locks the machine and cleans up after a killed lab.
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

// claim records the names. None may exist.
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

// clean removes the recorded namespaces.
func (r *registry) clean() error {
	b, err := os.ReadFile(r.list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	names := strings.Fields(string(b))
	errs := make([]error, len(names)) // a failure does not stop the others
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

// restore sets these settings to their values before the changes.
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

// restoreLeft restores the settings that a killed lab recorded.
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

// writeSettings records the old settings atomically.
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

// deleteNamespace removes a named namespace, even a half-made one of a killed lab.
func deleteNamespace(name string) error {
	err := netns.DeleteNamed(name)
	if errors.Is(err, unix.EINVAL) { // a file on which nothing is mounted yet
		return os.Remove(filepath.Join(netnsDir, name))
	}
	return err
}

// unlock releases the machine.
func (r *registry) unlock() error { return r.lock.Release() }
