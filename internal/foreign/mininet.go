// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // export.py
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pcn-linux/pcn/config"
)

//go:embed export.py
var exporter string

// exported is what export.py prints.
type exported struct {
	Error string
	Line  int
	Nodes []struct {
		Name   string
		Line   int
		Switch bool
		IP     string
	}
	Links []struct {
		A, B                    string
		Line                    int
		BW, Delay, Loss, Jitter string
		MaxQueueSize            string `json:"max_queue_size"`
	}
	Notes []Note
}

// Mininet reads a file for Mininet's Python, which python3 runs without Mininet: topo names one of
// its topos or classes, if it has several, and arguments are those of the program.
func Mininet(ctx context.Context, file, topo string, arguments ...string) (*Network, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, errors.New("a file for Mininet is a program of Python: install python3")
	}
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("read file for Mininet: %w", err)
	}
	const limit = time.Minute
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, failed bytes.Buffer
	args := append([]string{"-B", "-c", exporter, file, topo}, arguments...)
	run := exec.CommandContext(ctx, python, args...)
	run.Stdout, run.Stderr, run.WaitDelay = &out, &failed, limit
	if err := run.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it builds no network within %s", limit)
			return nil, &config.Error{File: file, Msg: err.Error()}
		}
		err = fmt.Errorf("python3: %w\n%s", err, last(failed.String()))
		return nil, &config.Error{File: file, Msg: err.Error()}
	}
	var got exported
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		return nil, &config.Error{File: file,
			Msg: fmt.Sprintf("what python3 prints of it: %v", err)}
	}
	if got.Error != "" {
		return nil, &config.Error{File: file, Line: got.Line, Msg: got.Error}
	}
	base := filepath.Base(file)
	n := &Network{Name: strings.TrimSuffix(base, filepath.Ext(base)), Notes: got.Notes}
	if err := n.take(&got); err != nil {
		return nil, &config.Error{File: file, Msg: err.Error()}
	}
	return n, nil
}

// last returns the last line of a text.
func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func (n *Network) take(got *exported) error {
	for _, x := range got.Nodes {
		address, _, _ := strings.Cut(x.IP, "/")
		node := &Node{Name: x.Name, Line: x.Line, Switch: x.Switch}
		if address != "" {
			node.Addresses = []string{address}
		}
		n.Nodes = append(n.Nodes, node)
	}
	plain := false
	for _, l := range got.Links {
		link := Link{A: l.A, B: l.B, Line: l.Line}
		var errs [3]error
		link.RateBps, errs[0] = number("bw", l.BW, 1e6)
		link.DelayNs, errs[1] = timeNs("delay", l.Delay)
		link.Loss, errs[2] = number("loss", l.Loss, 0.01)
		if err := errors.Join(errs[:]...); err != nil {
			return fmt.Errorf("line %d: link %s - %s: %w", l.Line, l.A, l.B, err)
		}
		const mostLoss = 0.5
		if link.Loss > mostLoss {
			n.note(l.Line, "loss of %s%%: 50%% here, the most that there may be", l.Loss)
			link.Loss = mostLoss
		}
		if l.Jitter != "" {
			n.note(l.Line, "jitter %s of a link is left out", l.Jitter)
		}
		if l.MaxQueueSize != "" {
			n.note(l.Line, "max_queue_size %s, packets: queues of all ports have "+
				"switch.port_buffer", l.MaxQueueSize)
		}
		if l.A == l.B {
			n.note(l.Line, "a link from %s to itself is left out", l.A)
			continue
		}
		plain = plain || link.RateBps == 0 || link.DelayNs == 0
		n.Links = append(n.Links, link)
	}
	if plain {
		n.note(0, "links without bw have 10 Gbit/s here, and those without delay 10 us")
	}
	return n.arrange()
}

// number returns a number in a unit; 0 for an empty text.
func number(what, text string, unit float64) (float64, error) {
	if text == "" {
		return 0, nil
	}
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || value < 0 || value > 1e9 {
		return 0, fmt.Errorf("%s %q: want a number", what, text)
	}
	return value * unit, nil
}

// timeNs returns a time as tc takes it: a number alone is of microseconds.
func timeNs(what, text string) (float64, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz ")
	units := map[string]float64{
		"us": 1e3, "usec": 1e3, "usecs": 1e3, "ms": 1e6, "msec": 1e6, "msecs": 1e6, "s": 1e9,
		"sec": 1e9, "secs": 1e9, "ns": 1, "nsec": 1, "nsecs": 1,
	}
	unit, ok := units[cmp.Or(strings.TrimSpace(text[len(digits):]), "us")]
	if !ok {
		return 0, fmt.Errorf("%s %q: want a time such as 5ms", what, text)
	}
	ns, err := number(what, digits, unit)
	const most = 10e9
	if err == nil && ns > most {
		err = fmt.Errorf("%s %q: want at most 10s", what, text)
	}
	return ns, err
}
