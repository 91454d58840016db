// SPDX-License-Identifier: Apache-2.0

package result

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pcn-linux/pcn/internal/workload"
)

// small returns a run with something in every field that is not always zero.
func small() *Run {
	return &Run{
		Manifest: Manifest{
			Tool: "pcn test", Experiment: "small", Case: "low-rate",
			ExperimentSHA256: "d9c7ad0987366663ad6f7b7ddb01a433a21a0a83c5693ab7c7b8bdceb9a54b2a",
			Scheme:           "pcn", Seed: math.MaxUint64, DilationShift: 10, DurationNs: 400, WarmupNs: 100,
			SampleNs: 100, BaseRTTNs: 30_000,
			GuestSHA256: "0a", SchemeSHA256: "0b", KernelSHA256: "0c",
			Kernel: "7.2", QEMU: "7.2", Deterministic: true, Machine: UML, GuestCPUBusy: 0.5,
			LatenessP50Ns: 1, LatenessP99Ns: 2, LatenessMaxNs: 3,
			CausalityViolations: 4, LostPackets: map[string]uint64{"tcp retransmissions": 5,
				"kernel": 0}, Verdict: Invalid, Reasons: []string{"1 packet lost", "late"},
			Wall: Wall{TotalS: 1.5, BootS: 0.5, Host: "here"},
		},
		Experiment: []byte("name: small\n"),
		Flows: []Flow{
			{
				Name: "F2", Group: "F", Scheme: "pcn", Src: "H0", Dst: "R0", SrcAddr: "10.0.0.1",
				SrcPort: 1, DstAddr: "10.0.0.2", DstPort: 2, Proto: TCP,
				StartNs: -100, CompletionNs: 9, SentBytes: 5, ReceivedBytes: 4, Packets: 3,
				MarkedPackets: 2, EchoedPackets: 2, CNPDecrease: 1, CNPIncrease: 6,
				SendRateBps: 40e9, RecRateBps: 20e9, Stats: []Stat{{"w", 1. / 128}, {"alpha", 0.25}}, CwndPackets: 12,
				SRTTNs: 31_000, Retransmissions: 7, Timeouts: 8, ECN: true,
			},
			{Name: "F10", Group: "F", Scheme: "pcn", Proto: UDP, EndNs: new(int64(0))},
		},
		Ports: []Port{
			{
				Name: "S0->S1", Node: "S0", Peer: "S1", Tier: "switch", RateBps: 40e9,
				DelayNs: 5000, EnqueuedPackets: 36, EnqueuedBytes: 15_000, SentPackets: 8,
				SentBytes:     8000,
				QueuedPackets: 3, MarkedPackets: 2, DroppedBufferPackets: 1, DroppedRingPackets: 2,
				DroppedNoClassPackets: 3, DroppedResetPackets: 4,
				DroppedWREDPackets: 10, DroppedTailPackets: 11,
				PauseSent: 1, ResumeSent: 2, PauseReceived: 3, ResumeReceived: 4, PausedNs: 5,
				QueueMaxBytes: 6, LatenessP50Ns: 7, LatenessP99Ns: 8, LatenessMaxNs: 9,
			},
		},
		Series: []Sample{
			{TimeNs: -100, Kind: KindFlow, Name: "F2", RateBps: 5, MarkedPackets: 1},
			{TimeNs: -100, Kind: KindPort, Name: "S0->S1", RateBps: 6, QueueBytes: 0,
				QueueMaxBytes: 8, MarkedPackets: 9},
			{TimeNs: -100, Kind: KindSender, Name: "F2", RateBps: 7, CwndPackets: 12, SRTTNs: 31,
				CNPs: 3},
			{TimeNs: 0, Kind: KindFlow, Name: "F2"},
			{TimeNs: 0, Kind: KindSender, Name: "F2"},
		},
		PFC: []PFCEvent{
			{SentNs: -5, EffectNs: 0, From: "S1", To: "S0", Class: 3, Kind: Pause},
			{SentNs: -5, EffectNs: 0, From: "S1", To: "S0", Class: 3, Kind: Resume},
			{SentNs: 7, EffectNs: 12, From: "S1", To: "S0", Class: 1, Kind: Pause},
		},
		PauseRepeats: []PauseRepeats{
			{TimeNs: -100, From: "S1", To: "S0", Class: 3, Frames: 4},
			{TimeNs: 0, From: "S1", To: "S0", Class: 1, Frames: 5},
			{TimeNs: 0, From: "S1", To: "S0", Class: 3, Frames: 6},
		},
		Completions: []Completion{
			NewCompletion(Completion{Flow: "F2", Group: "F", Src: "H0", Dst: "R0", Priority: 1,
				SizeBytes: 5, StartNs: -100, FCTNs: new(int64(9)), IdealNs: 7}),
			{Flow: "F10", Group: "F", Src: "H0", Dst: "R0", SizeBytes: 6, IdealNs: 8},
		},
		Trace: []workload.Flow{{StartNs: -100, Src: "H0", Dst: "R0", SizeBytes: 5},
			{StartNs: -200, Src: "H0", Dst: "R0", SizeBytes: 6}},
	}
}

