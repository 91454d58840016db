// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/go-quicktest/qt"
)

// npOptions are the parameters of PCN's notification point in a lab (NSDI 2020, Fig. 8).
type npOptions struct {
	TNs            uint64 // T, the CNP period
	CongestedShare float64
	RateUnitBps    uint32 // of RecRate; 0: 1 Mbit/s
	TJitterNs      uint64 // each window's T is drawn from TNs +- TJitterNs
	IdealTime      bool
}

func loadNP(t *testing.T, o npOptions) *NP {
	t.Helper()
	const q24 = 1 << 24
	return loadPoint(t, "pcn", o.IdealTime, false, npPcnNpParams{
		T_ns: o.TNs, CongestedPermille: uint32(o.CongestedShare*1000 + 0.5),
		RateUnitBps: o.RateUnitBps,
		T_jitter:    uint32(float64(o.TJitterNs)/float64(o.TNs)*q24 + 0.5),
	})
}

// markedOptions are the parameters of the notification point that answers marked packets.
type markedOptions struct {
	IntervalNs uint64 // shortest time between CNPs of a flow; 0: a CNP for every marked packet
	TCD        bool
	IdealTime  bool
}

func loadMarked(t *testing.T, o markedOptions) *NP {
	t.Helper()
	return loadPoint(t, "marked", o.IdealTime, o.TCD,
		npmarkedDcqcnNpParams{IntervalNs: o.IntervalNs})
}

// loadPoint loads a notification point for a lab, and removes it when the test ends.
func loadPoint(t *testing.T, name string, idealTime, tcd bool, params any) *NP {
	t.Helper()
	var laidOut bytes.Buffer
	qt.Assert(t, qt.IsNil(binary.Write(&laidOut, binary.NativeEndian, params)))
	n, err := LoadPoint(name,
		PointOptions{Params: laidOut.Bytes(), IdealTime: idealTime, TCD: tcd})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { n.Close() })
	return n
}

// A point that is not there, and an object that is none, are refused with the names that are.
func TestUnknownPoint(t *testing.T) {
	_, err := LoadPoint("pnc", PointOptions{})
	qt.Check(t, qt.ErrorMatches(err,
		`unknown notification point "pnc": want one of marked, pcn`))
	_, err = LoadPoint("pnc", PointOptions{Object: []byte("no object")})
	qt.Check(t, qt.ErrorMatches(err, "np pnc: .*"))
}

// Parameters of another layout than the object's are refused.
func TestPointWithOtherParameters(t *testing.T) {
	_, err := LoadPoint("pcn", PointOptions{Params: make([]byte, 4)})
	qt.Check(t, qt.ErrorMatches(err, "tc program np pcn: set params: .* to [0-9]+ bytes"))
}
