// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

const wredName = "wred" // of its component

// WRED marks and drops the outgoing packets of an interface, as a switch does at a queue. The queue
// is that of the interface's root qdisc, which must have one, such as HTB or TBF.
type WRED struct {
	// Interfaces are where it runs. Required.
	Interfaces []string `yaml:"interfaces"`
	// KMin is the queue up to which no packet is marked. 0 to kmax. Required.
	KMin config.Bytes `yaml:"kmin"`
	// KMax is the queue above which every ECN-capable packet is marked. To 1GB, default kmin.
	KMax config.Bytes `yaml:"kmax"`
	// PMax is the probability of marking at kmax; it grows from 0 at kmin. Above 0, at most 1,
	// default 1.
	PMax config.Ratio `yaml:"pmax"`
	// K is the queue from which on packets that are not ECN-capable are dropped. To 1GB; 0 drops
	// none; default 1.5 kmin.
	K config.Bytes `yaml:"k"`
}

// maxQueue is the longest queue that a threshold of WRED may name.
const maxQueue = config.Bytes(1e9)

func (w *WRED) at() []string { return w.Interfaces }

func (*WRED) required() []string { return []string{"interfaces", "kmin"} }

// fill sets the defaults that experiments' switches have.
func (w *WRED) fill(d *config.Decoder, _ *Config) {
	fillZero(d, wredName, w, WRED{KMax: w.KMin, PMax: 1, K: w.KMin + w.KMin/2})
}

func (w *WRED) validate(d *config.Decoder, _ *Config) {
	interfaces(d, wredName, w.Interfaces)
	if w.KMin == 0 && !d.Has("wred.kmin") {
		d.Fail("wred", "\"kmin\" is missing", "write kmin: 50KB, the queue where marking begins")
	}
	config.InRange(d, "wred.kmax", w.KMax, 0, maxQueue)
	config.InRange(d, "wred.kmin", w.KMin, 0, w.KMax)
	config.InRange(d, "wred.pmax", w.PMax, minShare, 1)
	config.InRange(d, "wred.k", w.K, 0, maxQueue)
}

func (w *WRED) check() error {
	switch {
	case w.KMax > maxQueue || w.K > maxQueue:
		return fmt.Errorf("queues of %s and %s: want at most %s", w.KMax, w.K, maxQueue)
	case w.KMin > w.KMax:
		return fmt.Errorf("min %s is above max %s: want it below, or the same", w.KMin, w.KMax)
	case w.PMax < minShare || w.PMax > 1:
		return fmt.Errorf("probability %s: want above 0, and at most 1", w.PMax)
	}
	return nil
}

func (w *WRED) plan(*Config, measured) (*component, error) {
	return tcComponent(wredName, w.Interfaces, w.settings(), func(
		old map[string]*ebpf.Map, _ map[string]*loader.Control,
	) (tc.Object, error) {
		return w.load(old)
	})
}

func (w *WRED) settings() []Setting {
	return []Setting{
		{"kmin", w.KMin.String()}, {"kmax", w.KMax.String()}, {"pmax", w.PMax.String()},
		{"k", w.K.String()},
	}
}

func (w *WRED) load(old map[string]*ebpf.Map) (tc.Object, error) {
	return tc.LoadWRED(tc.WREDOptions{
		KMinBytes: uint64(w.KMin), KMaxBytes: uint64(w.KMax), PMax: float64(w.PMax),
		WREDBytes: uint64(w.K),
	}, tc.Reuse(old))
}
