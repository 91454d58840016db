// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A file of a state is the memory, with holes, the devices' state, an index in JSON, and a trailer.
// As its checksum is checked whenever it is opened, it need not have reached the disk before it has
// its name.

// stateIndex says what a file of a state has.
type stateIndex struct {
	Data   [][2]int64 // begin and end of what is not a hole
	CRC32C uint32     // of that
}

type stateTrailer struct {
	Magic  [8]byte
	Memory uint64 // bytes
	Index  uint64 // bytes
}

var stateMagic = [8]byte{'P', 'C', 'N', 'S', 'T', 'A', 'T', 'E'}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newState returns an empty state in memory.
func newState(memory int64) (*machineState, error) {
	f, err := memoryFile(nil)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(memory); err != nil {
		f.Close()
		return nil, fmt.Errorf("make the microVM's memory: %w", err)
	}
	return &machineState{file: f, memory: memory}, nil
}

// openState returns the state in a file; nil if it is not there, not whole, or may not be written
// to, as QEMU opens it in that way, although it changes a copy.
func openState(name string, memory int64) *machineState {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if err := checkState(f, memory); err != nil {
		f.Close()
		os.Remove(name)
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(name, now, now) // only which states are removed first depends on it
	return &machineState{file: f, memory: memory, kept: true}
}

// checkState fails if a file is not a whole state of a machine with this much memory.
func checkState(f *os.File, memory int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := int64(binary.Size(stateTrailer{}))
	var t stateTrailer
	end := io.NewSectionReader(f, info.Size()-size, size)
	if err := binary.Read(end, binary.LittleEndian, &t); err != nil {
		return err
	}
	if t.Magic != stateMagic || t.Memory != uint64(memory) || int64(t.Index) > info.Size() {
		return errors.New("this is no state of this machine")
	}
	text := make([]byte, t.Index)
	if _, err := f.ReadAt(text, info.Size()-size-int64(t.Index)); err != nil {
		return err
	}
	var index stateIndex
	if err := json.Unmarshal(text, &index); err != nil {
		return err
	}
	sum, err := copyData(io.Discard, f, index.Data)
	if err == nil && sum != index.CRC32C {
		err = errors.New("the checksum is wrong")
	}
	return err
}

// keepState copies a state into a file, under a temporary name until it is whole: so others see all
// of it or nothing, and two that do this at the same time do not harm each other. Then it removes
// old states.
func keepState(s *machineState, name string) error {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of states: %w", err)
	}
	f, err := os.CreateTemp(dir, unfinishedPrefix+"*")
	if err != nil {
		return fmt.Errorf("keep the microVM's state: %w", err)
	}
	err = errors.Join(writeState(f, s), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("keep the microVM's state: %w", err)
	}
	return removeOldStates(dir, time.Now())
}

// writeState writes a state to an empty file.
func writeState(f *os.File, s *machineState) error {
	data, err := dataOf(s.file)
	if err != nil {
		return err
	}
	index := stateIndex{Data: data}
	if index.CRC32C, err = copyData(f, s.file, data); err != nil {
		return err
	}
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	tail := bytes.NewBuffer(text)
	t := stateTrailer{stateMagic, uint64(s.memory), uint64(len(text))}
	if err := binary.Write(tail, binary.LittleEndian, t); err != nil {
		return err
	}
	_, err = f.WriteAt(tail.Bytes(), data[len(data)-1][1])
	return err
}

// dataOf returns where a file has data, and not holes.
func dataOf(f *os.File) (data [][2]int64, err error) {
	for end := int64(0); ; {
		begin, err := unix.Seek(int(f.Fd()), end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) && len(data) > 0 {
			return data, nil
		}
		if err != nil {
			return nil, fmt.Errorf("look for data in the microVM's memory: %w", err)
		}
		if end, err = unix.Seek(int(f.Fd()), begin, unix.SEEK_HOLE); err != nil {
			return nil, fmt.Errorf("look for holes in the microVM's memory: %w", err)
		}
		data = append(data, [2]int64{begin, end})
	}
}

// copyData copies parts of a file to the same places of another, unless that is [io.Discard], and
// returns their checksum.
func copyData(to any, from io.ReaderAt, data [][2]int64) (uint32, error) {
	sum := crc32.New(castagnoli)
	buffer := make([]byte, 1<<20)
	for _, part := range data {
		var w io.Writer = sum
		if file, ok := to.(io.WriterAt); ok {
			w = io.MultiWriter(sum, io.NewOffsetWriter(file, part[0]))
		}
		r := io.NewSectionReader(from, part[0], part[1]-part[0])
		n, err := io.CopyBuffer(w, struct{ io.Reader }{r}, buffer)
		if err != nil {
			return 0, err
		}
		if n < r.Size() {
			return 0, io.ErrUnexpectedEOF
		}
	}
	return sum.Sum32(), nil
}

// unfinishedPrefix begins the name of a state that is not whole yet.
const unfinishedPrefix = ".unfinished-"

// unfinishedFor is how long a state may be unfinished: writing takes a second. Then its writer was
// killed.
const unfinishedFor = 10 * time.Minute

// removeOldStates keeps the states that were used last, and removes what killed processes left.
func removeOldStates(dir string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var states []os.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil: // another process removed it
		case strings.HasPrefix(e.Name(), unfinishedPrefix):
			if now.Sub(info.ModTime()) > unfinishedFor {
				os.Remove(filepath.Join(dir, e.Name()))
			}
		case strings.HasSuffix(e.Name(), stateSuffix):
			states = append(states, info)
		}
	}
	slices.SortFunc(states, func(a, b os.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, old := range states[min(keptStates, len(states)):] {
		os.Remove(filepath.Join(dir, old.Name())) // a process that uses it has it open
	}
	return nil
}
