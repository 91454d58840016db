// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
)

// linuxHead is a network with a router, S0, before the host A0. Its frames are long enough for
// IPv6, whose least MTU is 1280 bytes.
const linuxHead = `name: linux
topology: {kind: dumbbell, senders: 1, receivers: 1, rate: 100Mbps, delay: 1ms%s}
frame: 1514B
schemes: [cubic]
switch: {pfc: {off: true}, port_buffer: 500KB}
duration: 20s
warmup: 0ms
sample: 10ms
captures: [A0, B0]
`

// The addresses of A0, B0, and of the router behind them.
const (
	addressA0 = "10.0.0.1"
	addressS0 = "10.0.0.3"
)

// A router hides its client's address, a firewall drops and refuses, and rules count.
func TestRulesOfNftables(t *testing.T) {
	need(t, "nft", "curl", "python3")
	run := runLinks(t, fmt.Sprintf(linuxHead, "")+`nft:
  S0: router.nft
  B0: |
    table inet filter { chain input { type filter hook input priority 0;
      tcp dport 82 counter reject with tcp reset; }; }
programs:
  - {name: pages, host: B0, server: true,
     command: [python3, -u, -m, http.server, "80", -d, /etc]}
  - {name: fetch, host: A0, after: {program: pages, says: Serving},
     command: [curl, -sS, "http://B0/hostname"]}
  - {name: dropped, host: A0, after: {program: pages, says: Serving},
     command: [curl, -sS, --max-time, "2.5", "http://B0:81/"]}
  - {name: refused, host: A0, after: {program: pages, says: Serving},
     command: [curl, -sS, "http://B0:82/"]}
  - {name: translations, host: S0, after: dropped, command: [nft, list, ruleset]}
expect:
  - {what: the page comes, program: fetch, says: ^B0$}
  - {what: the server sees the router, program: pages, says: "^`+addressS0+` .*GET /hostname"}
  - {what: and not the client, program: pages, says: "^`+addressA0+`", max: 0}
  - {what: curl waits in vain, program: dropped, exit: 28}
  - {what: curl is refused, program: refused, exit: 7}
  - {what: a program on the router sees its rules, program: translations,
     says: "tcp dport 81 counter packets 3 "}
`, map[string]string{"router.nft": `
table ip nat { chain post { type nat hook postrouting priority 100; oifname "S1" masquerade; }; }
table ip filter { chain forward { type filter hook forward priority 0;
  tcp dport 81 counter drop; tcp dport 82 counter; }; }
`})
	// a SYN at once, and after 1 and 2 s (tcp_syn_linear_timeouts), each of 60 bytes with options
	qt.Check(t, qt.StringContains(string(run.Counters["S0.nft"]),
		"tcp dport 81 counter packets 3 bytes 180 drop"))
	qt.Check(t, qt.StringContains(string(run.Counters["S0.nft"]),
		"tcp dport 82 counter packets 1 bytes 60\n"))
	// curl tries the IPv6 address when it is refused at the other: a header is 20 bytes longer
	qt.Check(t, qt.StringContains(string(run.Counters["B0.nft"]),
		"tcp dport 82 counter packets 2 bytes 140 reject with tcp reset"))
}

// Mistakes in rules are told as nft tells them.
func TestWrongRules(t *testing.T) {
	need(t, "nft")
	e := parsePrograms(t, "nft: {S0: \"table ip t {\\n  chain c { tcp dport eighty drop }\\n}\"}\n"+
		"programs: [{name: p, host: A0, command: [echo]}]\n")
	engine, err := NewMicroVMs("", false)
	qt.Assert(t, qt.IsNil(err))
	j := job.Job{Experiment: e, Scheme: "cubic"}
	_, err = engine.Run(t.Context(), j, noCPU, func(float64) {})
	qt.Check(t, qt.ErrorMatches(err, `(?s).*rules of S0: nft: /dev/stdin:2:.*eighty.*`))
}

// etherTypes counts a capture's packets by the type in their Ethernet header.
func etherTypes(t *testing.T, capture []byte) map[string]int {
	t.Helper()
	types := map[string]int{}
	for _, m := range regexp.MustCompile(`(?s)\x02\x00\x00\x00\x00\x01`+
		`\x02\x00\x00\x00\x00\x01(..)`).FindAllSubmatch(capture, -1) {
		types[fmt.Sprintf("%x", m[1])]++
	}
	return types
}

