// SPDX-License-Identifier: Apache-2.0

//go:build !linux

// Package native is the engine that runs jobs on this machine's own kernel: here all of it fails.
package native

import (
	"context"

	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
)

// Engine is a [launch.Engine].
type Engine struct{}

// New fails: this is not Linux.
func New() (Engine, error) { return Engine{}, launch.ErrNeedsLinux }

// Exclusive implements [launch.Engine].
func (Engine) Exclusive() bool { return true }

// Fingerprint implements [launch.Engine]: it fails.
func (Engine) Fingerprint(job.Job) (string, error) { return "", launch.ErrNeedsLinux }

// Run implements [launch.Engine]: it fails.
func (Engine) Run(context.Context, job.Job, int, func(float64)) (*result.Run, error) {
	return nil, launch.ErrNeedsLinux
}

// UpAndDown implements [launch.Builder]: it fails.
func (Engine) UpAndDown(context.Context, job.Job, int) (job.Scale, error) {
	return job.Scale{}, launch.ErrNeedsLinux
}
