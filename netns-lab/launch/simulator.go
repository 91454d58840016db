// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/pcn-linux/pcn/netns-lab/job"
	"github.com/pcn-linux/pcn/netns-lab/result"
	"github.com/pcn-linux/pcn/netns-lab/sim"
	"github.com/pcn-linux/pcn/netns-lab/vm"
)

// Simulator is the engine that simulates an ideal network.
type Simulator struct {
	sim     *sim.Simulator
	program func() (string, error) // hash of this program, computed once
}

// NewSimulator returns the engine.
func NewSimulator() *Simulator { return &Simulator{sim.New(), sync.OnceValues(hashProgram)} }

// Exclusive implements [Engine]: runs share nothing.
func (*Simulator) Exclusive() bool { return false }

// sharesCPUs says that a run's time on the wall clock changes nothing.
func (*Simulator) sharesCPUs() {}

// Fingerprint implements [Engine]. The simulator is part of this program.
func (s *Simulator) Fingerprint(j job.Job) (string, error) { return ownFingerprint(s.program, j) }

// ownFingerprint is that of an engine that is part of this program, whose hash is given.
func ownFingerprint(hash func() (string, error), j job.Job) (string, error) {
	program, err := hash()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, program)
	fmt.Fprintln(h, strings.Join(j.Args(job.Run), "\x00"))
	h.Write(j.Experiment.Source())
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Run implements [Engine].
func (s *Simulator) Run(
	ctx context.Context, j job.Job, _ int, progress func(float64),
) (*result.Run, error) {
	return s.sim.Run(ctx, j.Experiment, j.Scheme, progress)
}

// hashProgram returns the SHA-256 of this program.
func hashProgram() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the path of this program: %w", err)
	}
	return vm.HashFile(path)
}
