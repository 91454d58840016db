// SPDX-License-Identifier: Apache-2.0

package result

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// seriesRow is a row of series.csv. Columns that its kind lacks are empty.
type seriesRow struct {
	TimeNs        int64   `csv:"time_ns"`
	Kind          Kind    `csv:"kind"` // port, flow (its receiver) or sender
	Name          string  `csv:"name"`
	RateBps       uint64  `csv:"rate_bps"`
	QueueBytes    *uint64 `csv:"queue_bytes"`
	QueueMaxBytes *uint64 `csv:"queue_max_bytes"`
	MarkedPackets *uint64 `csv:"marked_packets"`
	CwndPackets   *uint64 `csv:"cwnd_packets"`
	SRTTNs        *int64  `csv:"srtt_ns"`
	CNPs          *uint64 `csv:"cnps"`
}

func (s Sample) row() seriesRow {
	row := seriesRow{TimeNs: s.TimeNs, Kind: s.Kind, Name: s.Name, RateBps: s.RateBps}
	switch s.Kind {
	case KindPort:
		row.QueueBytes, row.QueueMaxBytes, row.MarkedPackets = new(s.QueueBytes),
			new(s.QueueMaxBytes), new(s.MarkedPackets)
	case KindSender:
		row.CwndPackets, row.SRTTNs, row.CNPs = new(s.CwndPackets), new(s.SRTTNs), new(s.CNPs)
	default:
		row.MarkedPackets = new(s.MarkedPackets)
	}
	return row
}

// sample returns the row's sample. It returns false if the columns that are set are not those of
// its kind.
func (row seriesRow) sample() (s Sample, ok bool) {
	isPort, isSender := row.Kind == KindPort, row.Kind == KindSender
	ok = (row.QueueBytes != nil) == isPort && (row.QueueMaxBytes != nil) == isPort &&
		(row.MarkedPackets != nil) == !isSender &&
		(row.CwndPackets != nil) == isSender && (row.SRTTNs != nil) == isSender &&
		(row.CNPs != nil) == isSender
	return Sample{
		TimeNs: row.TimeNs, Kind: row.Kind, Name: row.Name, RateBps: row.RateBps,
		QueueBytes: orZero(row.QueueBytes), QueueMaxBytes: orZero(row.QueueMaxBytes),
		MarkedPackets: orZero(row.MarkedPackets),
		CwndPackets:   orZero(row.CwndPackets), SRTTNs: orZero(row.SRTTNs), CNPs: orZero(row.CNPs),
	}, ok
}

func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// encodeSeries writes what encodeCSV writes of the samples' rows. A run has tens of thousands, and
// reflection for each cell is slow: in the microVM each instruction counts.
func encodeSeries(series []Sample) ([]byte, error) {
	data, err := encodeCSV[seriesRow](nil)
	if err != nil {
		return nil, err
	}
	const rowBytes = 64 // about
	data = slices.Grow(data, rowBytes*len(series))
	cells := map[string]string{} // as CSV has them, by kind or name
	cell := func(text string) (string, error) {
		if cell, ok := cells[text]; ok {
			return cell, nil
		}
		quoted, err := joinCSV([][]string{{text}}, slices.Clone)
		cells[text] = strings.TrimSuffix(string(quoted), "\n")
		return cells[text], err
	}
	for _, s := range series {
		kind, kindErr := cell(string(s.Kind))
		name, nameErr := cell(s.Name)
		if err := errors.Join(kindErr, nameErr); err != nil {
			return nil, err
		}
		data = append(strconv.AppendInt(data, s.TimeNs, 10), ',')
		data = append(append(data, kind...), ',')
		data = append(append(data, name...), ',')
		data = s.appendNumbers(strconv.AppendUint(data, s.RateBps, 10))
	}
	return data, nil
}

// appendNumbers appends the columns of a row that not all kinds have, and ends the row.
func (s Sample) appendNumbers(row []byte) []byte {
	add := func(n uint64) { row = strconv.AppendUint(append(row, ','), n, 10) }
	switch s.Kind {
	case KindPort:
		add(s.QueueBytes)
		add(s.QueueMaxBytes)
		add(s.MarkedPackets)
		return append(row, ",,,\n"...)
	case KindSender:
		row = append(row, ",,,"...)
		add(s.CwndPackets)
		row = strconv.AppendInt(append(row, ','), s.SRTTNs, 10)
		add(s.CNPs)
		return append(row, '\n')
	default:
		row = append(row, ",,"...)
		add(s.MarkedPackets)
		return append(row, ",,,\n"...)
	}
}