func write(t *testing.T, r *Run) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	qt.Assert(t, qt.IsNil(r.Write(dir)))
	return dir
}

func readFile(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	qt.Assert(t, qt.IsNil(err))
	return string(data)
}

// content compares what runs have, and not how they were read.
var content = cmpopts.IgnoreFields(Run{}, "index")

func TestWriteThenRead(t *testing.T) {
	want := small()
	got, err := Read(write(t, want))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.CmpEquals(got, want, content))
}

// The columns are what others read: they don't change by accident.
func TestFiles(t *testing.T) {
	dir := write(t, small())
	for name, want := range map[string]string{
		flowsFile: `flow,group,scheme,src,dst,src_addr,src_port,dst_addr,dst_port,proto,priority,start_ns,end_ns,completion_ns,sent_bytes,received_bytes,packets,marked_packets,echoed_packets,cnp_decrease,cnp_increase,send_rate_bps,rec_rate_bps,cwnd_packets,srtt_ns,retransmissions,timeouts,ecn,w,alpha
F2,F,pcn,H0,R0,10.0.0.1,1,10.0.0.2,2,tcp,0,-100,,9,5,4,3,2,2,1,6,40000000000,20000000000,12,31000,7,8,true,0.0078125,0.25
F10,F,pcn,,,,0,,0,udp,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,false,,
`,
		portsFile: `port,node,peer,tier,rate_bps,delay_ns,enqueued_packets,enqueued_bytes,sent_packets,sent_bytes,queued_packets,marked_packets,dropped_buffer_packets,dropped_ring_packets,dropped_noclass_packets,dropped_reset_packets,dropped_wred_packets,dropped_tail_packets,pause_sent,resume_sent,pause_received,resume_received,paused_ns,queue_max_bytes,lateness_p50_ns,lateness_p99_ns,lateness_max_ns
S0->S1,S0,S1,switch,40000000000,5000,36,15000,8,8000,3,2,1,2,3,4,10,11,1,2,3,4,5,6,7,8,9
`,
		seriesFile: `time_ns,kind,name,rate_bps,queue_bytes,queue_max_bytes,marked_packets,cwnd_packets,srtt_ns,cnps
-100,flow,F2,5,,,1,,,
-100,port,S0->S1,6,0,8,9,,,
-100,sender,F2,7,,,,12,31,3
0,flow,F2,0,,,0,,,
0,sender,F2,0,,,,0,0,0
`,
		completionFile: `flow,group,src,dst,priority,size_bytes,start_ns,fct_ns,ideal_ns,slowdown
F2,F,H0,R0,1,5,-100,9,7,1.2857
F10,F,H0,R0,0,6,0,,8,
`,
		traceFile: `start_ns,src,dst,size_bytes,priority
-100,H0,R0,5,0
-200,H0,R0,6,0
`,
		pfcFile: `sent_ns,effect_ns,from,to,class,kind
-5,0,S1,S0,3,pause
-5,0,S1,S0,3,resume
7,12,S1,S0,1,pause
`,
		repeatsFile: `time_ns,from,to,class,frames
-100,S1,S0,3,4
0,S1,S0,1,5
0,S1,S0,3,6
`,
		experimentFile: "name: small\n",
		manifestFile: `{
  "tool": "pcn test",
  "experiment": "small",
  "case": "low-rate",
  "experiment_sha256": "d9c7ad0987366663ad6f7b7ddb01a433a21a0a83c5693ab7c7b8bdceb9a54b2a",
  "scheme": "pcn",
  "seed": 18446744073709551615,
  "dilation_shift": 10,
  "duration_ns": 400,
  "warmup_ns": 100,
  "sample_ns": 100,
  "base_rtt_ns": 30000,
  "guest_sha256": "0a",
  "scheme_sha256": "0b",
  "kernel": "7.2",
  "kernel_sha256": "0c",
  "qemu": "7.2",
  "deterministic": true,
  "machine": "uml",
  "guest_cpu_busy": 0.5,
  "lateness_p50_ns": 1,
  "lateness_p99_ns": 2,
  "lateness_max_ns": 3,
  "host_lateness": {
    "starts": {
      "count": 0,
      "p50_ns": 0,
      "p99_ns": 0,
      "max_ns": 0
    },
    "acks": {
      "count": 0,
      "p50_ns": 0,
      "p99_ns": 0,
      "max_ns": 0
    },
    "data": {
      "count": 0,
      "p50_ns": 0,
      "p99_ns": 0,
      "max_ns": 0
    }
  },
  "causality_violations": 4,
  "lost_packets": {
    "kernel": 0,
    "tcp retransmissions": 5
  },
  "verdict": "invalid",
  "reasons": [
    "1 packet lost",
    "late"
  ],
  "wall": {
    "started_at": "0001-01-01T00:00:00Z",
    "total_s": 1.5,
    "boot_s": 0.5,
    "host": "here"
  }
}
`,
	} {
		t.Run(name, func(t *testing.T) {
			qt.Assert(t, qt.Equals(readFile(t, dir, name), want))
		})
	}
}

