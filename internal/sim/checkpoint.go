// SPDX-License-Identifier: Apache-2.0

//go:build !js

package sim

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"time"

	"github.com/cilium/ebpf/btf"
	"github.com/klauspost/compress/zstd"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/snapshot"
)

// This file writes the state of a run aside from time to time, and goes on from there when the run
// is started again. A run is built from its experiment as at its start, and then what has changed
// since is loaded over it: package snapshot. All that happens is values in queues, so there is
// nothing that can't be saved. It is saved where all parts stand still, at the end of a bin.

// Checkpoints are of a run that can go on after it was interrupted.
type Checkpoints struct {
	Path  string        // of the file
	Every time.Duration // of the wall clock
	// Program and Run say what writes them, and of what: others refuse them.
	Program, Run string
	// Failed is called if one can't be written. The run goes on.
	Failed func(error)
	// Resumed is called if the run goes on at a time behind t = 0.
	Resumed func(ns int64)

	last time.Time // when the last one was written
}

// due reports whether it is time for the next.
func (c *Checkpoints) due() bool { return c != nil && time.Since(c.last) >= c.Every }

// checkpointMagic begins each file: the number is that of the format.
const checkpointMagic = "pcn checkpoint 2\n"

// checkpointHead is the second line of a file, in JSON.
type checkpointHead struct {
	Program string `json:"program"`
	Run     string `json:"run"`
	Parts   int    `json:"parts"`
	NowNs   int64  `json:"now_ns"` // behind t = 0
}

// checkpointTail ends a file, behind the compressed state: its size before it was compressed, and
// the SHA-256 of all before.
const checkpointTail = 8 + sha256.Size

// rules say what of a run stays as it was built.
func (w *world) rules() snapshot.Rules {
	fixed := func(values ...any) (types []reflect.Type) {
		for _, v := range values {
			types = append(types, reflect.TypeOf(v).Elem())
		}
		return types
	}
	return snapshot.Rules{
		// Pointers to these types, and these types.
		Fixed: fixed(
			new(*plan), new(*network.Routes), new(*experiment.Flow), new([]experiment.Wait),
			new(experiment.OwnSwitch), new(scheme.Scheme), new(sender), new(*btf.Spec),
			new(*function), new(*watchdog), new(coreParams),
			new(func(*PacketEvent)), new(func(result.Moment)), new(func(*world, step)),
			new(func(port, packet, ingress int32)),
			new(*Checkpoints), new(*stormChange), new(barrier),
			// These lead to what is saved elsewhere.
			new(*clock), new(*slab), new(*queueRest),
			// These mean something within a call, or a window.
			new(*flow), new([2]sending), new(ahead),
		),
		Own: map[reflect.Type]func(*snapshot.Codec, any) error{
			reflect.TypeFor[module](): func(c *snapshot.Codec, at any) error {
				return at.(*module).snapshot(c)
			},
		},
	}
}

// snapshot saves or loads what a module has in its memory.
func (m *module) snapshot(c *snapshot.Codec) error {
	size := m.size()
	if err := errors.Join(c.Value(&m.free), c.Uint(&size)); err != nil {
		return err
	}
	if missing := int64(size) - int64(m.size()); missing > 0 &&
		(missing%pageBytes != 0 || !m.grow(uint32(missing/pageBytes))) || missing < 0 {
		return fmt.Errorf("module %s can't have %d bytes of memory", m.name, size)
	}
	return c.Bytes(m.bytes(0, uint32(size)))
}

// checkpoint saves the run, if it is time to.
func (w *world) checkpoint() {
	c := w.checkpoints
	if !c.due() || w.draining {
		return
	}
	if err := w.save(); err != nil && c.Failed != nil {
		c.Failed(fmt.Errorf("write checkpoint %s: %w", c.Path, err))
	}
	c.last = time.Now()
}

// save writes the run's state aside, and then puts it into its place: a file is whole or not there.
func (w *world) save() error {
	path := w.checkpoints.Path + ".new"
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = w.saveTo(f)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path, w.checkpoints.Path)
	}
	if err != nil {
		os.Remove(path)
	}
	return err
}

