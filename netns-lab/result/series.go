// SPDX-License-Identifier: Apache-2.0

package result

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// seriesRow is a row of series.csv. Columns that its kind lacks are empty.
type seriesRow struct {
	TimeNs        int64   `csv:"time_ns"`
	Kind          Kind    `csv:"kind"`
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
