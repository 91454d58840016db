// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
)

// checkpointsDir is in a result folder while its runs are under way, or were interrupted. It has
// the file of each run that has not ended, and for each that has a file with its fingerprint.
const checkpointsDir = "checkpoints"

// checkpoints are those of a result folder; nil: there are none.
type checkpoints struct {
	out    string
	engine Engine
}

// checkpointsOf prepares the checkpoints of runs.
func checkpointsOf(o Options, todo []job.Job) (*checkpoints, error) {
	if !o.Checkpoints {
		return nil, nil
	}
	c := &checkpoints{o.Out, o.Engine}
	for _, j := range todo {
		if err := os.MkdirAll(filepath.Dir(c.path(j)), 0o755); err != nil {
			return nil, fmt.Errorf("make the folder of checkpoints: %w", err)
		}
	}
	return c, nil
}

// path returns the file of a run that has not ended; empty if it has no checkpoints.
func (c *checkpoints) path(j job.Job) string {
	if c == nil {
		return ""
	}
	return filepath.Join(c.out, checkpointsDir, j.Label())
}

// ended returns the result of a run that has ended before the others were interrupted; nil if it
// has not.
func (c *checkpoints) ended(j job.Job) (*result.Run, error) {
	if c == nil {
		return nil, nil
	}
	was, err := os.ReadFile(c.path(j) + ".done")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read which runs have ended: %w", err)
	}
	is, err := c.engine.Fingerprint(j)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.out, j.Label())
	if string(was) != is {
		return nil, fmt.Errorf("the result in %s is of another build of pcn, or of another "+
			"experiment, seed or duration: give those that it was begun with, or another --out",
			dir)
	}
	return result.Read(dir)
}

// end notes that a run has ended, and its result is written.
func (c *checkpoints) end(j job.Job) error {
	if c == nil {
		return nil
	}
	print, err := c.engine.Fingerprint(j)
	if err != nil {
		return err
	}
	done := c.path(j) + ".done"
	err = os.WriteFile(done+".new", []byte(print), 0o644)
	if err == nil { // whole
		err = os.Rename(done+".new", done)
	}
	if err != nil {
		return fmt.Errorf("note that run %s has ended: %w", j.Label(), err)
	}
	if err := os.Remove(c.path(j)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a checkpoint: %w", err)
	}
	return nil
}

// remove removes all, when all runs have ended.
func (c *checkpoints) remove() error {
	if c == nil {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(c.out, checkpointsDir)); err != nil {
		return fmt.Errorf("remove the checkpoints: %w", err)
	}
	return nil
}

// interrupted reports whether a result folder is of runs with checkpoints that have not all ended.
func interrupted(out string) bool {
	info, err := os.Stat(filepath.Join(out, checkpointsDir))
	return err == nil && info.IsDir()
}