// A collector may walk maps: the order of the rows must not leak into the bytes.
func TestWriteDoesNotDependOnTheOrderOfRows(t *testing.T) {
	want := write(t, small())
	shuffled := small()
	slices.Reverse(shuffled.Flows)
	slices.Reverse(shuffled.Series)
	// of the same time: in the order of events
	shuffled.PFC = append(shuffled.PFC[2:], shuffled.PFC[:2]...)
	before := shuffled.Series[0]

	got := write(t, shuffled)
	for _, name := range []string{flowsFile, portsFile, seriesFile, pfcFile, manifestFile} {
		qt.Assert(t, qt.Equals(readFile(t, got, name), readFile(t, want, name)))
	}
	// what is written is not reordered in memory
	qt.Assert(t, qt.Equals(shuffled.Series[0], before))
}

func TestEmptyRunHasHeaders(t *testing.T) {
	r := small()
	r.Flows, r.Ports, r.Series, r.PFC = nil, nil, nil, nil
	r.Manifest.Verdict, r.Manifest.Reasons, r.Manifest.LostPackets = Valid, nil, nil
	dir := write(t, r)
	qt.Assert(t, qt.Equals(readFile(t, dir, pfcFile), "sent_ns,effect_ns,from,to,class,kind\n"))
	qt.Assert(t, qt.StringContains(readFile(t, dir, manifestFile), `"reasons": []`))
	qt.Assert(t, qt.StringContains(readFile(t, dir, manifestFile), `"lost_packets": {}`))

	got, err := Read(dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(got.PFC, 0))
}

