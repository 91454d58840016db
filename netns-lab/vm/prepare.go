// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pcn-linux/pcn/netns-lab/vm/guest"
)

// errCannotPause says that this QEMU can't pause and save a microVM.
var errCannotPause = errors.New("this QEMU can't save a microVM")

// prepare boots a microVM until it waits for a job, and returns its state.
func prepare(ctx context.Context, c Config) (*machineState, error) {
	var archive bytes.Buffer
	if err := initramfs(&archive, c.Program, guest.Job{Paused: true}, c.Kernel, nil); err != nil {
		return nil, err
	}
	files, err := newSharedFiles(archive.Bytes())
	if err != nil {
		return nil, err
	}
	defer files.close()
	state, err := newState(c.memoryBytes())
	if err != nil {
		return nil, err
	}
	devices, err := newState(0)
	if err != nil {
		state.close()
		return nil, err
	}
	defer devices.close()
	files.paths.memory = files.inherit(state.file)
	if err = prepareIn(ctx, c, files, files.inherit(devices.file)); err == nil {
		err = appendFile(state, devices.file)
	}
	if err != nil {
		state.close()
		return nil, err
	}
	return state, nil
}

// prepareIn has QEMU prepare a microVM and write its devices' state to a file.
func prepareIn(ctx context.Context, c Config, files *sharedFiles, devices string) error {
	commands, ours, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe to QEMU: %w", err)
	}
	defer commands.Close()
	defer ours.Close()
	m := &monitor{commands: ours, devices: devices}
	said := &console{began: time.Now()}
	stderr, err := runQEMU(ctx, c, prepareArguments(c, files.paths), files, said,
		&standardStreams{commands, m})
	switch console := said.text.String(); {
	case ctx.Err() != nil:
		return fmt.Errorf("microVM stopped: %w", ctx.Err())
	case m.failed != nil:
		return fmt.Errorf("%w: %w", errCannotPause, m.failed)
	case strings.Contains(stderr, "not a valid device model name"):
		return errCannotPause
	case err != nil:
		return fmt.Errorf("%s failed: %w\n%s", c.Kernel.qemu(), err, lastLines(stderr+console))
	case m.saved:
		return nil
	case strings.Contains(console, "Kernel panic"):
		return fmt.Errorf("%w; the last lines of its console:\n%s", ErrPanic, lastLines(console))
	default:
		return fmt.Errorf("the microVM ended before it had a job; the last lines of its "+
			"console:\n%s", lastLines(stderr+console))
	}
}

// appendFile writes a file behind a state's memory.
func appendFile(state *machineState, devices *os.File) error {
	data, err := io.ReadAll(io.NewSectionReader(devices, 0, 1<<62))
	if err != nil {
		return fmt.Errorf("read the state of the microVM's devices: %w", err)
	}
	if _, err := state.file.WriteAt(data, state.memory); err != nil {
		return fmt.Errorf("keep the state of the microVM's devices: %w", err)
	}
	return nil
}

// monitor talks to QEMU: when the machine has stopped it saves the devices and ends QEMU. It is the
// writer of what QEMU says, which is a JSON text a line.
type monitor struct {
	commands io.Writer
	devices  string // where to save them
	line     []byte
	saved    bool
	failed   error // QEMU refuses to save them
}

// Words of QEMU's monitor.
const (
	hello = `{"execute": "qmp_capabilities"}`
	quit  = `{"execute": "quit"}`
	// It saves all but memory in the main thread, in the format of a migration. A migration itself
	// has a thread of its own, which does not take turns with the others: QEMU fails an assertion.
	saveCommand = "xen-save-devices-state"
)

func (m *monitor) Write(b []byte) (int, error) {
	m.line = append(m.line, b...)
	for {
		line, rest, found := bytes.Cut(m.line, []byte("\n"))
		if !found {
			return len(b), nil
		}
		m.line = rest
		if err := m.hear(line); err != nil {
			return len(b), err
		}
	}
}

func (m *monitor) hear(line []byte) error {
	var message struct {
		QMP, Return json.RawMessage
		Event, ID   string
		Error       struct{ Desc string }
	}
	if err := json.Unmarshal(line, &message); err != nil {
		return fmt.Errorf("decode what QEMU's monitor says: %w", err)
	}
	switch {
	case message.QMP != nil:
		return m.say(hello)
	case message.Event == "STOP":
		text, err := json.Marshal(map[string]any{"execute": saveCommand, "id": saveCommand,
			"arguments": map[string]string{"filename": m.devices}})
		if err != nil {
			return fmt.Errorf("encode a command for QEMU: %w", err)
		}
		return m.say(string(text))
	case message.Error.Desc != "":
		m.failed = errors.New(message.Error.Desc)
		return m.say(quit)
	case message.ID == saveCommand:
		m.saved = true
		return m.say(quit)
	}
	return nil
}

func (m *monitor) say(command string) error {
	if _, err := io.WriteString(m.commands, command+"\n"); err != nil {
		return fmt.Errorf("tell QEMU what to do: %w", err)
	}
	return nil
}