func (w *world) saveTo(f io.Writer) error {
	sum := sha256.New()
	out := bufio.NewWriter(io.MultiWriter(f, sum))
	head, err := json.Marshal(w.checkpointHead())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s%s\n", checkpointMagic, head) // Flush returns its error
	compressed, err := zstd.NewWriter(out,
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	state := &counter{to: compressed}
	err = snapshot.Save(state, &w, w.rules())
	if err = errors.Join(err, compressed.Close()); err != nil {
		return err
	}
	out.Write(binary.LittleEndian.AppendUint64(nil, state.bytes))
	if err := out.Flush(); err != nil {
		return err
	}
	_, err = f.Write(sum.Sum(nil))
	return err
}

// counter counts what is written.
type counter struct {
	to    io.Writer
	bytes uint64
}

func (c *counter) Write(b []byte) (int, error) {
	c.bytes += uint64(len(b))
	return c.to.Write(b)
}

func (w *world) checkpointHead() checkpointHead {
	c := w.checkpoints
	return checkpointHead{c.Program, c.Run, len(w.worlds()), w.sinceStart(w.now)}
}

// resume goes on from the run's checkpoint, if there is one.
func (w *world) resume(c *Checkpoints) error {
	w.checkpoints = c
	if c == nil {
		return nil
	}
	c.last = time.Now()
	f, err := os.Open(c.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the checkpoint: %w", err)
	}
	defer f.Close()
	if err := w.load(f); err != nil {
		return fmt.Errorf("go on from checkpoint %s: %w", c.Path, err)
	}
	if c.Resumed != nil {
		c.Resumed(w.sinceStart(w.now))
	}
	return nil
}

// errCut says what to do with a file that is not as it was written.
var errCut = errors.New("the file is cut short or damaged: remove it to begin anew")

// load loads a checkpoint over a run that was just built.
func (w *world) load(f *os.File) error {
	stateBytes, body, err := checkWhole(f)
	if err != nil {
		return err
	}
	in := bufio.NewReader(body)
	if err := w.checkHead(in); err != nil {
		return err
	}
	state, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer state.Close()
	if err := snapshot.Load(state, stateBytes, &w, w.rules()); err != nil {
		return err
	}
	if w.down != nil {
		w.setRoutes()
	}
	return nil
}

// checkWhole checks a file's sum. It returns the size of its state, and all before the tail.
func checkWhole(f *os.File) (stateBytes uint64, body io.Reader, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	size := info.Size() - checkpointTail
	if size < int64(len(checkpointMagic)) {
		return 0, nil, errCut
	}
	sum := sha256.New()
	tail := make([]byte, checkpointTail)
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size+8)); err != nil {
		return 0, nil, err
	}
	if _, err := f.ReadAt(tail, size); err != nil {
		return 0, nil, err
	}
	if !bytes.Equal(sum.Sum(nil), tail[8:]) {
		return 0, nil, errCut
	}
	return binary.LittleEndian.Uint64(tail), io.NewSectionReader(f, 0, size), nil
}

// checkHead fails for a checkpoint of something else.
func (w *world) checkHead(in *bufio.Reader) error {
	magic, err1 := in.ReadString('\n')
	line, err2 := in.ReadBytes('\n')
	var got checkpointHead
	if err := errors.Join(err1, err2); err != nil || magic != checkpointMagic {
		return errors.New("it is not a checkpoint of this format: remove it to begin anew")
	}
	if err := json.Unmarshal(line, &got); err != nil {
		return fmt.Errorf("read its head: %w", err)
	}
	switch want := w.checkpointHead(); {
	case got.Program != want.Program:
		return errors.New("another build of pcn wrote it: go on with that one, or remove the " +
			"file to begin anew")
	case got.Run != want.Run:
		return errors.New("it is of another experiment, case, scheme, seed or duration: give " +
			"those that it was begun with, or another --out")
	case got.Parts != want.Parts:
		return fmt.Errorf("the run had %d threads and now has %d: give --threads %d",
			got.Parts, want.Parts, got.Parts)
	}
	return nil
}
