// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/debian"
)

// The fingerprint changes with all that a guest sees, and with nothing else.
func TestFingerprint(t *testing.T) {
	kernel := func(image, module string) Kernel {
		dir := t.TempDir()
		file := filepath.Join(dir, debian.ImageFile)
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(image), 0o644)))
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, "veth.ko"), []byte(module), 0o644)))
		return Kernel{Version: "7", Image: file, Modules: dir}
	}
	program := []byte("program")
	of := func(k Kernel, c Config) string {
		m, err := NewMachine(context.Background(), k, program)
		qt.Assert(t, qt.IsNil(err))
		text, err := m.Fingerprint(c)
		qt.Assert(t, qt.IsNil(err))
		return text
	}
	config := func(change func(*Config)) Config {
		c := Config{Args: []string{"a", "b"},
			Files: []File{{Path: "/x", Mode: 0o644, Data: []byte("x")}}, Seed: 1, MemoryMiB: 1024}
		change(&c)
		return c
	}
	same := config(func(*Config) {})
	want := of(kernel("image", "module"), same)
	qt.Check(t, qt.Equals(of(kernel("image", "module"), same), want),
		qt.Commentf("in another folder"))
	qt.Check(t, qt.Equals(of(kernel("image", "module"), config(func(c *Config) { c.HostCPU = 3 })),
		want))

	qt.Check(t, qt.IsFalse(of(kernel("other", "module"), same) == want))
	qt.Check(t, qt.IsFalse(of(kernel("image", "other"), same) == want))
	for name, change := range map[string]func(*Config){
		"args":    func(c *Config) { c.Args = []string{"a b"} },
		"env":     func(c *Config) { c.Env = []string{"A=1"} },
		"data":    func(c *Config) { c.Files[0].Data = []byte("y") },
		"path":    func(c *Config) { c.Files[0].Path = "/y" },
		"modules": func(c *Config) { c.Modules = []string{"tcp_bbr"} },
		"seed":    func(c *Config) { c.Seed = 1 << 40 },
		"memory":  func(c *Config) { c.MemoryMiB = 2048 },
	} {
		qt.Check(t, qt.IsFalse(of(kernel("image", "module"), config(change)) == want),
			qt.Commentf("%s", name))
	}
	program = []byte("other")
	qt.Check(t, qt.IsFalse(of(kernel("image", "module"), same) == want), qt.Commentf("program"))
}

// The hashes are those of sha256sum.
func TestMachineHashes(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(dir, debian.ImageFile)
	qt.Assert(t, qt.IsNil(os.WriteFile(image, []byte("image"), 0o644)))
	m, err := NewMachine(t.Context(), Kernel{Image: image, Modules: dir}, []byte("program"))
	qt.Assert(t, qt.IsNil(err))
	const image256 = "6105d6cc76af400325e94d588ce511be5bfdbb73b437dc51eca43917d7a43e3d"
	const program256 = "1310ca2c8932dbd118668bd97442558a3e1f546b5e15c69699dfbd6024f548d8"
	qt.Check(t, qt.Equals(m.KernelSHA256, image256))
	qt.Check(t, qt.Equals(m.GuestSHA256, program256))
	qt.Check(t, qt.Not(qt.Equals(m.QEMU, "")))
}
