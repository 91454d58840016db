// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

const (
	greeting = `{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}}}` + "\r\n"
	stopped  = `{"return": {}}` + "\r\n" + `{"event": "WATCHDOG", "data": {"action": "pause"}}` +
		"\r\n" + `{"event": "STOP"}` + "\r\n"
	saveIt = `{"arguments":{"filename":"/x \"y\""},"execute":"xen-save-devices-state",` +
		`"id":"xen-save-devices-state"}` + "\n"
)

func TestMonitor(t *testing.T) {
	tests := []struct {
		name, says, want string
		saved            bool
		failed           string
	}{
		{name: "starts", says: greeting, want: hello + "\n"},
		{name: "stops", says: greeting + stopped, want: hello + "\n" + saveIt},
		{name: "saves", says: greeting + stopped +
			`{"return": {}, "id": "xen-save-devices-state"}` + "\n",
			want: hello + "\n" + saveIt + quit + "\n", saved: true},
		{name: "does not know", says: greeting + stopped +
			`{"id": "xen-save-devices-state", "error": {"class": "CommandNotFound", ` +
			`"desc": "no such command"}}` + "\n", want: hello + "\n" + saveIt + quit + "\n",
			failed: "no such command"},
		{name: "fails", says: greeting + stopped +
			`{"id": "xen-save-devices-state", "error": {"class": "GenericError", ` +
			`"desc": "no space"}}` + "\n", want: hello + "\n" + saveIt + quit + "\n",
			failed: "no space"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var said strings.Builder
			m := monitor{commands: &said, devices: `/x "y"`}
			for _, b := range []byte(test.says) { // a byte at a time
				_, err := m.Write([]byte{b})
				qt.Assert(t, qt.IsNil(err))
			}
			qt.Check(t, qt.Equals(said.String(), test.want))
			qt.Check(t, qt.Equals(m.saved, test.saved))
			if test.failed == "" {
				qt.Check(t, qt.IsNil(m.failed))
			} else {
				qt.Check(t, qt.ErrorMatches(m.failed, test.failed))
			}
		})
	}
}

func TestMonitorErrors(t *testing.T) {
	m := monitor{commands: io.Discard}
	_, err := m.Write([]byte("no JSON\n"))
	qt.Check(t, qt.ErrorMatches(err, "decode what QEMU's monitor says: .*"))

	broken := errors.New("broken")
	m = monitor{commands: failingWriter{broken}}
	_, err = m.Write([]byte(greeting))
	qt.Check(t, qt.ErrorIs(err, broken))
}
