// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

// writeCapture writes the run's PFC events as 802.1Qbb frames, with one capture interface per port.
// The lab sends no such frames: its events take effect after the time that frames would take.
func writeCapture(path string, run *result.Run) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write capture: %w", err)
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(capture(w, run), w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("write capture %s: %w", path, err)
	}
	return nil
}

func capture(w *bufio.Writer, run *result.Run) error {
	names := make([]string, len(run.Ports))
	index := map[string]int{}
	for i, p := range run.Ports {
		names[i] = p.Name
		index[p.Name] = i
	}
	c, err := cnp.NewCapture(w, names...)
	if err != nil {
		return err
	}
	for _, e := range run.PFC {
		port := index[network.PortName(e.From, e.To)]
		frame, err := pfcFrame(port, e)
		if err != nil {
			return err
		}
		if err := c.WriteFrame(port, e.SentNs, frame); err != nil {
			return err
		}
	}
	return c.Flush()
}

// pfcFrame returns the frame of an event. The index of the sending port becomes its address.
func pfcFrame(port int, e result.PFCEvent) ([]byte, error) {
	mac := [6]byte{2, 0, 0, 1, byte(port >> 8), byte(port)}
	build := cnp.Resume
	if e.Kind == result.Pause {
		build = cnp.Pause
	}
	frame, err := build(mac, int(e.Class))
	if err != nil {
		return nil, err
	}
	return frame.AppendBinary(nil)
}
