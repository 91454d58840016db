// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/pcn-linux/pcn/netns-lab/job"
	"github.com/pcn-linux/pcn/netns-lab/kernel"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// An Engine runs jobs. It may be asked for several at a time, unless it is Exclusive.
type Engine interface {
	// Run does the job on a CPU of this machine, and tells progress how far it is: 0 to 1. It
	// fills in the manifest, but for what a [Pool] knows: the tool and the wall clock.
	Run(ctx context.Context, j job.Job, cpu int, progress func(done float64)) (*result.Run, error)
	// Exclusive says that jobs can't run side by side. Run's CPU is then -1: it has all of them.
	Exclusive() bool
	// Fingerprint returns a hash of all that decides the result: jobs with the same fingerprint
	// give the same bytes. It fails if results can't be reproduced.
	Fingerprint(j job.Job) (string, error)
}

// noCPU is the CPU of a job that is not kept to one.
const noCPU = -1

// Pool runs jobs in an engine, each on a CPU of its own that it shares with no microVM, not even of
// another process.
type Pool struct {
	engine Engine
	cpus   *cpus
}

// NewPool returns a pool on the CPUs that this process may use. Waiting, which may be nil, is
// called once, when other processes have all of them.
func NewPool(engine Engine, waiting func()) (*Pool, error) {
	if waiting == nil {
		waiting = func() {}
	}
	cpus, err := newCPUs(waiting)
	return &Pool{engine, cpus}, err
}

// Size returns how many jobs can run at a time.
func (p *Pool) Size() int {
	if p.engine.Exclusive() {
		return 1
	}
	return len(p.cpus.ids)
}

// Run waits for a CPU and does the job.
func (p *Pool) Run(ctx context.Context, j job.Job, progress func(float64)) (*result.Run, error) {
	cpu, release, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	began := time.Now()
	run, err := p.engine.Run(ctx, j, cpu, progress)
	if err != nil {
		return nil, err
	}
	m := &run.Manifest
	m.Tool = Tool
	m.Wall.StartedAt, m.Wall.TotalS = began.UTC(), time.Since(began).Seconds()
	if m.Wall.Host, err = os.Hostname(); err != nil {
		m.Wall.Host = "unknown"
	}
	return run, nil
}

// take waits for a CPU, until its release.
func (p *Pool) take(ctx context.Context) (cpu int, release func(), err error) {
	if p.engine.Exclusive() {
		return noCPU, func() {}, nil
	}
	cpu, lock, err := p.cpus.take(ctx)
	if err != nil {
		return 0, nil, err
	}
	return cpu, func() { _ = lock.Release() }, nil // nothing was written to it
}

var errNoNetwork = errors.New("this engine builds no network: choose the microVM or --native")

// builder is an engine that builds networks.
type builder interface {
	upAndDown(ctx context.Context, j job.Job, cpu int) (kernel.Scale, error)
}

// UpAndDown builds the network of a job, removes it, and returns what that took.
func (p *Pool) UpAndDown(ctx context.Context, j job.Job) (kernel.Scale, error) {
	b, ok := p.engine.(builder)
	if !ok {
		return kernel.Scale{}, errNoNetwork
	}
	cpu, release, err := p.take(ctx)
	if err != nil {
		return kernel.Scale{}, err
	}
	defer release()
	return b.upAndDown(ctx, j, cpu)
}
