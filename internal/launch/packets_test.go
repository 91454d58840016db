// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/experiment"
)

const tracedFile = `
name: traced
engine: sim
topology: {kind: dumbbell, senders: 2, rate: 10Gbps, delay: 1us, bottleneck: {rate: 5Gbps}}
schemes: [pcn]
warmup: 0ms
duration: 1ms
flows: [{name: F, from: A0..A1, to: B0..B1, start: 0ms, size: 93400B}]
`

// The trace has what ports counted: an event for each packet that they took in and sent. A frame
// arrives 800 ns and a delay after it started. The capture has the frames that were sent.
func TestPacketTrace(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	runs, err := RunEngines(t.Context(),
		Options{Experiment: parse(t, tracedFile), Out: out, Packets: true},
		[]Named{{experiment.EngineSim, NewSimulator()}})
	qt.Assert(t, qt.IsNil(err))
	f, err := os.Open(filepath.Join(out, "pcn", packetsFile))
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(strings.Join(rows[0], ",")+"\n", packetColumns))

	count := map[[2]string]uint64{}
	kinds := map[string]int{}
	sent, marked := 0, uint64(0)
	starts := map[string]int64{}
	for _, r := range rows[1:] {
		count[[2]string{r[1], r[2]}]++
		kinds[r[3]]++
		at, err := strconv.ParseInt(r[0], 10, 64)
		qt.Assert(t, qt.IsNil(err))
		if r[1] == "send" {
			sent++
		}
		if r[3] != "data" {
			continue
		}
		switch packet := r[4] + " " + r[5]; {
		case r[1] == "send" && r[2] == "S1->B0":
			starts[packet] = at
		case r[1] == "receive" && r[2] == "S1->B0":
			size, _ := strconv.ParseInt(r[6], 10, 64)
			qt.Assert(t, qt.Equals(at-starts[packet], 1000+size*8/10))
			if r[8] == "3" {
				marked++
			}
		}
	}
	for _, p := range runs[0].Ports {
		qt.Check(t, qt.Equals(count[[2]string{"enqueue", p.Name}], p.EnqueuedPackets))
		qt.Check(t, qt.Equals(count[[2]string{"send", p.Name}], p.SentPackets))
	}
	qt.Check(t, qt.Equals(marked, runs[0].Flows[0].MarkedPackets))
	qt.Check(t, qt.IsTrue(kinds["cnp"] > 0 && kinds["ack"] > 0))
	checkCapture(t, filepath.Join(out, "pcn", packetsCaptureFile), sent)
}

// checkCapture reads the frames of a capture.
func checkCapture(t *testing.T, path string, want int) {
	t.Helper()
	f, err := os.Open(path)
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	qt.Assert(t, qt.IsNil(err))
	frames, cnps := 0, 0
	for ; ; frames++ {
		data, info, err := r.ReadPacketData()
		if err != nil {
			break
		}
		if info.CaptureLength == info.Length {
			if _, err := cnp.Parse(data); err == nil {
				cnps++
				continue
			}
		}
		packet := gopacket.NewPacket(data, layers.LinkTypeEthernet, gopacket.NoCopy)
		ip, ok := packet.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		qt.Assert(t, qt.IsTrue(ok))
		qt.Check(t, qt.Equals(int(ip.Length)+14, info.Length))
		qt.Check(t, qt.Equals(checksum(data[14:34]), 0))
		_, ok = packet.Layer(layers.LayerTypeTCP).(*layers.TCP)
		qt.Check(t, qt.IsTrue(ok))
	}
	qt.Check(t, qt.Equals(frames, want))
	qt.Check(t, qt.IsTrue(cnps > 0))
}

// QCN's CNMs are whole frames in the capture: the feedback, and the headers of a packet that the
// flow sent, which go back to its sender.
func TestTraceOfCNMs(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	text := strings.Replace(tracedFile, "[pcn]", "[qcn]", 1) + "qcn: {qeq: 3KB}\n"
	_, err := RunEngines(t.Context(),
		Options{Experiment: parse(t, text), Out: out, Packets: true},
		[]Named{{experiment.EngineSim, NewSimulator()}})
	qt.Assert(t, qt.IsNil(err))
	f, err := os.Open(filepath.Join(out, "qcn", packetsCaptureFile))
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	qt.Assert(t, qt.IsNil(err))
	cnms := 0
	sent := map[string]bool{}
	for {
		data, _, err := r.ReadPacketData()
		if err != nil {
			break
		}
		c, err := cnp.ParseCNM(data)
		if err != nil {
			sent[string(data[14:34])+string(data[34:42])] = true
			continue
		}
		cnms++
		qt.Check(t, qt.IsTrue(c.QntzFb > 0 && c.QntzFb <= cnp.MaxQntzFb))
		qt.Check(t, qt.Equals(c.EncapsulatedPriority, 3))
		// the first 28 bytes of its IPv4 and TCP headers: lengths, addresses, ports and number
		qt.Check(t, qt.IsTrue(sent[string(c.MSDU[:20])+string(c.MSDU[20:28])]))
		qt.Check(t, qt.DeepEquals(c.DstMAC[2:], c.MSDU[12:16]))
	}
	qt.Check(t, qt.IsTrue(cnms > 0))
}

// A folder that can't be written to ends the run with an error.
func TestPacketTraceFails(t *testing.T) {
	out := t.TempDir()
	file := filepath.Join(out, "file")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, nil, 0o644)))
	j, err := Jobs(parse(t, tracedFile))
	qt.Assert(t, qt.IsNil(err))
	j[0].PacketsIn = filepath.Join(file, "pcn")
	_, err = NewSimulator().Run(t.Context(), j[0], noCPU, func(float64) {})
	qt.Check(t, qt.ErrorMatches(err, "write a trace of packets: .*"))
}