func TestReadErrors(t *testing.T) {
	for _, tc := range []struct {
		name, file, old, new, want string // old * is the whole file
	}{
		{"unknown field", manifestFile, `"tool"`, `"tol"`,
			`.*manifest.json: decode manifest: json: unknown field "tol" \(hint: another version of pcn may have written it\)`},
		{"cut off", manifestFile, "}\n}", "",
			`.*manifest.json: decode manifest: the file is cut off \(hint: .*; run it again\)`},
		{"empty", manifestFile, "*", "",
			`.*manifest.json: decode manifest: the file is empty \(hint: .*; run it again\)`},
		{"empty CSV", flowsFile, "*", "", `.*flows.csv: the file is empty: want a header`},
		{"zeros", manifestFile, "*", "\x00\x00",
			`.*manifest.json: decode manifest: the file is damaged: .*; run it again\)`},
		{"verdict", manifestFile, `"invalid"`, `"maybe"`,
			`.*manifest.json: invalid verdict "maybe": want "valid" or "invalid"`},
		{"reasons for valid", manifestFile, `"invalid"`, `"valid"`,
			`.*manifest.json: verdict valid has 2 reasons: want reasons only for invalid`},
		{"no bins", manifestFile, `"sample_ns": 100`, `"sample_ns": 0`,
			`.*manifest.json: warmup_ns 100, duration_ns 400 or sample_ns 0 is out of range`},
		{"too many bins", manifestFile, `"duration_ns": 400`, `"duration_ns": 9223372036854775800`,
			`.*manifest.json: sample_ns 100 makes more than 10000000 bins`},
		{"edited experiment", experimentFile, "small", "large",
			`.*experiment.yaml: the file has SHA-256 .*, but the run had d9c7.* \(hint: it was edited after the run; run it again\)`},
		{"column missing", flowsFile, "src_addr,", "",
			`.*flows.csv: invalid columns flow,group,scheme,src,dst,src_port.* \(hint: another version of pcn may have written the file\)`},
		{"column too many", pfcFile, "class,kind", "class,kind,x",
			`.*pfc.csv: invalid columns sent_ns,effect_ns,from,to,class,kind,x: want .*`},
		{"columns swapped", pfcFile, "from,to", "to,from", `.*pfc.csv: invalid columns .*`},
		{"value missing", pfcFile, "7,12,S1,S0,1,pause", "7,12,S1,S0,1",
			`.*pfc.csv: record on line 4: wrong number of fields`},
		{"not a number", pfcFile, "7,12", "x,12", `.*pfc.csv: .*x.*`},
		{"out of range", pfcFile, "S0,1", "S0,256", `.*pfc.csv: .*256.*`},
		{"unknown frame", pfcFile, "1,pause", "1,stop",
			`.*pfc.csv: .*unknown name "stop": want one of \[pause resume\].*`},
		{"unknown protocol", flowsFile, "tcp", "sctp",
			`.*flows.csv: .*unknown name "sctp": want one of \[tcp udp\].*`},
		{"unknown kind", seriesFile, "flow", "path",
			`.*series.csv: .*unknown name "path": want one of \[port flow sender\].*`},
		{"port without queue", seriesFile, "6,0,8,9", "6,,8,9",
			`.*series.csv: row 3: columns do not fit kind "port": a port has queues and marks, .*`},
		{"flow with queue", seriesFile, "5,,,1", "5,1,,1",
			`.*series.csv: row 2: columns do not fit kind "flow": .*`},
		{"flow with window", seriesFile, "5,,,1,", "5,,,1,1",
			`.*series.csv: row 2: columns do not fit kind "flow": .*`},
		{"sender with marks", seriesFile, "7,,,,12", "7,,,1,12",
			`.*series.csv: row 4: columns do not fit kind "sender": .*`},
		{"sender without window", seriesFile, "7,,,,12", "7,,,,",
			`.*series.csv: row 4: columns do not fit kind "sender": .*`},
		{"sender of an older file", seriesFile, "cwnd_packets,srtt_ns,", "",
			`.*series.csv: record on line 2: wrong number of fields`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := write(t, small())
			good := readFile(t, dir, tc.file)
			if tc.old == "*" {
				tc.old = good
			}
			qt.Assert(t, qt.StringContains(good, tc.old))
			bad := strings.Replace(good, tc.old, tc.new, 1)
			qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, tc.file), []byte(bad), 0o644)))

			_, err := Read(dir)
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
		})
	}
}

