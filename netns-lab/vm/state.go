// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pcn-linux/pcn/netns-lab/vm/guest"
)

// States are microVMs that have booted and wait for a job, in a folder. A run resumes one in place
// of booting; if there is none it makes one, and resumes that too, so that its bytes are those of
// all later runs.
type States struct {
	Dir     string // made if needed; where nothing can be written, no state is kept
	Machine Machine
}

// StateCache returns the folder of states in the user's cache. It need not exist.
func StateCache() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(cache, "pcn", "state"), nil
}

// keptStates is how many states stay, those that were used last. Each takes about 145 MB.
const keptStates = 4

// stateFormat is part of a state's name. It changes with what a state's file has, and with what
// host and guest agree on.
const stateFormat = 1

// machineState is the state of a microVM: its memory, which is sparse, and that of its devices
// behind it.
type machineState struct {
	file      *os.File
	memory    int64 // bytes
	temporary bool  // the file has a name, and is removed at the end
	kept      bool  // it is in the folder
}

func (s *machineState) close() {
	s.file.Close() // nothing is written
	if s.temporary {
		os.Remove(s.file.Name())
	}
}

// name returns the name of the file of a configuration's state.
func (s *States) name(c Config) (string, error) {
	c.Kernel = Kernel{}
	m := s.Machine
	text, err := json.Marshal([]any{
		stateFormat, m.GuestSHA256, m.KernelSHA256, m.QEMU, m.modules,
		prepareArguments(c, paths{}),
	})
	if err != nil {
		return "", fmt.Errorf("name the microVM's state: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]) + stateSuffix, nil
}

const stateSuffix = ".state"

// get returns the state of a configuration. It prepares a microVM if the folder has none, and keeps
// its state if that is possible.
func (s *States) get(ctx context.Context, c Config) (*machineState, error) {
	name, err := s.name(c)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.Dir, name)
	if state := openState(file, c.memoryBytes()); state != nil {
		return state, nil
	}
	state, err := prepare(ctx, c)
	if err != nil {
		return nil, err
	}
	// A full disk or a folder that may not be written to costs time only, each time.
	_ = keepState(state, file)
	return state, nil
}

// resumes reports whether a run resumes a state. Others boot: tests' programs, of which each has
// another state, and machines that QEMU can't save so that they repeat.
func (c Config) resumes(how acceleration) bool {
	return c.States != nil && how == counted && !c.Kernel.arm64 && c.CPUs <= 1
}

func (c Config) memoryBytes() int64 { return int64(c.MemoryMiB) << 20 }

// resume runs the program in a microVM that has booted.
func resume(ctx context.Context, c Config) (Result, error) {
	began := time.Now()
	state, err := c.States.get(ctx, c)
	if err != nil {
		return Result{}, err
	}
	defer state.close()
	res, err := resumeFrom(ctx, c, state, began)
	if err == nil || ctx.Err() != nil || !state.kept || !errors.Is(err, errNotLoaded) {
		return res, err
	}
	// QEMU does not take the state, so it is not what its name says: make it anew, once.
	os.Remove(state.file.Name())
	fresh, err := c.States.get(ctx, c)
	if err != nil {
		return Result{}, err
	}
	defer fresh.close()
	return resumeFrom(ctx, c, fresh, began)
}

// errNotLoaded says that QEMU refused a state.
var errNotLoaded = errors.New("QEMU does not resume the saved microVM")

// resumeFrom runs the program in a copy of a microVM that has booted.
func resumeFrom(
	ctx context.Context, c Config, state *machineState, began time.Time,
) (Result, error) {
	files, err := newSharedFiles(nil)
	if err != nil {
		return Result{}, err
	}
	defer files.close()
	if err := handOver(c, files.answer); err != nil {
		return Result{}, err
	}
	if err := files.inheritState(state); err != nil {
		return Result{}, err
	}
	said := &console{began: began, tee: c.Console}
	return finish(ctx, c, resumeArguments(c, files.paths), counted, files, said)
}

// handOver writes the job for the guest that is resumed.
func handOver(c Config, memory *os.File) error {
	there, err := loadedModules(c.Kernel, guestModules)
	if err != nil {
		return err
	}
	modules, err := loadedModules(c.Kernel, slices.Concat(guestModules, c.Modules))
	if err != nil {
		return err
	}
	modules = modules[len(there):]
	j := guest.Job{Args: c.Args, Env: c.Env, Dir: c.Dir, Seed: c.Seed}
	for _, m := range modules {
		j.Modules = append(j.Modules, m.Path)
	}
	if err := guest.WriteJob(memory, j, slices.Concat(modules, c.Files)); err != nil {
		return err
	}
	if err := memory.Truncate(guest.AnswerBytes); err != nil {
		return fmt.Errorf("make the memory for the guest's answer: %w", err)
	}
	return nil
}