// Hosts have IPv6 addresses beside those of IPv4, by name too, and send nothing that their programs
// did not ask for: no neighbour, router or group is looked for. A firewall of IPv6 drops at the
// router between them.
func TestIPv6(t *testing.T) {
	need(t, "ping", "iperf3", "curl", "nft")
	const programs = `programs:
  - {name: server, host: B0, command: [iperf3, -s, --forceflush], server: true}
  - {name: pages, host: B0, server: true,
     command: [python3, -u, -m, http.server, "80", -d, /etc, --bind, "::"]}
  - {name: ping, host: A0, command: [ping, -VERSION, -c, "3", B0]}
  - {name: iperf, host: A0, after: {program: server, says: listening}, at: 5s,
     command: [iperf3, -VERSION, -c, B0, -O, "1", -t, "2", -J]}
  - {name: curl, host: A0, after: iperf, command: [curl, -VERSION, -sS, "http://B0/hostname"]}
  - {name: dropped, host: A0, after: iperf,
     command: [curl, -VERSION, -sS, --max-time, "1", "http://B0:81/"]}
expect:
  - {what: all come back, program: ping, says: "3 packets transmitted, 3 received"}
  - {what: the link's rate within 1%, program: iperf,
     json: end.sum_received.bits_per_second, min: MIN, max: MAX}
  - {what: the page comes, program: curl, says: ^B0$}
  - {what: the firewall drops, program: dropped, exit: 28}
`
	const rules = `nft: {S0: "table inet f { chain f { type filter hook forward priority 0;
  tcp dport 81 counter drop; }; }"}
`
	const frame, ethernet, tcp = 1514, 14, 32
	for _, test := range []struct {
		version, etherType string
		header             int
	}{{"4", "0800", 20}, {"6", "86dd", 40}} {
		t.Run("IPv"+test.version, func(t *testing.T) {
			rate := 100e6 * float64(frame-ethernet-test.header-tcp) / frame
			text := strings.NewReplacer("VERSION", test.version,
				"MIN", fmt.Sprintf("%.0f", 0.99*rate), "MAX", fmt.Sprintf("%.0f", 1.01*rate),
			).Replace(programs)
			run := runLinks(t, fmt.Sprintf(linuxHead, "")+rules+text, map[string]string{})
			for host, capture := range run.Captures {
				types := etherTypes(t, capture)
				qt.Check(t, qt.HasLen(types, 1), qt.Commentf("%s: %v", host, types))
				qt.Check(t, qt.IsTrue(types[test.etherType] > 1000))
			}
			qt.Check(t, qt.StringContains(string(run.Counters["S0.nft"]),
				"tcp dport 81 counter packets 1 "))
		})
	}
}

// The longest that datagrams wait, and which came.
func delaysOf(got []datagram) (longestNs int64, came map[int]int64) {
	came = map[int]int64{}
	for _, d := range got {
		came[d.i] = d.came - d.sent
		longestNs = max(longestNs, d.came-d.sent)
	}
	return longestNs, came
}

// sendOver sends datagrams from A0 to B0 through a link of 10 Mbit/s with a qdisc.
func sendOver(t *testing.T, qdisc string, count int, gap string, size int) ([]datagram,
	*result.Run) {
	t.Helper()
	own := ""
	if qdisc != "" {
		own = fmt.Sprintf(", links: [{link: S0-S1, rate: 10Mbps, qdisc: %q}]", qdisc)
	} else {
		own = ", links: [{link: S0-S1, rate: 10Mbps}]"
	}
	run := runLinks(t, fmt.Sprintf(linuxHead, own)+fmt.Sprintf(`programs:
  - {name: b, host: B0, inputs: [links.py], command: [python3, links.py, "0", "0", "700"]}
  - {name: a, host: A0, inputs: [links.py],
      command: [python3, links.py, "%d", %q, "%d", B0]}
`, count, gap, size), map[string]string{})
	_, got := datagramsOf(t, run, "b")
	return got, run
}

// Large pings and datagrams go in fragments, over one of several paths, by IPv4 and IPv6.
func TestFragments(t *testing.T) {
	need(t, "ping", "python3")
	e, err := experiment.Parse("f", []byte(`name: fragments
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2, rate: 100Mbps, delay: 1ms}
schemes: [cubic]
frame: 1514B
switch: {pfc: {off: true}, port_buffer: 500KB}
duration: 20s
warmup: 0ms
sample: 10ms
files:
  echo.py: |
    import socket
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.bind(("::", 5000))
    print("ready", flush=True)
    while True:
      data, address = s.recvfrom(65535)
      s.sendto(data, address)
  ask.py: |
    import os, socket
    for family in socket.AF_INET, socket.AF_INET6:
      s = socket.socket(family, socket.SOCK_DGRAM)
      s.settimeout(1)
      data = os.urandom(8192)
      s.sendto(data, socket.getaddrinfo("H2", 5000, family)[0][4])
      assert s.recv(65535) == data
programs:
  - {name: ping, host: H0, command: [ping, -c, "3", -s, "4000", H2]}
  - {name: ping6, host: H0, command: [ping, "-6", -c, "3", -s, "4000", H2]}
  - {name: echo, host: H2, server: true, inputs: [echo.py], command: [python3, echo.py]}
  - {name: ask, host: H0, after: {program: echo, says: ready}, inputs: [ask.py],
     command: [python3, ask.py]}
expect:
  - {what: all answers come, program: ping, says: 3 received}
  - {what: all answers of IPv6 come, program: ping6, says: 3 received}
  - {what: datagrams of 8 KB come back, program: ask, exit: 0}
`))
	qt.Assert(t, qt.IsNil(err))
	runPrograms(t, e, "cubic")
}

