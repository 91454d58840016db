// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/netns-lab/vm/vmtest"
)

// childEnv makes this program change the host, as pcn host does, instead of running tests.
const childEnv = "PCN_HOST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		if err := child(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(vmtest.RunTests(m, vmtest.Extra{Modules: []string{"sch_htb"}}))
}

func child(what string) error {
	if what == "down" {
		_, err := host.New().Down(context.Background())
		return err
	}
	c, err := host.Parse("child", []byte(what))
	if err != nil {
		return err
	}
	_, err = host.New().Up(context.Background(), c)
	return err
}
