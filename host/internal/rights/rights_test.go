// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/host/internal/rights"
)

// childEnv makes this program say whether it has the rights, in place of running tests.
const childEnv = "PCN_RIGHTS_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		fmt.Print(rights.Have())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Root of a user namespace has all capabilities there, and none to load programs.
func TestUserNamespace(t *testing.T) {
	c := exec.CommandContext(t.Context(), "/proc/self/exe")
	c.Env = append(os.Environ(), childEnv+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Skipf("this machine has no user namespaces: %v", err)
	}
	qt.Check(t, qt.StringContains(string(out), "this process is in a user namespace"))
	qt.Check(t, qt.StringContains(string(out), "run it outside, as root"))
}
