// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pcn-linux/pcn/internal/vm"
)

// guestPCN is the program to test in the microVM.
const guestPCN = "/usr/bin/pcn"

// guestModules are what the bed needs of the kernel besides veth.
var guestModules = []string{"sch_htb", "sch_tbf"}

// vmCPUs of the microVM: one of them goes offline now and then.
const vmCPUs = 2

// runInVM runs the soak in the microVM, whose clock counts instructions. So nothing else on the
// machine disturbs it, an idle second costs nothing, and its clock and CPUs may be changed.
func runInVM(ctx context.Context, o options, w io.Writer) error {
	kernel, err := vm.FindKernel("")
	if err != nil {
		return err
	}
	files, err := guestFiles(o.pcn)
	if err != nil {
		return err
	}
	res, err := vm.Run(ctx, vm.Config{
		Kernel: kernel, Files: files, Modules: guestModules, CPUs: vmCPUs, HostCPU: -1,
		Seed: o.seed,
		Args: []string{
			"-seconds", strconv.Itoa(int(o.length.Seconds())), "-round", o.round.String(),
			"-seed", strconv.FormatUint(o.seed, 10), "-pcn", guestPCN,
			"-rate", strconv.Itoa(o.mbps), "-step-clock", "-offline-cpu",
		},
		Env:     []string{"GOGC=100"}, // as on hosts, since the soak measures memory
		Console: w,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%v on this machine\n", res.Wall.Round(1e9))
	if res.ExitCode != 0 {
		return errors.New("the soak in the microVM failed")
	}
	return nil
}

// guestFiles returns pcn, and the clients that are installed here.
func guestFiles(pcn string) ([]vm.File, error) {
	program, err := os.ReadFile(pcn)
	if err != nil {
		return nil, fmt.Errorf("read the program to test: %w", err)
	}
	files := []vm.File{{Path: guestPCN, Mode: 0o755, Data: program}}
	for _, name := range []string{"curl", "iperf3"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		more, err := vm.Program(path)
		if err != nil {
			return nil, err
		}
		files = slices.Concat(files, more)
	}
	return files, nil
}

// superviseGuest is supervise in the microVM.
func superviseGuest(ctx context.Context, args []string, w io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(lockFile), 0o755); err != nil {
		return err
	}
	return supervise(ctx, args, w)
}