// netem delays to the ns, and a qdisc that packets do not wait in changes no time.
func TestQdiscsKeepTime(t *testing.T) {
	need(t, "tc", "python3")
	const count = 20
	plain, _ := sendOver(t, "", count, "0.01", 700)
	empty, _ := sendOver(t, "fq_codel", count, "0.01", 700)
	late, run := sendOver(t, "netem delay 7ms", count, "0.01", 700)
	qt.Assert(t, qt.HasLen(plain, count))
	qt.Assert(t, qt.HasLen(empty, count))
	qt.Assert(t, qt.HasLen(late, count))
	for i := range plain {
		// the programs' starts differ between runs by nothing
		qt.Check(t, qt.Equals(empty[i].came-empty[i].sent, plain[i].came-plain[i].sent))
		qt.Check(t, qt.Equals(late[i].came-late[i].sent, plain[i].came-plain[i].sent+7_000_000))
	}
	var counted []struct {
		Kind    string
		Packets int
	}
	qt.Assert(t, qt.IsNil(json.Unmarshal(run.Counters["S0-S1.json"], &counted)))
	qt.Assert(t, qt.HasLen(counted, 2))
	qt.Check(t, qt.Equals(counted[1].Kind, "netem"))
	qt.Check(t, qt.Equals(counted[1].Packets, count))
}

// The link is never idle while a qdisc has packets, and holds none back: what is sent at once comes
// as from the lab's own port, to the ns, whatever the frames' lengths.
func TestQdiscsFillTheLink(t *testing.T) {
	need(t, "tc", "python3")
	for _, size := range []int{60, 700, 1400} {
		plain, _ := sendOver(t, "", 100, "0", size)
		queued, _ := sendOver(t, "pfifo limit 1000", 100, "0", size)
		qt.Assert(t, qt.HasLen(plain, 100))
		qt.Assert(t, qt.HasLen(queued, 100))
		for i := range plain {
			differNs := (queued[i].came - queued[i].sent) - (plain[i].came - plain[i].sent)
			// the bucket rounds the time of each frame to a ns
			qt.Check(t, qt.IsTrue(differNs >= -100 && differNs <= 100),
				qt.Commentf("size %d, datagram %d: %d ns", size, i, differNs))
		}
	}
}

// qdiscs.csv has what waits at each time, by when the datagrams come, and all drops.
func TestQdiscsOverTime(t *testing.T) {
	need(t, "tc", "python3")
	const (
		count, limit, size = 400, 300, 700
		// of the longest: numbers in datagrams have 1 to 3 digits; UDP, IP and Ethernet
		frameBytes = size + 9 + 8 + 20 + 14
		frameNs    = frameBytes * 8 * 1e9 / 10e6 // on the slow link
		behindNs   = 2*1e6 + frameNs*2.1         // two delays, the port, and both links
		sentNs     = count * frameNs / 10        // when the last has come from A0
	)
	_, run := sendOver(t, fmt.Sprintf("pfifo limit %d", limit), count, "0", size)
	beganNs, got := datagramsOf(t, run, "b") // at t = 0
	qt.Assert(t, qt.IsTrue(len(got) >= limit && len(got) < count))
	var drops, long int
	for _, q := range run.Qdiscs {
		if q.Port != "S0->S1" {
			continue
		}
		drops += int(q.DroppedPackets)
		qt.Check(t, qt.IsTrue(q.BacklogBytes <= q.BacklogPackets*frameBytes &&
			q.BacklogBytes >= q.BacklogPackets*(frameBytes-2)))
		qt.Check(t, qt.IsTrue(q.BacklogPackets <= limit))
		waiting := 0
		for _, d := range got {
			if left := float64(d.came-beganNs) - behindNs; left > float64(q.TimeNs) {
				waiting++
			}
		}
		if float64(q.TimeNs) < float64(got[0].sent-beganNs)+sentNs+1e6 {
			continue // not all have come
		}
		long += min(waiting/100, 1)
		// the qdisc hands over ahead by the one frame of the shaper's bucket
		qt.Check(t, qt.IsTrue(math.Abs(float64(waiting)-float64(q.BacklogPackets)) <= 2),
			qt.Commentf("at %d ns: %d packets wait, want %d", q.TimeNs, q.BacklogPackets, waiting))
	}
	qt.Check(t, qt.Equals(drops, count-len(got)))
	qt.Check(t, qt.IsTrue(long > 3), qt.Commentf("%d bins with a long queue", long))
}

