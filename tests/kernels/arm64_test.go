// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/vm"
	"github.com/pcn-linux/pcn/netns-lab/vm/guest"
)

const (
	arm64Env     = "PCN_ARM64"
	arm64Version = "6.12"
	arm64Title   = arm64Version + " arm64"
)

// Debian's kernel for arm64, which QEMU emulates, runs the table's rows and pcn host.
func TestARM64(t *testing.T) {
	if os.Getenv(arm64Env) == "" {
		t.Skip("it takes minutes: make test-arm64, or set " + arm64Env + "=1")
	}
	kernel, err := vm.FindARM64Kernel(arm64Version)
	if err != nil {
		t.Fatalf("%v --arm64", err)
	}
	program := buildARM64(t, "test", "-c")
	res, err := vm.Run(t.Context(), vm.Config{
		Kernel: kernel, Program: program,
		Args: []string{"-test.run=^TestGuest(Host)?$", "-test.v"},
		Env:  []string{resultDirEnv + "=" + guest.ResultDir}, Dir: "/tmp",
		Files: []vm.File{{
			Path: pcnInGuest, Mode: 0o755,
			Data: buildARM64(t, "build", "-trimpath", "-ldflags=-s -w", "../../cmd/pcn"),
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

// buildARM64 builds a static program of arm64.
func buildARM64(t *testing.T, command string, args ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", append([]string{command, "-o", out}, args...)...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	text, err := cmd.CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", text))
	program, err := os.ReadFile(out)
	qt.Assert(t, qt.IsNil(err))
	return program
}
