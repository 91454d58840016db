// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
)

// Engine runs jobs: several at a time, unless it is Exclusive.
type Engine interface {
	// Run runs the job on a CPU of this machine and calls progress with 0 to 1. It fills in the
	// manifest except the tool and the wall clock, which a [Pool] adds.
	Run(ctx context.Context, j job.Job, cpu int, progress func(done float64)) (*result.Run, error)
	// Exclusive reports whether only one job can run at a time. Run's CPU is then -1, for all CPUs.
	Exclusive() bool
	// Fingerprint returns a hash of everything that determines the result: jobs with equal
	// fingerprints give equal bytes. It fails if results are not reproducible.
	Fingerprint(j job.Job) (string, error)
}

// noCPU is the CPU of a job that is not pinned.
const noCPU = -1

// Pool runs jobs in an engine, each on its own CPU, which no microVM of any process shares; those
// of the simulator on any.
type Pool struct {
	engine Engine
	cpus   *cpus
}

// NewPool returns a pool on the CPUs that this process may use. It calls waiting, which may be nil,
// once if other processes use all of them.
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

// Run waits for a CPU and runs the job.
func (p *Pool) Run(ctx context.Context, j job.Job, progress func(float64)) (*result.Run, error) {
	cpu, release, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	began := time.Now()
	run, err := p.runInTime(ctx, j, cpu, progress)
	if err != nil {
		return nil, err
	}
	m := &run.Manifest
	m.Tool = Tool()
	// here, as no engine needs it, and the microVM takes 18 million instructions for it
	if s, err := j.Experiment.Scheme(j.Scheme); err == nil && s.Object != nil {
		m.SchemeSHA256 = s.Object.SHA256()
	}
	m.Wall.StartedAt, m.Wall.TotalS = began.UTC(), time.Since(began).Seconds()
	if m.Wall.Host, err = os.Hostname(); err != nil {
		m.Wall.Host = "unknown"
	}
	return run, nil
}

// maxSlower is how often a run whose dilation was chosen is run again, when it was late.
const maxSlower = 2

// runInTime runs the job, and again with a higher dilation if it was late and may choose it.
func (p *Pool) runInTime(
	ctx context.Context, j job.Job, cpu int, progress func(float64),
) (*result.Run, error) {
	var tried []uint
	for {
		run, err := p.engine.Run(ctx, j, cpu, progress)
		if err != nil {
			return nil, err
		}
		run.Index()
		run.Manifest.DilationsTried = tried
		m := &run.Manifest
		if m.Machine == result.UML || len(m.Late()) == 0 || len(tried) == maxSlower {
			return run, nil
		}
		slower := j.Experiment.Slower(m.LateBy())
		if slower == nil {
			return run, nil
		}
		tried = append(tried, j.Experiment.Dilation.Shift)
		j.Experiment = slower
	}
}

// sharer is an engine whose jobs may run on any CPU: others' work only makes them slower.
type sharer interface{ sharesCPUs() }

// take waits for a CPU, until its release.
func (p *Pool) take(ctx context.Context) (cpu int, release func(), err error) {
	if _, shares := p.engine.(sharer); shares || p.engine.Exclusive() {
		return noCPU, func() {}, nil
	}
	cpu, lock, err := p.cpus.take(ctx)
	if err != nil {
		return 0, nil, err
	}
	return cpu, func() { _ = lock.Release() }, nil // nothing was written to it
}

var errNoNetwork = errors.New("this engine builds no network: choose the microVM or --native")

// Builder is an engine that builds networks.
type Builder interface {
	// UpAndDown builds and removes the network of a job, on a CPU of this machine.
	UpAndDown(ctx context.Context, j job.Job, cpu int) (job.Scale, error)
}

// UpAndDown builds and removes the network of a job, and returns the cost.
func (p *Pool) UpAndDown(ctx context.Context, j job.Job) (job.Scale, error) {
	b, ok := p.engine.(Builder)
	if !ok {
		return job.Scale{}, errNoNetwork
	}
	cpu, release, err := p.take(ctx)
	if err != nil {
		return job.Scale{}, err
	}
	defer release()
	return b.UpAndDown(ctx, j, cpu)
}
