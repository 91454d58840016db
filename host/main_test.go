// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/config/scheme/compile"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/host/doctor"
	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/guest"
	"github.com/pcn-linux/pcn/internal/vm/vmtest"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
	"github.com/pcn-linux/pcn/tc"
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
	extra, err := extraFiles()
	if err == nil {
		err = checkAlerts()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(vmtest.RunTests(m, extra))
}

// shippedFile is the configuration in packages.
const shippedFile = "../packaging/host.yaml"

// ownSource is a control as users write it, and ownObject what it is compiled to for the microVM, which
// has no compiler.
const (
	ownSource = "../tests/e2e/testdata/own/dctcpr.c"
	ownObject = "own.o"
)

// extraFiles are what the tests need in the microVM; in it they are there.
func extraFiles() (vmtest.Extra, error) {
	extra := vmtest.Extra{
		Modules: []string{"sch_htb"},
		OnDebian: []string{
			"TestAdopt", "TestAdoptCgroup", "TestKill", "TestSeeing", "TestSwitchNPECN",
		},
	}
	if guest.Inside() {
		return extra, nil
	}
	shipped, err := os.ReadFile(shippedFile)
	if err != nil {
		return extra, err
	}
	for _, name := range []string{alertsFile, dashboardFile} {
		data, err := os.ReadFile(name)
		if err != nil {
			return extra, err
		}
		path, err := filepath.Abs(name)
		if err != nil {
			return extra, err
		}
		extra.Files = append(extra.Files, vm.File{Path: path, Mode: 0o644, Data: data})
	}
	own, err := compile.Scheme(context.Background(), ownSource,
		compile.Sources{Kernel: npecn.Source()})
	if err != nil {
		return extra, err
	}
	for name, data := range map[string][]byte{shippedFile: shipped, ownObject: own.Control} {
		path, err := filepath.Abs(name)
		if err != nil {
			return extra, err
		}
		extra.Files = append(extra.Files, vm.File{Path: path, Mode: 0o644, Data: data})
	}
	return extra, nil
}

func child(what string) error {
	if os.Getenv(childPrivateEnv) != "" {
		if err := mountPrivateSys(); err != nil {
			return err
		}
	}
	if what == childSelfTest {
		doctor.SelfTest(context.Background(), time.Hour)
		return nil
	}
	h := host.New()
	switch name, isIn := strings.CutPrefix(what, "in "); {
	case isIn:
		return host.In(name, func() error { return nil })
	case what == "down":
		_, err := h.Down(context.Background())
		return err
	case what == "status":
		_, err := h.Status(context.Background(), nil)
		return err
	case what == "flows":
		_, err := h.Flows()
		return err
	case what == "key":
		_, err := h.SetKey(0, cnp.Key{}, tc.KeyNone)
		return err
	}
	c, err := host.Parse("child", []byte(what))
	if err != nil {
		return err
	}
	changes, err := h.Up(context.Background(), c)
	for _, one := range changes {
		if one.IsProblem() {
			fmt.Printf("%s: %s: %s\n", one.Component, one.What, one.Note)
		}
	}
	return err
}
