// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/vm"
)

// inProcess is what engines have in common that are part of this program.
type inProcess struct {
	program func() (string, error) // hash of this program, computed once
}

func newInProcess() inProcess { return inProcess{sync.OnceValues(hashProgram)} }

// Exclusive implements [Engine]: runs share nothing.
func (inProcess) Exclusive() bool { return false }

// sharesCPUs says that a run's time on the wall clock changes nothing.
func (inProcess) sharesCPUs() {}

// Fingerprint implements [Engine].
func (p inProcess) Fingerprint(j job.Job) (string, error) {
	program, err := p.program()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, program)
	fmt.Fprintln(h, hashJob(j))
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashJob returns the SHA-256 of what a run is of.
func hashJob(j job.Job) string {
	h := sha256.New()
	fmt.Fprintln(h, strings.Join(j.Args(job.Run), "\x00"))
	h.Write(j.Experiment.Source())
	return hex.EncodeToString(h.Sum(nil))
}

// hashProgram returns the SHA-256 of this program.
func hashProgram() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the path of this program: %w", err)
	}
	return vm.HashFile(path)
}
