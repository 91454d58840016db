// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrMalformed says that a frame is of the right kind, but a field has a value
// or the frame a length that the sender never writes.
var ErrMalformed = errors.New("malformed frame")

// field is a range of bytes in a frame whose content follows from the rest.
type field struct {
	name     string
	off, end int   // bytes off to end-1 of the frame
	err      error // error for other bytes there
}

// check compares the field in frame with the encoder's bytes. The frame may be too short.
func (f field) check(frame, want []byte) error {
	if len(frame) < f.end {
		return fmt.Errorf("%w: the frame ends after %d bytes, before the end of %s at offset %d",
			f.err, len(frame), f.name, f.off)
	}
	got, w := frame[f.off:f.end], want[f.off:f.end]
	if !bytes.Equal(got, w) {
		return fmt.Errorf("%w: %s at offset %d is 0x%x, want 0x%x", f.err, f.name, f.off, got, w)
	}
	return nil
}

// checkFields returns what is wrong with the first field that differs between
// frame and want.
func checkFields(frame, want []byte, fields []field) error {
	for _, f := range fields {
		if err := f.check(frame, want); err != nil {
			return err
		}
	}
	return nil
}

func checkLen(frame []byte, want int) error {
	if len(frame) != want {
		return fmt.Errorf("%w: it has %d bytes, want %d: pass the whole frame without FCS",
			ErrMalformed, len(frame), want)
	}
	return nil
}