// Folders of before there were senders in the series can still be read.
func TestReadOfAnOlderFolder(t *testing.T) {
	const (
		flows = `flow,scheme,src,dst,src_addr,src_port,dst_addr,dst_port,proto,start_ns,end_ns,sent_bytes,received_bytes,packets,marked_packets,cnp_decrease,cnp_increase,send_rate_bps,rec_rate_bps,w,srtt_ns,retransmissions,ecn
F2,pcn,H0,R0,10.0.0.1,1,10.0.0.2,2,tcp,-100,,5,4,3,2,1,6,40000000000,20000000000,0.0078125,31000,7,true
`
		series = `time_ns,kind,name,rate_bps,queue_bytes,queue_max_bytes,marked_packets
-100,flow,F2,5,,,1
-100,port,S0->S1,6,0,8,9
`
		ports = `port,node,peer,rate_bps,delay_ns,enqueued_packets,enqueued_bytes,sent_packets,sent_bytes,queued_packets,marked_packets,dropped_buffer_packets,dropped_ring_packets,dropped_noclass_packets,dropped_reset_packets,pause_sent,resume_sent,pause_received,resume_received,paused_ns,queue_max_bytes,lateness_p50_ns,lateness_p99_ns,lateness_max_ns
S0->S1,S0,S1,40000000000,5000,36,15000,8,8000,3,2,1,2,3,4,1,2,3,4,5,6,7,8,9
`
	)
	want := small()
	want.Manifest.Case = ""
	want.Flows = want.Flows[:1]
	f := &want.Flows[0]
	f.Stats = f.Stats[:1] // its file has w only
	f.Group, f.CompletionNs, f.EchoedPackets, f.CwndPackets, f.Timeouts = "", 0, 0, 0, 0
	want.Ports[0].Tier, want.Ports[0].DroppedWREDPackets, want.Ports[0].DroppedTailPackets = "", 0,
		0
	want.Completions, want.Trace = nil, nil
	want.Series = want.Series[:2]

	dir := write(t, want)
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, flowsFile), []byte(flows), 0o644)))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, seriesFile), []byte(series), 0o644)))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, portsFile), []byte(ports), 0o644)))
	qt.Assert(t, qt.Not(qt.StringContains(readFile(t, dir, manifestFile), "case")))
	got, err := Read(dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.CmpEquals(got, want, content))
}

func TestLabel(t *testing.T) {
	qt.Check(t, qt.Equals(Manifest{Scheme: "pcn"}.Label(), "pcn"))
	qt.Check(t, qt.Equals(Manifest{Scheme: "pcn", Case: "f1-9.5"}.Label(), "f1-9.5/pcn"))
}

func TestReadOfAnEmptyFile(t *testing.T) {
	dir := write(t, small())
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, portsFile), nil, 0o644)))
	_, err := Read(dir)
	qt.Assert(t, qt.ErrorMatches(err, `.*ports.csv: the file is empty: want a header`))
}

func TestReadOfARunThatDidNotEnd(t *testing.T) {
	_, err := Read(t.TempDir())
	qt.Assert(t, qt.ErrorIs(err, os.ErrNotExist))
	qt.Assert(t,
		qt.ErrorMatches(err, `.*manifest.json: .* \(hint: give the folder of a finished run\)`))
}

// A write that fails half-way over an older run must not leave a folder that reads as complete.
func TestFailedWriteLeavesNoManifest(t *testing.T) {
	dir := write(t, small())
	qt.Assert(t, qt.IsNil(os.Remove(filepath.Join(dir, portsFile))))
	qt.Assert(t, qt.IsNil(os.Mkdir(filepath.Join(dir, portsFile), 0o755)))

	qt.Assert(t, qt.ErrorMatches(small().Write(dir), `write result: .*ports.csv: is a directory`))
	_, err := os.Stat(filepath.Join(dir, manifestFile))
	qt.Assert(t, qt.ErrorIs(err, os.ErrNotExist))
}

