// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/guest"
)

const (
	arm64Env     = "PCN_ARM64"
	arm64Version = "6.12"
	arm64Title   = arm64Version + " arm64"
)

// Debian's kernel for arm64, which QEMU emulates, runs the table's rows and pcn host.
func TestARM64(t *testing.T) {
	if os.Getenv(arm64Env) == "" {
		t.Skip("make test-arm64 installs what it needs and runs it; or set " + arm64Env + "=1")
	}
	kernel, err := vm.FindARM64Kernel(arm64Version)
	if err != nil {
		t.Fatalf("%v --arm64", err)
	}
	// Both have the flags of releases, and so find in Go's cache what scripts/lint.sh compiled.
	dir := t.TempDir()
	pcn, program := filepath.Join(dir, "pcn"), filepath.Join(dir, "test")
	runForARM64(t, "../../scripts/build.sh", pcn, "linux/arm64")
	runForARM64(t, "go", "test", "-c", "-trimpath", "-o", program)
	res, err := vm.Run(t.Context(), vm.Config{
		Kernel: kernel, Program: read(t, program),
		Args: []string{"-test.run=^TestGuest(Host)?$", "-test.v"},
		Env:  []string{resultDirEnv + "=" + guest.ResultDir}, Dir: "/tmp",
		Files: []vm.File{{
			Path: pcnInGuest, Mode: 0o755,
			Data: read(t, pcn),
		}},
		Modules: []string{"sch_ingress", "cls_bpf", "tcp_bbr", "tcp_diag"},
		HostCPU: -1, Seed: 1,
	})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("microVM of %s: exit code %d, error %v:\n%s", kernel.Version, res.ExitCode, err,
			res.Console)
	}
	t.Logf("%s, boot %v, wall %v:\n%s", kernel.Version, res.Boot, res.Wall, res.Console)
	left, err := res.Files()
	qt.Assert(t, qt.IsNil(err))
	c := readColumn(t, left)
	checkColumn(t, c)
	checkPage(t, map[string]column{arm64Title: c})
}

// runForARM64 runs a command that builds for arm64.
func runForARM64(t *testing.T, command string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	text, err := cmd.CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", text))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	qt.Assert(t, qt.IsNil(err))
	return data
}
