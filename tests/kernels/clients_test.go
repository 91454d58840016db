// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/loader"
)

const (
	clientBytes = 4 << 20
	frameBytes  = 1514
)

// command is a program that runs on a host.
type command struct {
	*exec.Cmd
	out bytes.Buffer
	end chan error
}

// start starts a program in the namespace; it is killed when the test ends.
func (e end) start(t *testing.T, name string, args ...string) *command {
	t.Helper()
	c := &command{Cmd: exec.CommandContext(t.Context(), name, args...), end: make(chan error, 1)}
	c.Stdout, c.Stderr = &c.out, &c.out
	nstest.Do(t, e.NS, c.Start)
	go func() { c.end <- c.Wait() }()
	return c
}

// finish waits for the end of a program that must succeed, and returns what it said.
func (c *command) finish(t *testing.T) []byte {
	t.Helper()
	if err := <-c.end; err != nil {
		t.Fatalf("%s: %v\n%s", c, err, c.out.Bytes())
	}
	return c.out.Bytes()
}

// listens says whether a program of the namespace listens at the port.
func (e end) listens(t *testing.T, port int) bool {
	t.Helper()
	var text []byte
	nstest.Do(t, e.NS, func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/tcp")
		return err
	})
	return bytes.Contains(text, fmt.Appendf(nil, ":%04X 00000000:0000 0A", port))
}

// installed says whether the guest has the programs: an emulated one has none.
func installed(programs ...string) bool {
	return !slices.ContainsFunc(programs, func(name string) bool {
		_, err := exec.LookPath(name)
		return err != nil
	})
}

// iperf3 sends with the real client and server.
func iperf3(t *testing.T) string {
	if !installed("iperf3", "ss") {
		return untried
	}
	const port = 5201
	control := registered(t, func() (*loader.Control, error) { // so slow that there is time to look
		return register("pcn", 1e8, nil)
	})
	p := newPath(t)
	nstest.Sysctl(t, p.client.NS, "tcp_ecn", "1") // it chooses the control when it is connected: too late to ask for ECN
	server := p.server.start(t, "iperf3", "-s", "-1", "-B", p.server.Addr.String())
	nstest.Eventually(t, "iperf3 listens", func() bool { return p.server.listens(t, port) })
	client := p.client.start(t, "iperf3", "-c", p.server.Addr.String(), "-C", "pcn", "-n", strconv.Itoa(clientBytes), "-J")
	var f loader.Flow
	nstest.Eventually(t, "iperf3 sends", func() bool {
		var found bool
		f, found = p.sender(t, control, clientBytes/64)
		return found
	})
	// what was written goes out, and then nothing changes
	qt.Assert(t, qt.IsNil(client.Process.Signal(unix.SIGSTOP)))
	compare(t, p.client, control, f.FlowKey)
	qt.Assert(t, qt.IsNil(client.Process.Signal(unix.SIGCONT)))
	var report struct {
		End struct {
			Sent       struct{ Bytes int } `json:"sum_sent"`
			Congestion string              `json:"sender_tcp_congestion"`
		}
	}
	qt.Assert(t, qt.IsNil(json.Unmarshal(client.finish(t), &report)))
	qt.Check(t, qt.Equals(report.End.Congestion, "pcn"))
	qt.Check(t, qt.IsTrue(report.End.Sent.Bytes >= clientBytes))
	server.finish(t)
	return yes
}

