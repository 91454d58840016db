// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/nstest"
)

// attached are the names of a device's programs, in the order they run.
func attached(t *testing.T, dev *tap, where ebpf.AttachType) (names []string) {
	t.Helper()
	nstest.Do(t, dev.ns, func() error {
		q, err := link.QueryPrograms(link.QueryOptions{Target: dev.ifindex, Attach: where})
		if err != nil {
			return err
		}
		for _, p := range q.Programs {
			prog, err := ebpf.NewProgramFromID(p.ID)
			if err != nil {
				return err
			}
			defer prog.Close()
			info, err := prog.Info()
			if err != nil {
				return err
			}
			names = append(names, info.Name)
		}
		return nil
	})
	return names
}

// Whatever the order of attaching, marks are applied before they are counted, CNPs and CNMs are
// made before they are stamped, and Close leaves the device as it was.
func TestAttachOrder(t *testing.T) {
	type attacher interface{ Close() error }
	steps := map[string]func(t *testing.T, dev *tap) attacher{
		"arrive": func(t *testing.T, dev *tap) attacher {
			a, _ := newArrive(t, 0, os.Getpagesize())
			qt.Assert(t, qt.IsNil(a.Attach(dev.ns, dev.ifindex)))
			return a
		},
		"np": func(t *testing.T, dev *tap) attacher {
			n := loadNP(t, npOptions{TNs: 1, CongestedShare: 0.95})
			qt.Assert(t, qt.IsNil(n.Attach(dev.ns, dev.ifindex)))
			return n
		},
		"stamp": func(t *testing.T, dev *tap) attacher {
			s := newStamp(t)
			qt.Assert(t, qt.IsNil(s.Attach(dev.ns, dev.ifindex)))
			return s
		},
	}
	for _, order := range [][]string{
		{"arrive", "np", "stamp"}, {"stamp", "np", "arrive"}, {"np", "arrive", "stamp"},
		{"np", "stamp", "arrive"},
	} {
		dev := newTap(t, nstest.New(t), "tap0", 1)
		var all []attacher
		for _, step := range order {
			all = append(all, steps[step](t, dev))
		}
		qt.Check(t, qt.DeepEquals(attached(t, dev, ebpf.AttachTCXIngress),
			[]string{"arrive", "np_ingress"}))
		egress := attached(t, dev, ebpf.AttachTCXEgress)
		qt.Check(t, qt.ContentEquals(egress, []string{"np_egress", "cnm_egress", "stamp"}))
		qt.Check(t, qt.Equals(egress[len(egress)-1], "stamp"))
		for _, a := range all {
			qt.Assert(t, qt.IsNil(a.Close()))
		}
		qt.Check(t, qt.HasLen(attached(t, dev, ebpf.AttachTCXIngress), 0))
		qt.Check(t, qt.HasLen(attached(t, dev, ebpf.AttachTCXEgress), 0))
	}
}

func TestAttachToNoDevice(t *testing.T) {
	err := newStamp(t).Attach(nstest.New(t), 1<<20)
	qt.Assert(t, qt.ErrorMatches(err, "attach tc program stamp to device 1048576: .*"))
}

// A fingerprint is of the object with its variables, as before it was loaded: maps that it shares
// do not count.
func TestFingerprint(t *testing.T) {
	events, err := ebpf.NewMap(&ebpf.MapSpec{
		Type: ebpf.RingBuf, MaxEntries: uint32(2 * os.Getpagesize()),
	})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { events.Close() })
	of := func(o ArriveOptions) string {
		a, err := LoadArrive(o)
		qt.Assert(t, qt.IsNil(err))
		defer a.Close()
		return a.Fingerprint()
	}
	alone := of(ArriveOptions{SinkPort: 9})
	qt.Check(t, qt.HasLen(alone, 16))
	qt.Check(t, qt.Equals(of(ArriveOptions{SinkPort: 9, Events: events}), alone))
	qt.Check(t, qt.Not(qt.Equals(of(ArriveOptions{SinkPort: 10}), alone)))
}
