// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

// Scale is what the network of a run costs.
type Scale struct {
	Nodes, Links int
	Up, Down     time.Duration
	MemoryBytes  int64 // of the machine, and not of this process alone
	WithoutQdisc bool  // as this kernel lacks CONFIG_NET_SCH_BPF
}

// UpAndDown builds the network of a scheme's run and removes it. On a kernel without CONFIG_NET_SCH_BPF it builds all
// but the ports' qdisc.
func UpAndDown(e *experiment.Experiment, scheme string) (Scale, error) {
	p, err := newPlan(e)
	if err != nil {
		return Scale{}, fmt.Errorf("lay out experiment %s: %w", e.Name, err)
	}
	f := describeFabric(p, scheme)
	steps := f.steps()
	s := Scale{Nodes: len(p.nodes), Links: len(p.ports) / 2}
	if err := loader.HaveQdisc(); errors.Is(err, loader.ErrNotSupported) {
		s.WithoutQdisc = true
		steps = f.stepsWithoutQdisc()
	}
	before, err := availableBytes()
	if err != nil {
		return Scale{}, err
	}
	began := time.Now()
	if err := f.build(steps...); err != nil {
		return Scale{}, fmt.Errorf("build the fabric of experiment %s: %w", e.Name, err)
	}
	s.Up = time.Since(began)
	after, err := availableBytes()
	began = time.Now()
	if err := errors.Join(err, f.close()); err != nil {
		return Scale{}, err
	}
	s.Down, s.MemoryBytes = time.Since(began), before-after
	return s, nil
}

// availableBytes is the machine's memory that can be had without swapping.
func availableBytes() (int64, error) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("read the machine's memory: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemAvailable:" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/meminfo: %w", err)
		}
		return kib << 10, nil
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}
