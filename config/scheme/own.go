// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Own is a compiled scheme of the user's own.
type Own struct {
	// Control is the object of its congestion control.
	Control []byte `json:"control"`
	// Notification is the object of its notification point; nil if it has none of its own.
	Notification []byte `json:"notification,omitempty"`
	// Port is the object of switch ports with its marking rule; nil if it has none of its own.
	Port []byte `json:"port,omitempty"`
	// Simulated is the same for the simulator.
	Simulated Simulated `json:"simulated,omitzero"`
	// Warnings are what its files have that may not be meant, each with its line.
	Warnings []string `json:"warnings,omitempty"`
}

// Simulated is a scheme compiled for the simulator: wasm modules.
type Simulated struct {
	Control      []byte `json:"control,omitempty"`
	Notification []byte `json:"notification,omitempty"`
	Port         []byte `json:"port,omitempty"`
	// Missing says why there is none.
	Missing string `json:"missing,omitempty"`
}

// ownValue begins the value of an attribute that names a file: "own ./mark.h".
const ownValue = "own "

// OwnFile returns the file that the attribute "marker" or "notification" of the control names;
// empty if it names none.
func (o *Object) OwnFile(attribute string) string {
	file, ok := strings.CutPrefix(o.attributes[attribute].value, ownValue)
	if !ok {
		return ""
	}
	return file
}

// textPrefix starts the text form of an Own, to tell it from C.
const textPrefix = "pcn-scheme "

// MarshalText writes the objects as one line of text, to embed them in an experiment.
func (o Own) MarshalText() ([]byte, error) {
	type plain Own // without this method
	data, err := json.Marshal(plain(o))
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return []byte(textPrefix + base64.StdEncoding.EncodeToString(packed.Bytes())), nil
}

// maxOwnBytes limits the unpacked size of an Own.
const maxOwnBytes = 16 << 20

// UnmarshalText reads what MarshalText wrote.
func (o *Own) UnmarshalText(text []byte) error {
	packed, ok := strings.CutPrefix(strings.TrimSpace(string(text)), textPrefix)
	if !ok {
		return fmt.Errorf("it is not a compiled scheme: want a text that starts with %q",
			textPrefix)
	}
	data, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		return fmt.Errorf("decode a compiled scheme: %w", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("unpack a compiled scheme: %w", err)
	}
	if data, err = io.ReadAll(io.LimitReader(r, maxOwnBytes)); err != nil {
		return fmt.Errorf("unpack a compiled scheme: %w", err)
	}
	type plain Own
	var p plain
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("read a compiled scheme: %w", err)
	}
	*o = Own(p)
	return nil
}
