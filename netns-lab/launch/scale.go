// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pcn-linux/pcn/netns-lab/kernel"
	"github.com/pcn-linux/pcn/netns-lab/vm"
)

const scaleFile = "scale.json"

// UpAndDown builds the network of a run and removes it, in a microVM by the clock, or on this kernel.
func UpAndDown(ctx context.Context, j Job, native bool) (kernel.Scale, error) {
	if native {
		return kernel.UpAndDown(j.Experiment, j.Scheme)
	}
	var s kernel.Scale
	engine, err := NewEngine(Options{Waiting: func() {}})
	if err != nil {
		return s, err
	}
	cpu, lock, err := engine.cpus.take(ctx)
	if err != nil {
		return s, err
	}
	defer lock.Release() // nothing was written to it
	c := guestConfig(j)
	c.Args[0] = guestUpAndDown
	c.HostCPU, c.RealTime, c.Emulated = cpu, true, true
	res, err := engine.boot(ctx, c, "the network could not be built")
	if err != nil {
		return s, err
	}
	files, err := res.FS()
	if err != nil {
		return s, err
	}
	b, err := fs.ReadFile(files, scaleFile)
	if err != nil {
		return s, fmt.Errorf("read what the microVM measured: %w", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("read what the microVM measured: %w", err)
	}
	return s, nil
}

func upAndDownInGuest(args []string) error {
	j, err := jobOf(guestExperiment, args)
	if err != nil {
		return err
	}
	s, err := kernel.UpAndDown(j.Experiment, j.Scheme)
	if err != nil {
		return err
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(vm.ResultDir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(vm.ResultDir, scaleFile), b, 0o644)
}
