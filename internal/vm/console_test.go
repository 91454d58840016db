// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/guest"
	"github.com/pcn-linux/pcn/internal/vm/uml"
)

func TestConsole(t *testing.T) {
	tests := []struct {
		name, said, tee, text string
		booted                bool
	}{
		{"nothing", "", "", "", false},
		{"never ready", "[0.1] Kernel panic\r\n", "", "[0.1] Kernel panic\n", false},
		{"framed",
			"[0.1] noise\r\npcn guest is up\r\na\r\nb\r\npcn guest is done\r\n[9.9] reboot: Power down\r\n",
			"a\nb\n", "[0.1] noise\na\nb\n", true},
		{"last line unfinished", "pcn guest is up\nprogresspcn guest is done\nrest", "progress\n",
			"progress\n", true},
		{"died in a line", "pcn guest is up\na\nhalf", "a\nhalf\n", "a\nhalf\n", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for size := 1; size <= len(test.said)+1; size += 7 { // in pieces of every kind
				var tee strings.Builder
				c := console{tee: &tee}
				r := strings.NewReader(test.said)
				for piece := make([]byte, size); ; {
					n, err := r.Read(piece)
					if errors.Is(err, io.EOF) {
						break
					}
					qt.Assert(t, qt.IsNil(c.add(piece[:n])))
				}
				done := make(chan struct{})
				close(done)
				qt.Assert(t, qt.IsNil(c.follow(strings.NewReader(""), done)))
				qt.Check(t, qt.Equals(tee.String(), test.tee))
				qt.Check(t, qt.Equals(c.text.String(), test.text))
				qt.Check(t, qt.Equals(c.boot > 0, test.booted))
			}
		})
	}
}

func TestConsoleErrors(t *testing.T) {
	done := make(chan struct{})
	close(done)
	broken := errors.New("broken")
	c := console{tee: failingWriter{broken}}
	err := c.follow(strings.NewReader(guest.ReadyLine+"\nhello\n"), done)
	qt.Check(t, qt.ErrorIs(err, broken))

	c = console{}
	err = c.follow(failingReaderAt{broken}, done)
	qt.Check(t, qt.ErrorIs(err, broken))
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

type failingReaderAt struct{ err error }

func (f failingReaderAt) ReadAt(b []byte, _ int64) (int, error) {
	return iotest.ErrReader(f.err).Read(b)
}

func TestLastLines(t *testing.T) {
	long := strings.Repeat("x\n", 30) + "end\n"
	qt.Check(t, qt.Equals(uml.LastLines(long), strings.Repeat("x\n", 19)+"end"))
	qt.Check(t, qt.Equals(uml.LastLines("one\n"), "one"))
	qt.Check(t, qt.Equals(uml.LastLines(""), ""))
}
