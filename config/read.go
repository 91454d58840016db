// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// MaxFile is the most that is read of a file that a user names, in bytes. A trace of 2,000,000
// flows, the most that an experiment may have, is a third of it.
const MaxFile = 256_000_000

// ReadFile reads a file of at most as many bytes; it fails if there are more. Files that users name
// are read by it: one such as /dev/zero never ends.
func ReadFile(path string, most int64) ([]byte, error) {
	// A pipe that nobody writes to would wait for ever to be opened.
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := ReadAtMost(f, most)
	if info, statErr := f.Stat(); err == nil && len(data) == 0 && statErr == nil &&
		info.Mode()&os.ModeNamedPipe != 0 {
		return nil, fmt.Errorf("%s is a pipe, and nothing came out of it: want a file", path)
	}
	return data, err
}

// ReadText is [ReadFile] for text. Editors on Windows begin it with a byte order mark, which no
// format of ours or of others has.
func ReadText(path string, most int64) ([]byte, error) {
	data, err := ReadFile(path, most)
	return bytes.TrimPrefix(data, []byte("\ufeff")), err
}

// ReadAtMost is ReadFile for an open file.
func ReadAtMost(f *os.File, most int64) ([]byte, error) {
	var size int64
	if info, err := f.Stat(); err == nil {
		size = info.Size() // 0 for what is no regular file
	}
	// Without room for one more read, the buffer would double.
	data := bytes.NewBuffer(make([]byte, 0, min(max(size, 0), most)+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(f, most+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > most {
		return nil, fmt.Errorf("%s is longer than %s: want a shorter file", f.Name(),
			Bytes(most))
	}
	return data.Bytes(), nil
}
