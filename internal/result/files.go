// SPDX-License-Identifier: Apache-2.0

package result

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jszwec/csvutil"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/workload"
)

// Files of a run.
const (
	manifestFile   = "manifest.json"
	experimentFile = "experiment.yaml"
	flowsFile      = "flows.csv"
	portsFile      = "ports.csv"
	seriesFile     = "series.csv"
	pfcFile        = "pfc.csv"
	completionFile = "completion.csv"    // of runs that have any
	traceFile      = "trace.csv"         // of runs that have any
	statesFile     = "states.csv"        // of runs that have any
	repeatsFile    = "pause_repeats.csv" // of runs that have any
	watchdogFile   = "watchdog.csv"      // of runs with storms that PFC's watchdog found
	qdiscsFile     = "qdiscs.csv"        // of runs with qdiscs of Linux before ports
)

// maxBins protects memory against a damaged manifest.
const maxBins = 10_000_000

// Write writes the run to a folder, which it creates. It sorts rows, so that the files do not
// depend on the order of the slices. It writes the manifest last: a folder without one is
// incomplete.
func (r *Run) Write(dir string) error {
	if err := r.Manifest.check(); err != nil {
		return fmt.Errorf("write run to %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create result folder: %w", err)
	}
	// Without its manifest an earlier run in this folder is incomplete. Optional files must not
	// stay.
	for _, name := range []string{manifestFile, statesFile, completionFile, traceFile,
		repeatsFile, watchdogFile, qdiscsFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("replace earlier result: %w", err)
		}
	}
	if err := r.writePrograms(dir); err != nil {
		return err
	}
	for _, f := range []struct {
		name    string
		missing bool // there is no such file
		write   func(w io.Writer) error
	}{
		{experimentFile, false, bytesOf(func() ([]byte, error) { return r.Experiment, nil })},
		{flowsFile, false,
			func(w io.Writer) error { return writeFlows(w, sorted(r.Flows, compareFlows)) }},
		{portsFile, false, rowsOf(sorted(r.Ports, comparePorts))},
		{seriesFile, false,
			bytesOf(func() ([]byte, error) { return encodeSeries(sortSeries(r.Series)) })},
		{pfcFile, false, rowsOf(sorted(r.PFC, comparePFC))},
		{repeatsFile, len(r.PauseRepeats) == 0, rowsOf(sorted(r.PauseRepeats, compareRepeats))},
		{watchdogFile, len(r.Watchdog) == 0, rowsOf(r.Watchdog)},
		{qdiscsFile, len(r.Qdiscs) == 0, rowsOf(sorted(r.Qdiscs, compareQdiscs))},
		{completionFile, len(r.Completions) == 0,
			rowsOf(sorted(r.Completions, compareCompletions))},
		// in the order of the trace, which decides addresses and so paths
		{traceFile, len(r.Trace) == 0,
			func(w io.Writer) error { return workload.WriteTrace(w, r.Trace) }},
		{statesFile, len(r.States) == 0, rowsOf(sorted(r.States, compareStates))},
		{manifestFile, false, bytesOf(r.Manifest.encode)},
	} {
		if f.missing {
			continue
		}
		if err := writeFile(filepath.Join(dir, f.name), f.write); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
	}
	return nil
}

// writeFile makes a file of what write writes. No file is in memory as a whole: those of a million
// flows have hundreds of MB.
func writeFile(path string, write func(w io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<14)
	return errors.Join(write(w), w.Flush(), f.Close())
}

// bytesOf returns a function that writes what encode returns.
func bytesOf(encode func() ([]byte, error)) func(w io.Writer) error {
	return func(w io.Writer) error {
		data, err := encode()
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	}
}

// rowsOf returns a function that writes rows as CSV.
func rowsOf[T any](rows []T) func(w io.Writer) error {
	asTheyAre := func(_ int, record []string) []string { return record }
	return func(w io.Writer) error { return writeCSV(w, rows, asTheyAre) }
}

// maxFile is the most that is read of one file of a run, in bytes.
const maxFile = 1_000_000_000

// Read reads a run from the folder that [Run.Write] wrote.
func Read(dir string) (*Run, error) {
	return Decode(dir, Files{
		Read: func(name string) ([]byte, error) {
			return config.ReadFile(filepath.Join(dir, name), maxFile)
		},
		Below: func(folder string) (map[string][]byte, error) {
			return readFolder(filepath.Join(dir, folder))
		},
	})
}

// Files are those of a run's folder.
type Files struct {
	Read  func(name string) ([]byte, error)              // [fs.ErrNotExist]: there is none
	Below func(folder string) (map[string][]byte, error) // by name in the folder; it need not exist
}

