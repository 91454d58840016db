// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/result"
)

// valuesFile has the metrics of a cell that keeps nothing else, in the order of the sweep's.
const valuesFile = "values.json"

// storedValue is a [Value] in the file.
type storedValue struct {
	Metric string   `json:"metric"`
	Value  *float64 `json:"value,omitempty"` // in ns, bit/s, bytes, or plain
	// NotReached says that a time is longer than the run, and Error why there is no value else.
	NotReached   bool   `json:"not_reached,omitempty"`
	LongerThanNs int64  `json:"longer_than_ns,omitempty"` // as long as it was waited for
	Error        string `json:"error,omitempty"`
}

func writeValues(dir string, metrics []Metric, values []Value) error {
	stored := make([]storedValue, len(values))
	for i, v := range values {
		stored[i].Metric = metrics[i].Name
		if v.Err == nil {
			stored[i].Value = &v.Value
			continue
		}
		stored[i].NotReached = errors.Is(v.Err, result.ErrNotReached)
		stored[i].LongerThanNs, _ = result.LongerThan(v.Err)
		stored[i].Error = v.Err.Error()
	}
	data, err := json.MarshalIndent(stored, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the values of a cell: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, valuesFile), append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the values of a cell: %w", err)
	}
	return nil
}

func readValues(dir string, metrics []Metric) ([]Value, error) {
	path := filepath.Join(dir, valuesFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the values of a cell: %w", err)
	}
	var stored []storedValue
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(stored) != len(metrics) {
		return nil, fmt.Errorf("%s has %d values: want %d", path, len(stored), len(metrics))
	}
	values := make([]Value, len(stored))
	for i, v := range stored {
		values[i].Quantity = config.Quantity{Unit: metrics[i].Metric.Unit()}
		switch {
		case v.Value != nil:
			values[i].Value = *v.Value
		case v.LongerThanNs > 0:
			values[i].Err = result.NotReached(v.LongerThanNs, v.Error)
		case v.NotReached: // of an older version
			values[i].Err = fmt.Errorf("%w: %s", result.ErrNotReached, v.Error)
		default:
			values[i].Err = errors.New(v.Error)
		}
	}
	return values, nil
}
