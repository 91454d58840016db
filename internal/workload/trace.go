// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jszwec/csvutil"

	"github.com/pcn-linux/pcn/config"
)

// Flow is one flow of a trace.
type Flow struct {
	StartNs   int64  `csv:"start_ns"` // from t = 0
	Src       string `csv:"src"`      // host
	Dst       string `csv:"dst"`      // host
	SizeBytes uint64 `csv:"size_bytes"`
	Priority  uint8  `csv:"priority"` // 0 is the highest
}

func header() []string {
	columns, err := csvutil.Header(Flow{}, "csv")
	if err != nil {
		panic(err) // Flow has a field that csvutil can't write
	}
	return columns
}

// IsTrace reports whether a text starts with the header of a trace.
func IsTrace(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.TrimSuffix(first, "\r") == strings.Join(header(), ",")
}

// WriteTrace writes flows as CSV.
func WriteTrace(w io.Writer, flows []Flow) error {
	c := csv.NewWriter(w)
	enc := csvutil.NewEncoder(c)
	if err := enc.EncodeHeader(Flow{}); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	enc.AutoHeader = false
	if err := enc.Encode(flows); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

// ParseTrace parses a trace as [WriteTrace] writes it. It returns the flows and the line of each.
// An error is an [*config.Error].
func ParseTrace(text string) (flows []Flow, lines []int, err error) {
	if !IsTrace(text) {
		return nil, nil, &config.Error{Line: 1, Msg: "want columns " + strings.Join(header(), ",")}
	}
	r := csv.NewReader(strings.NewReader(text))
	dec, err := csvutil.NewDecoder(r)
	if err != nil {
		return nil, nil, &config.Error{Line: 1, Msg: err.Error()}
	}
	for {
		var f Flow
		err := dec.Decode(&f)
		if errors.Is(err, io.EOF) {
			return flows, lines, nil
		}
		if syntax, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, nil, &config.Error{Line: syntax.Line, Msg: syntax.Err.Error()}
		}
		line, _ := r.FieldPos(0)
		if err == nil {
			err = f.check()
		}
		if err != nil {
			return nil, nil, &config.Error{Line: line, Msg: err.Error()}
		}
		flows, lines = append(flows, f), append(lines, line)
	}
}

func (f *Flow) check() error {
	switch {
	case f.Src == "" || f.Dst == "":
		return errors.New("src or dst is missing: want a host in both columns")
	case f.Src == f.Dst:
		return fmt.Errorf("host %s sends to itself: want different src and dst", f.Src)
	case f.SizeBytes == 0 || f.SizeBytes > maxBytes:
		return fmt.Errorf("invalid size of %d bytes: want 1 to %g", f.SizeBytes, maxBytes)
	}
	return nil
}