// Decode is [Read] of files; dir is their folder's name, for errors.
func Decode(dir string, files Files) (*Run, error) {
	r := &Run{}
	for _, f := range []struct {
		name     string
		optional bool
		decode   func(data []byte) error
	}{
		{manifestFile, false, into(&r.Manifest, decodeManifest)},
		{experimentFile, false, func(data []byte) error { r.Experiment = data; return nil }},
		{flowsFile, false, into(&r.Flows, decodeFlows)},
		{portsFile, false, into(&r.Ports, decodePorts)},
		{seriesFile, false, into(&r.Series, decodeSeries)},
		{pfcFile, false, rowsInto(&r.PFC)},
		{repeatsFile, true, rowsInto(&r.PauseRepeats)},
		{watchdogFile, true, rowsInto(&r.Watchdog)},
		{qdiscsFile, true, rowsInto(&r.Qdiscs)},
		{completionFile, true, rowsInto(&r.Completions)},
		{statesFile, true, rowsInto(&r.States)},
		{traceFile, true, func(data []byte) (err error) {
			r.Trace, _, err = workload.ParseTrace(string(data))
			return err
		}},
	} {
		path := filepath.Join(dir, f.name)
		data, err := files.Read(f.name)
		if f.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w (hint: give the folder of a finished run)", err)
		}
		if err != nil {
			return nil, fmt.Errorf("read result: %w", err)
		}
		if err := f.decode(data); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	r.Index()
	if err := r.readPrograms(files); err != nil {
		return nil, err
	}
	if err := r.checkHash(); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, experimentFile), err)
	}
	return r, nil
}

// into returns a function that decodes a file's content and keeps the value in dst.
func into[T any](dst *T, decode func(data []byte) (T, error)) func(data []byte) error {
	return func(data []byte) (err error) {
		*dst, err = decode(data)
		return err
	}
}

// rowsInto is [into] for a CSV file whose columns are all required.
func rowsInto[T any](dst *[]T) func(data []byte) error {
	return into(dst, func(data []byte) ([]T, error) { return decodeCSV[T](data) })
}

// checkHash fails if the experiment file is not the one of the run.
func (r *Run) checkHash() error {
	sum := sha256.Sum256(r.Experiment)
	if got := hex.EncodeToString(sum[:]); got != r.Manifest.ExperimentSHA256 {
		return fmt.Errorf("the file has SHA-256 %s, but the run had %s "+
			"(hint: it was edited after the run; run it again)", got, r.Manifest.ExperimentSHA256)
	}
	return nil
}

func (m Manifest) encode() ([]byte, error) {
	m.Reasons = append([]string{}, m.Reasons...) // [], not null
	if m.LostPackets == nil {
		m.LostPackets = map[string]uint64{} // {}, not null
	}
	data, err := json.MarshalIndent(m, "", "  ")
	return append(data, '\n'), err
}

func decodeManifest(data []byte) (Manifest, error) {
	var m Manifest
	if err := DecodeJSON(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("decode manifest: %w", err)
	}
	return m, m.check()
}

// DecodeJSON decodes a file that pcn wrote. Its errors tell a file that is not whole from one of
// another version.
func DecodeJSON(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	const again = "(hint: it was not written to its end, or changed after; run it again)"
	err := dec.Decode(v)
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the file is empty " + again)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file is cut off " + again)
	case errors.As(err, &syntax):
		return fmt.Errorf("the file is damaged: %w %s", err, again)
	case err != nil:
		return fmt.Errorf("%w (hint: another version of pcn may have written it)", err)
	}
	return nil
}

// check fails if the manifest contradicts itself.
func (m Manifest) check() error {
	switch {
	case m.Verdict != Valid && m.Verdict != Invalid:
		return fmt.Errorf("invalid verdict %q: want %q or %q", m.Verdict, Valid, Invalid)
	case (m.Verdict == Invalid) != (len(m.Reasons) > 0):
		return fmt.Errorf("verdict %s has %d reasons: want reasons only for %s",
			m.Verdict, len(m.Reasons), Invalid)
	case m.WarmupNs < 0 || m.DurationNs <= 0 || m.SampleNs <= 0:
		return fmt.Errorf("warmup_ns %d, duration_ns %d or sample_ns %d is out of range",
			m.WarmupNs, m.DurationNs, m.SampleNs)
	case m.WarmupNs > math.MaxInt64-m.DurationNs ||
		(m.WarmupNs+m.DurationNs)/m.SampleNs > maxBins:
		return fmt.Errorf("sample_ns %d makes more than %d bins", m.SampleNs, maxBins)
	}
	return nil
}

// decodeFlows reads flows.csv. Columns that Flow does not have are statistics of the control's
// algorithm.
func decodeFlows(data []byte) ([]Flow, error) {
	records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	known, headerErr := csvutil.Header(Flow{}, "csv")
	if err != nil || headerErr != nil || len(records) == 0 {
		return decodeCSV[Flow](data) // it says what is wrong
	}
	isStat := func(column int) bool { return !slices.Contains(known, records[0][column]) }
	plain, err := joinCSV(records, func(r []string) []string { return columns(r, func(i int) bool { return !isStat(i) }) })
	if err != nil {
		return nil, err
	}
	flows, err := decodeCSV[Flow](plain, "group", "priority", "completion_ns", "echoed_packets", "cwnd_packets", "timeouts")
	if err != nil {
		return nil, err
	}
	for i := range flows {
		if flows[i].Stats, err = statsOf(columns(records[0], isStat), columns(records[i+1], isStat)); err != nil {
			return nil, err
		}
	}
	return flows, nil
}