func decodeSeries(data []byte) ([]Sample, error) {
	if series, ok := parseSeries(data); ok {
		return series, nil
	}
	return decodeSeriesRows(data)
}

func decodeSeriesRows(data []byte) ([]Sample, error) {
	rows, err := decodeCSV[seriesRow](data, "cwnd_packets", "srtt_ns", "cnps")
	if err != nil {
		return nil, err
	}
	series := make([]Sample, len(rows))
	for i, row := range rows {
		s, ok := row.sample()
		if !ok {
			return nil,
				fmt.Errorf("row %d: columns do not fit kind %q: a port has queues and marks, "+
					"a flow has marks, a sender has a window", i+2, row.Kind)
		}
		series[i] = s
	}
	return series, nil
}

// parseSeries reads what encodeSeries writes, eight times as fast as decodeCSV. It returns false
// for anything else, such as names that CSV quotes and files of other versions: decodeCSV reads
// those, or says what is wrong.
func parseSeries(data []byte) (series []Sample, ok bool) {
	header, err := encodeCSV[seriesRow](nil)
	rows, found := bytes.CutPrefix(data, header)
	if err != nil || !found || bytes.ContainsAny(rows, "\"\r") {
		return nil, false
	}
	series = make([]Sample, 0, bytes.Count(rows, []byte("\n")))
	p := seriesParser{rest: rows, names: map[string]string{}}
	for len(p.rest) > 0 && !p.failed {
		series = append(series, p.sample())
	}
	return series, !p.failed
}

// seriesParser reads plain rows of series.csv.
type seriesParser struct {
	rest   []byte
	names  map[string]string // each once, for all of its rows
	failed bool
}

func (p *seriesParser) sample() Sample {
	s := Sample{TimeNs: p.signed()}
	p.skip(",")
	s.Kind = Kind(p.text())
	s.Name = p.text()
	s.RateBps = p.number()
	switch s.Kind {
	case KindPort:
		s.QueueBytes, s.QueueMaxBytes, s.MarkedPackets = p.next(","), p.next(","), p.next(",")
		p.skip(",,,\n")
	case KindSender:
		s.CwndPackets = p.next(",,,,")
		p.skip(",")
		s.SRTTNs, s.CNPs = p.signed(), p.next(",")
		p.skip("\n")
	case KindFlow:
		s.MarkedPackets = p.next(",,,")
		p.skip(",,,\n")
	default:
		p.failed = true
	}
	return s
}

// text reads a cell and the comma behind it.
func (p *seriesParser) text() string {
	cell, rest, found := bytes.Cut(p.rest, []byte(","))
	p.rest = rest
	text, known := p.names[string(cell)] // copies nothing
	if !known {
		p.failed = p.failed || !found || bytes.ContainsRune(cell, '\n')
		text = string(cell)
		p.names[text] = text
	}
	return text
}

// next reads what stands between two numbers, and the second.
func (p *seriesParser) next(between string) uint64 {
	p.skip(between)
	return p.number()
}

// number reads a number of at most 18 digits, so that it fits into any type.
func (p *seriesParser) number() (n uint64) {
	digits := 0
	for digits < len(p.rest) && isDigit(p.rest[digits]) {
		n = 10*n + uint64(p.rest[digits]-'0')
		digits++
	}
	p.failed = p.failed || digits == 0 || digits > 18
	p.rest = p.rest[digits:]
	return n
}

func (p *seriesParser) signed() int64 {
	if bytes.HasPrefix(p.rest, []byte("-")) {
		p.rest = p.rest[1:]
		return -int64(p.number())
	}
	return int64(p.number())
}

func (p *seriesParser) skip(text string) {
	if !bytes.HasPrefix(p.rest, []byte(text)) {
		p.failed = true
		return
	}
	p.rest = p.rest[len(text):]
}