// RED drops nothing below its least queue, and begins below its greatest.
func TestREDDropsBetweenItsBounds(t *testing.T) {
	need(t, "tc", "python3")
	const (
		payload, headers = 1000, 14 + 20 + 8
		leastBytes       = 30_000
		mostBytes        = 90_000
		bps              = 10e6
		count            = 600
	)
	// 12.5 Mbit/s into 10: the queue grows by 300 bytes a packet
	got, _ := sendOver(t, fmt.Sprintf("red limit 400000 min %d max %d avpkt 1000 burst 50 "+
		"probability 0.2", leastBytes, mostBytes), count, fmt.Sprint(8*(payload+headers)/12.5e6),
		payload)
	_, came := delaysOf(got)
	first := 0
	for _, ok := came[first]; ok; _, ok = came[first] {
		first++
	}
	qt.Assert(t, qt.IsTrue(first > 0 && first < count))
	queued := float64(came[first-1]-came[0]) / 1e9 * bps / 8
	t.Logf("the first drop is of datagram %d, at a queue of %.0f bytes", first, queued)
	// the average that RED goes by lags behind a queue that grows
	qt.Check(t, qt.IsTrue(queued >= leastBytes && queued <= mostBytes),
		qt.Commentf("%.0f bytes", queued))
}

