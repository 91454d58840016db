// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	commandline "flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/guest"
	"github.com/pcn-linux/pcn/internal/vm/vmtest"
)

// markers are the headers in testdata that the port is compiled with, for the guest: it has no
// compiler. Their objects are in its working directory.
var markers = []string{"late_marker.h", "field_marker.h"}

func objectOf(marker string) string { return strings.TrimSuffix(marker, ".h") + ".o" }

func TestMain(m *testing.M) {
	var objects []vm.File
	if !guest.Inside() {
		for _, marker := range markers {
			object, err := compileMarker(marker)
			if err != nil {
				fmt.Fprintf(os.Stderr, "compile the port with %s: %v\n", marker, err)
				os.Exit(1)
			}
			objects = append(objects, object)
		}
	}
	os.Exit(runTests(m, objects))
}

// The test that runs by itself, in a microVM of so many CPUs.
const (
	severalCPUsTest = "TestSeveralCPUs"
	severalCPUs     = 4
)

// runTests runs the package's tests in a microVM with one CPU, and severalCPUsTest in another.
func runTests(m *testing.M, objects []vm.File) int {
	code := vmtest.RunTests(m, vmtest.Extra{Files: objects})
	if guest.Inside() || code != 0 {
		return code
	}
	commandline.Parse()
	chosen := commandline.Lookup("test.run").Value.String()
	if match, err := regexp.MatchString(chosen, severalCPUsTest); err != nil || !match {
		return code
	}
	return vmtest.RunTests(m, vmtest.Extra{
		Files: objects, CPUs: severalCPUs, Flags: []string{"-test.run=^" + severalCPUsTest + "$"},
	})
}

// compileMarker compiles the port with a marker as bpf/include/marker.h says.
func compileMarker(marker string) (vm.File, error) {
	dir, err := os.Getwd()
	if err != nil {
		return vm.File{}, err
	}
	out, err := os.CreateTemp("", "own-marker-*.o")
	if err != nil {
		return vm.File{}, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd := exec.Command("clang-19", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror",
		"-I../bpf", fmt.Sprintf("-DOWN_MARKER=%q", filepath.Join(dir, "testdata", marker)),
		"-c", "bpf/npecn.bpf.c", "-o", out.Name())
	if text, err := cmd.CombinedOutput(); err != nil {
		return vm.File{}, fmt.Errorf("%w\n%s", err, text)
	}
	data, err := os.ReadFile(out.Name())
	return vm.File{Path: filepath.Join(dir, objectOf(marker)), Mode: 0o644, Data: data}, err
}
