// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"testing"

	"github.com/pcn-linux/pcn/netns-lab/vm/vmtest"
)

func TestMain(m *testing.M) { os.Exit(vmtest.RunTests(m, vmtest.Extra{})) }
