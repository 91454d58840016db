// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pcn-linux/pcn/internal/vm/guest"
)

// followInterval is the interval of reading the console's file.
const followInterval = 10 * time.Millisecond

// console keeps the guest's output and passes it on line by line.
type console struct {
	began time.Time
	boot  time.Duration // from began to guest.ReadyLine, 0 before
	text  strings.Builder
	line  []byte // unfinished
	done  bool
	tee   io.Writer
}

// follow reads the console's file until done is closed, and then what is left.
func (c *console) follow(file io.ReaderAt, done <-chan struct{}) error {
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	var offset int64
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-done:
			ended = true
		}
		data, err := io.ReadAll(io.NewSectionReader(file, offset, 1<<62-offset))
		if err != nil {
			return fmt.Errorf("read the guest's console: %w", err)
		}
		offset += int64(len(data))
		if err := c.add(data); err != nil {
			return err
		}
	}
	if len(c.line) > 0 && !c.done {
		return c.add([]byte("\n"))
	}
	return nil
}

// add processes complete lines.
func (c *console) add(data []byte) error {
	c.line = append(c.line, bytes.ReplaceAll(data, []byte("\r"), nil)...)
	for !c.done {
		line, rest, found := bytes.Cut(c.line, []byte("\n"))
		if !found {
			return nil
		}
		c.line = rest
		if err := c.addLine(string(line)); err != nil {
			return err
		}
	}
	return nil
}

func (c *console) addLine(line string) error {
	if c.boot == 0 && line == guest.ReadyLine {
		c.boot = time.Since(c.began)
		return nil
	}
	line, c.done = strings.CutSuffix(line, guest.DoneLine)
	if c.done && line == "" {
		return nil
	}
	line += "\n"
	c.text.WriteString(line)
	if c.boot == 0 || c.tee == nil {
		return nil
	}
	if _, err := io.WriteString(c.tee, line); err != nil {
		return fmt.Errorf("pass on the guest's console: %w", err)
	}
	return nil
}