// curl uploads a file, with the namespace's congestion control.
func curl(t *testing.T) string {
	if !installed("curl", "ss") {
		return untried
	}
	control := registered(t, registerPCN)
	p := newPath(t)
	nstest.Sysctl(t, p.client.NS, "tcp_congestion_control", "pcn")
	data := make([]byte, clientBytes)
	stream().Read(data)
	file := filepath.Join(t.TempDir(), "data")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, data, 0o644)))
	var l net.Listener
	nstest.Do(t, p.server.NS, func() (err error) {
		l, err = (&net.ListenConfig{Control: socket.Choose("pcn")}).Listen(t.Context(), "tcp4", p.server.Addr.String()+":0")
		return err
	})
	received, answer := make(chan []byte, 1), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing is seen below
		received <- body
		<-answer
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	client := p.client.start(t, "curl", "-sS", "--fail", "-T", file, "http://"+l.Addr().String())
	var got []byte
	select {
	case got = <-received:
	case err := <-client.end:
		t.Fatalf("curl: %v\n%s", err, client.out.Bytes())
	}
	qt.Check(t, qt.IsTrue(bytes.Equal(got, data)))
	f, found := p.sender(t, control, clientBytes)
	qt.Assert(t, qt.IsTrue(found))
	compare(t, p.client, control, f.FlowKey)
	close(answer)
	client.finish(t)
	return yes
}

// sender is the flow of the client that has sent at least so many bytes.
func (p path) sender(t *testing.T, control *loader.Control, sentBytes uint64) (loader.Flow, bool) {
	t.Helper()
	flows, err := control.Flows()
	qt.Assert(t, qt.IsNil(err))
	for _, f := range flows {
		if f.Src.Addr() == p.client.Addr && f.SentBytes >= sentBytes {
			return f, true
		}
	}
	return loader.Flow{}, false
}

// compare waits until the flow is quiet, and holds what the control tells of it against ss, to 2%.
func compare(t *testing.T, e end, control *loader.Control, k loader.FlowKey) {
	t.Helper()
	const quiet = 100 * time.Millisecond
	var f, before loader.Flow
	nstest.Eventually(t, "the flow is quiet", func() bool {
		time.Sleep(quiet)
		var err error
		before = f
		f, err = control.Flow(k)
		qt.Assert(t, qt.IsNil(err))
		return reflect.DeepEqual(f, before)
	})
	stats := e.ss(t, k)
	for what, want := range map[string]float64{
		"delivered":       float64(f.Packets),
		"data_segs_out":   float64(f.SentBytes) / frameBytes,
		"rtt":             f.SRTT.Seconds() * 1e3,
		"pacing_rate":     float64(f.SendRateBps) * payloadBytes / frameBytes,
		"retransmissions": float64(f.Retransmissions),
	} {
		got, ok := stats[what]
		qt.Assert(t, qt.IsTrue(ok), qt.Commentf("ss tells no %s: %v", what, stats))
		qt.Check(t, qt.IsTrue(math.Abs(got-want) <= 0.02*want), qt.Commentf("%s: ss %g, flow table %g", what, got, want))
		t.Logf("%s: ss %g, flow table %g", what, got, want)
	}
}

// ss is what it shows of a connection.
func (e end) ss(t *testing.T, k loader.FlowKey) map[string]float64 {
	t.Helper()
	out := e.start(t, "ss", "-Htin", fmt.Sprintf("sport = :%d and dport = :%d", k.Src.Port(), k.Dst.Port())).finish(t)
	stats := map[string]float64{"retransmissions": 0}
	fields := strings.Fields(string(out))
	for i, field := range fields {
		if field == "pacing_rate" && i+1 < len(fields) {
			stats[field] = bitsPerS(t, fields[i+1])
			continue
		}
		name, value, ok := strings.Cut(field, ":")
		if !ok {
			continue
		}
		if name == "retrans" { // under way / all
			name, value = "retransmissions", value[strings.Index(value, "/")+1:]
		}
		value, _, _ = strings.Cut(value, "/") // rtt / its variance
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			stats[name] = v
		}
	}
	return stats
}

// bitsPerS reads a rate as ss writes it: 965432bps, 965Kbps, 96.5Mbps.
func bitsPerS(t *testing.T, s string) float64 {
	t.Helper()
	number := strings.TrimSuffix(s, "bps")
	exponent := strings.IndexByte("KMGT", number[len(number)-1]) + 1
	v, err := strconv.ParseFloat(strings.TrimRight(number, "KMGT"), 64)
	qt.Assert(t, qt.IsNil(err))
	return v * math.Pow(1000, float64(exponent))
}