func TestWriteErrors(t *testing.T) {
	r := small()
	r.Manifest.Verdict = ""
	qt.Assert(t, qt.ErrorMatches(r.Write(t.TempDir()),
		`write run to .*: invalid verdict "": want "valid" or "invalid"`))

	file := filepath.Join(t.TempDir(), "file")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, nil, 0o644)))
	qt.Assert(t, qt.ErrorMatches(small().Write(file), `create result folder: .*`))
}

func TestCompareNatural(t *testing.T) {
	ordered := []string{"", "F", "F2", "F10", "G", "H0->S0", "H2->S1", "H10->S1", "R1", "S0->H1",
		"S0->S1"}
	for i, a := range ordered {
		for j, b := range ordered {
			got := compareNatural(a, b)
			qt.Check(t, qt.Equals(got < 0, i < j), qt.Commentf("%q %q", a, b))
			qt.Check(t, qt.Equals(got == 0, i == j), qt.Commentf("%q %q", a, b))
		}
	}
}

// Samples are sorted and written without comparing each with others, and without reflection. Here
// are the slow ways.
func TestSeriesAsBytes(t *testing.T) {
	var series []Sample
	for _, at := range []int64{300, 100, -100, 200} {
		for i, name := range []string{"F10", "F2", "", ` a,"b"`, "two\nlines", `\.`, "F10"} {
			n := uint64(i)
			series = append(series,
				Sample{TimeNs: at, Kind: KindPort, Name: name, RateBps: math.MaxUint64,
					QueueBytes: n, QueueMaxBytes: n + 1, MarkedPackets: n + 2},
				Sample{TimeNs: at, Kind: KindFlow, Name: name, MarkedPackets: n},
				Sample{TimeNs: at, Kind: KindSender, Name: name, CwndPackets: n, SRTTNs: -1,
					CNPs: n + 1})
		}
	}
	sorted := slices.SortedStableFunc(slices.Values(series), compareSamples)
	qt.Check(t, qt.DeepEquals(sortSeries(series), sorted))
	var rows []seriesRow
	for _, s := range sorted {
		rows = append(rows, s.row())
	}
	want, err := encodeCSV(rows)
	qt.Assert(t, qt.IsNil(err))
	got, err := encodeSeries(sorted)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(got), string(want)))
}

// What is read is written as the same bytes again, and reads the same again.
func FuzzReadCSV(f *testing.F) {
	r := small()
	for _, encode := range []func() ([]byte, error){
		func() ([]byte, error) { return encodeCSV(r.Flows) },
		func() ([]byte, error) { return encodeCSV(r.Ports) },
		func() ([]byte, error) { return encodeSeries(r.Series) },
		func() ([]byte, error) { return encodeCSV(r.PFC) },
	} {
		data, err := encode()
		qt.Assert(f, qt.IsNil(err))
		f.Add(data)
	}
	f.Add([]byte("\"\n"))
	f.Add([]byte("time_ns,kind,name,rate_bps,queue_bytes,queue_max_bytes,marked_packets\n-100,flow,F2,5,,,1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzRoundTrip(t, data, decodeFlows, encodeCSV[Flow])
		fuzzRoundTrip(t, data, decodePorts, encodeCSV[Port])
		fuzzRoundTrip(t, data, func(data []byte) ([]PFCEvent,
			error) {
			return decodeCSV[PFCEvent](data)
		}, encodeCSV[PFCEvent])
		fuzzRoundTrip(t, data, decodeSeries, encodeSeries)
	})
}

func FuzzReadManifest(f *testing.F) {
	data, err := small().Manifest.encode()
	qt.Assert(f, qt.IsNil(err))
	f.Add(data)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzRoundTrip(t, data, decodeManifest, Manifest.encode)
	})
}

func fuzzRoundTrip[T any](t *testing.T, data []byte, decode func([]byte) (T, error),
	encode func(T) ([]byte, error)) {
	t.Helper()
	v, err := decode(data)
	if err != nil {
		return
	}
	first, err := encode(v)
	qt.Assert(t, qt.IsNil(err))
	again, err := decode(first)
	qt.Assert(t, qt.IsNil(err))
	second, err := encode(again)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(string(second), string(first)))
}