// columns returns those cells of a record that are wanted.
func columns(record []string, wanted func(column int) bool) []string {
	var cells []string
	for i, cell := range record {
		if wanted(i) {
			cells = append(cells, cell)
		}
	}
	return cells
}

// statsOf reads the statistics of a flow. An empty cell is of a flow that has no such statistic.
func statsOf(keys, cells []string) ([]Stat, error) {
	var stats []Stat
	for i, cell := range cells {
		if cell == "" {
			continue
		}
		value, err := strconv.ParseFloat(cell, 64)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", keys[i], err)
		}
		stats = append(stats, Stat{keys[i], value})
	}
	return stats, nil
}

// writeFlows writes the flows, with a column for each statistic that one of them has.
func writeFlows(w io.Writer, flows []Flow) error {
	var keys []string
	for _, f := range flows {
		for _, s := range f.Stats {
			if !slices.Contains(keys, s.Key) {
				keys = append(keys, s.Key)
			}
		}
	}
	return writeCSV(w, flows, func(row int, record []string) []string {
		if row < 0 {
			return append(record, keys...)
		}
		return append(record, flows[row].cells(keys)...)
	})
}

// cells returns the flow's statistics as text, in the order of the keys.
func (f Flow) cells(keys []string) []string {
	cells := make([]string, len(keys))
	for _, s := range f.Stats {
		cells[slices.Index(keys, s.Key)] = strconv.FormatFloat(s.Value, 'g', -1, 64)
	}
	return cells
}

// joinCSV writes records, each changed.
func joinCSV(records [][]string, change func([]string) []string) ([]byte, error) {
	var buf bytes.Buffer
	w := csv.NewWriter(&buf)
	for _, r := range records {
		if err := w.Write(change(r)); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return buf.Bytes(), w.Error()
}

func decodePorts(data []byte) ([]Port, error) {
	return decodeCSV[Port](data, "tier", "dropped_wred_packets", "dropped_tail_packets")
}

// encodeCSV returns the header and the rows as CSV, also without any rows.
func encodeCSV[T any](rows []T) ([]byte, error) {
	var buf bytes.Buffer
	err := rowsOf(rows)(&buf)
	return buf.Bytes(), err
}

// writeCSV writes the header and the rows as CSV, also without any rows. change returns a record
// with further columns; the number of the header's row is -1.
func writeCSV[T any](
	w io.Writer, rows []T, change func(row int, record []string) []string,
) error {
	c := changedCSV{csv.NewWriter(w), change, -1}
	enc := csvutil.NewEncoder(&c)
	var zero T
	if err := enc.EncodeHeader(zero); err != nil {
		return err
	}
	enc.AutoHeader = false
	if err := enc.Encode(rows); err != nil {
		return err
	}
	c.csv.Flush()
	return c.csv.Error()
}

// changedCSV writes records, each changed.
type changedCSV struct {
	csv    *csv.Writer
	change func(row int, record []string) []string
	row    int // of the next record
}

func (c *changedCSV) Write(record []string) error {
	c.row++
	return c.csv.Write(c.change(c.row-1, record))
}

// decodeCSV reads rows with exactly the columns of T. Columns that a later version added may be
// missing and read as 0.
func decodeCSV[T any](data []byte, added ...string) ([]T, error) {
	dec, err := csvutil.NewDecoder(csv.NewReader(bytes.NewReader(data)))
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: want a header")
	}
	if err != nil {
		return nil, err
	}
	var zero T
	want, err := csvutil.Header(zero, "csv")
	if err != nil {
		return nil, err
	}
	got := dec.Header()
	accepted := slices.DeleteFunc(slices.Clone(want), func(column string) bool {
		return slices.Contains(added, column) && !slices.Contains(got, column)
	})
	if !slices.Equal(got, accepted) {
		return nil, fmt.Errorf("invalid columns %s: want %s "+
			"(hint: another version of pcn may have written the file)",
			strings.Join(got, ","), strings.Join(want, ","))
	}
	rows := []T{}
	if err := dec.Decode(&rows); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return rows, nil
}

// unmarshalName sets dst to text, which must be one of the known names.
func unmarshalName[T ~string](dst *T, text []byte, known ...T) error {
	if !slices.Contains(known, T(text)) {
		return fmt.Errorf("unknown name %q: want one of %v", text, known)
	}
	*dst = T(text)
	return nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (k *Kind) UnmarshalText(text []byte) error {
	return unmarshalName(k, text, KindPort, KindFlow, KindSender)
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (k *PFCKind) UnmarshalText(text []byte) error {
	return unmarshalName(k, text, Pause, Resume)
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Proto) UnmarshalText(text []byte) error {
	return unmarshalName(p, text, TCP, UDP)
}
