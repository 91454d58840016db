// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config"
)

func TestTraceIsReadAsItWasWritten(t *testing.T) {
	s := all(t, "data-mining")
	s.FromNs, s.ClassBytes = -5e6, []uint64{1000}
	flows := generate(t, s)
	var buf bytes.Buffer
	qt.Assert(t, qt.IsNil(WriteTrace(&buf, flows)))
	qt.Assert(t, qt.IsTrue(IsTrace(buf.String())))
	again, lines, err := ParseTrace(buf.String())
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(again, flows))
	qt.Assert(t, qt.HasLen(lines, len(flows)))
	qt.Assert(t, qt.Equals(lines[len(lines)-1], len(flows)+1))
}

func TestTrace(t *testing.T) {
	const text = "start_ns,src,dst,size_bytes,priority\n-5,H0,H1,1000,0\n\n7,H1,H0,1,3\n"
	flows, lines, err := ParseTrace(text)
	qt.Assert(t, qt.IsNil(err))
	want := []Flow{{-5, "H0", "H1", 1000, 0}, {7, "H1", "H0", 1, 3}}
	qt.Check(t, qt.DeepEquals(flows, want))
	qt.Check(t, qt.DeepEquals(lines, []int{2, 4}))
	var buf bytes.Buffer
	qt.Assert(t, qt.IsNil(WriteTrace(&buf, want)))
	qt.Check(t, qt.Equals(buf.String(), strings.Replace(text, "\n\n", "\n", 1)))
	buf.Reset()
	qt.Assert(t, qt.IsNil(WriteTrace(&buf, nil)))
	// is a trace, of no flow
	qt.Check(t, qt.Equals(buf.String(), "start_ns,src,dst,size_bytes,priority\n"))

	flows, _, err = ParseTrace(strings.ReplaceAll(text, "\n", "\r\n"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(flows, want))
}

func TestTraceErrors(t *testing.T) {
	const head = "start_ns,src,dst,size_bytes,priority\n"
	for _, c := range []struct{ text, want string }{
		{"", "1: want columns start_ns,src,dst,size_bytes,priority"},
		{"src,dst\n", "1: want columns start_ns,src,dst,size_bytes,priority"},
		{head + "0,H0,H1,1,0\n0,H0,H1,x,0\n", "3: .*x.*"},
		{head + "\n0.5,H0,H1,1,0\n", "3: .*0\\.5.*"},
		{head + "0,H0,H1,-1,0\n", "2: .*-1.*"},
		{head + "0,H0,H1,1,256\n", "2: .*256.*"},
		{head + "0,H0,H1,1\n", "2: wrong number of fields"},
		{head + "0,\"H0,H1,1,0\n", "2: .*"},
		{head + "0,,H1,1,0\n", "2: src or dst is missing: want a host in both columns"},
		{head + "0,H1,H1,1,0\n", "2: host H1 sends to itself: want different src and dst"},
		{head + "0,H0,H1,0,0\n", `2: invalid size of 0 bytes: want 1 to 1e\+15`},
	} {
		_, _, err := ParseTrace(c.text)
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%q", c.text))
	}
}

// FuzzTrace: a trace is flows that can be, which are written as they were read, or an error at one
// of its lines.
func FuzzTrace(f *testing.F) {
	const head = "start_ns,src,dst,size_bytes,priority\n"
	f.Add(head)
	f.Add(head + "-5,H0,H1,1000,0\n\n7,\"H,1\",H0,1,3\n")
	f.Add(head + "0,\"H\n0\",H1,1,0\n")
	f.Add("src\n")
	f.Fuzz(func(t *testing.T, text string) {
		flows, lines, err := ParseTrace(text)
		count := 1 + strings.Count(text, "\n") + strings.Count(text, "\r")
		if err != nil {
			var at *config.Error
			qt.Assert(t, qt.IsTrue(errors.As(err, &at)))
			qt.Assert(t, qt.IsTrue(at.Line >= 1 && at.Line <= count), qt.Commentf("%v", err))
			return
		}
		qt.Assert(t, qt.HasLen(lines, len(flows)))
		var buf bytes.Buffer
		qt.Assert(t, qt.IsNil(WriteTrace(&buf, flows)))
		again, _, err := ParseTrace(buf.String())
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.DeepEquals(again, flows))
	})
}
