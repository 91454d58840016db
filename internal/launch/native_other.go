// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package launch

import (
	"context"
	"errors"

	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
)

// Native is the engine that runs jobs on this machine's own kernel: here all of it fails.
type Native struct{}

var errNativeNeedsLinux = errors.New("--native needs Linux: it runs on this machine's own " +
	"kernel; leave it out, and the experiment runs on Linux in a microVM")

// NewNative fails: this is not Linux.
func NewNative() (Native, error) { return Native{}, errNativeNeedsLinux }

// Exclusive implements [Engine].
func (Native) Exclusive() bool { return true }

// Fingerprint implements [Engine]: it fails.
func (Native) Fingerprint(job.Job) (string, error) { return "", errNativeNeedsLinux }

// Run implements [Engine]: it fails.
func (Native) Run(context.Context, job.Job, int, func(float64)) (*result.Run, error) {
	return nil, errNativeNeedsLinux
}

func (Native) upAndDown(context.Context, job.Job, int) (job.Scale, error) {
	return job.Scale{}, errNativeNeedsLinux
}