// tcpOver measures a TCP flow's rate and mean round trip over a link of 20 Mbit/s with a qdisc.
func tcpOver(t *testing.T, qdisc string) (bps, meanRTTms float64) {
	t.Helper()
	run := runLinks(t, fmt.Sprintf(linuxHead, fmt.Sprintf(
		", links: [{link: S0-S1, rate: 20Mbps, delay: 8ms, qdisc: %q}]", qdisc))+`programs:
  - {name: server, host: B0, command: [iperf3, -s, --forceflush], server: true}
  - {name: iperf, host: A0, after: {program: server, says: listening},
     command: [iperf3, -c, B0, -O, "3", -t, "6", -J]}
`, map[string]string{})
	var said struct {
		End struct {
			Streams []struct {
				Sender struct {
					MeanRTT float64 `json:"mean_rtt"`
				}
			}
			Received struct {
				Bps float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	out := run.Programs[1].Files[result.StdoutFile]
	qt.Assert(t, qt.IsNil(json.Unmarshal(out, &said)), qt.Commentf("%s", out))
	qt.Assert(t, qt.HasLen(said.End.Streams, 1))
	return said.End.Received.Bps, said.End.Streams[0].Sender.MeanRTT / 1000
}

// codelRate returns the share of a link's rate that a flow of CUBIC has behind CoDel, in the shape
// of a sawtooth. CoDel drops one packet when all have waited for longer than its target for an
// interval (RFC 8289). CUBIC then goes on with 0.7 of its window. Where that is less than the link
// and the way back hold, the link is idle until it has grown by 3 (1 - 0.7) / (1 + 0.7) of a packet
// a round trip, CUBIC's growth where the window is small (RFC 9438, section 4.3).
func codelRate(targetMs, intervalMs, baseMs, packetMs float64) float64 {
	const beta = 0.7
	const growth = 3 * (1 - beta) / (1 + beta)
	full := baseMs / packetMs // packets with which the link is never idle
	dropped := (baseMs + targetMs) / packetMs
	dropped += growth * intervalMs / (dropped * packetMs)
	after := math.Floor(beta * dropped)
	if after >= full {
		return 1
	}
	meanMs := packetMs * (full + dropped) / 2
	periodMs := (full-after)/growth*baseMs + (dropped-full)/growth*meanMs
	idleMs := (full - after) / growth * baseMs * (full - after) / full / 2
	return 1 - idleMs/periodMs
}

// fq_codel and pie keep the delay near their targets where a FIFO is full, and cake has the
// rate that it is told.
func TestQdiscsManageQueues(t *testing.T) {
	need(t, "tc", "iperf3")
	const (
		payloadShare = float64(1514-14-20-32) / 1514
		baseRTTms    = 20.0
		linkBps      = 20e6
		packetMs     = 1514 * 8 / linkBps * 1000
		fullMs       = 200 * packetMs // of the FIFO
		// links at 100 Mbit/s and at 20, the shaper's frame, and a second packet for an ACK
		idleRTTms = baseRTTms + (0.4+1+1+1)*packetMs
	)
	for _, test := range []struct {
		qdisc           string
		rate            float64 // of frames, which is held to 1%
		leastMs, mostMs float64 // of the queue
	}{
		{"pfifo limit 200", linkBps, fullMs / 2, fullMs},
		{"fq_codel", linkBps * codelRate(5, 100, idleRTTms, packetMs), 0, 3 * 5},
		// it drops at 15 ms and above, and 0.7 of 22 + 15 ms is more than 22
		{"pie target 15ms", linkBps, 0, 2 * 15},
		{"cake bandwidth 15mbit besteffort", 15e6, 0, 3 * 5},
	} {
		t.Run(test.qdisc, func(t *testing.T) {
			bps, rttMs := tcpOver(t, test.qdisc)
			queueMs := rttMs - baseRTTms
			t.Logf("%.4g of the rate, %.1f ms in the queue", bps/payloadShare/test.rate, queueMs)
			qt.Check(t, qt.IsTrue(math.Abs(bps/payloadShare/test.rate-1) <= 0.01),
				qt.Commentf("%.0f bit/s", bps))
			qt.Check(t, qt.IsTrue(queueMs >= test.leastMs && queueMs <= test.mostMs),
				qt.Commentf("%.1f ms", queueMs))
		})
	}
}

// qdiscs.csv has all marks that qdiscs of any kind have counted in the end.
func TestQdiscsCountMarks(t *testing.T) {
	need(t, "tc", "iperf3")
	for _, qdisc := range []string{"red limit 400000 min 5000 max 15000 avpkt 1500 burst 10 ecn " +
		"bandwidth 20mbit probability 0.9", "fq_codel ce_threshold 1ms", "pie target 2ms ecn",
		"cake bandwidth 15mbit besteffort", "fq ce_threshold 1ms"} {
		t.Run(strings.Fields(qdisc)[0], func(t *testing.T) {
			e, err := experiment.Parse("f", []byte(strings.Replace(fmt.Sprintf(linuxHead,
				fmt.Sprintf(", links: [{link: S0-S1, rate: 20Mbps, qdisc: %q}]", qdisc)),
				"[cubic]", "[dctcp]", 1)+`programs:
  - {name: server, host: B0, command: [iperf3, -s, --forceflush], server: true}
  - {name: client, host: A0, after: {program: server, says: listening},
     command: [iperf3, -c, B0, -t, "1", -P, "4"]}
`))
			qt.Assert(t, qt.IsNil(err))
			run := runPrograms(t, e, "dctcp")
			var marks, counted uint64
			for _, q := range run.Qdiscs {
				if q.Port == "S0->S1" {
					marks += q.MarkedPackets
				}
			}
			for _, m := range regexp.MustCompile(`"(?:ecn_mark|ce_mark|marked)":(\d+)`).
				FindAllStringSubmatch(string(run.Counters["S0-S1.json"]), -1) {
				n, err := strconv.ParseUint(m[1], 10, 64)
				qt.Assert(t, qt.IsNil(err))
				counted += n
			}
			qt.Check(t, qt.Equals(marks, counted))
			qt.Check(t, qt.IsTrue(marks > 0), qt.Commentf("%d marks", marks))
		})
	}
}

// Rules, qdiscs and IPv6 do the same in each run.
func TestLinuxNetworkGivesTheSameBytes(t *testing.T) {
	need(t, "nft", "tc", "iperf3")
	const qdisc = `, links: [{link: S0-S1, rate: 50Mbps, qdisc: cake bandwidth 40mbit}]`
	e, err := experiment.Parse("f", []byte(fmt.Sprintf(linuxHead, qdisc)+`
nft: {S0: "table ip n { chain c { type nat hook postrouting priority 100;
  masquerade random; }; }"}
programs:
  - {name: server, host: B0, command: [iperf3, -s, --forceflush], server: true}
  - {name: client, host: A0, after: {program: server, says: listening},
     command: [iperf3, -c, B0, -t, "1", -P, "4"]}
`))
	qt.Assert(t, qt.IsNil(err))
	first := runPrograms(t, e, "cubic")
	busy(t)
	qt.Check(t, qt.HasLen(result.Diff(first, runPrograms(t, e, "cubic")), 0))
}
