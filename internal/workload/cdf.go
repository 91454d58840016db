// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"embed"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/config"
)

//go:embed cdf/*.txt
var cdfFiles embed.FS

// CDF is the cumulative distribution of flow sizes: straight lines between points, from share 0 to
// 1.
type CDF struct {
	bytes, share []float64
	// Counted is whether the file has a value between size and share, as ns-2's have, whose sizes
	// often are numbers of packets.
	Counted bool
}

// maxBytes is the largest size of a flow.
const maxBytes = 1e15

// CDFs returns the names of the distributions that come with pcn, in alphabetical order.
func CDFs() []string {
	paths, _ := fs.Glob(cdfFiles, "cdf/*.txt") // fails only for a malformed pattern
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = strings.TrimSuffix(strings.TrimPrefix(p, "cdf/"), ".txt")
	}
	slices.Sort(names)
	return names
}

// NamedCDF returns a distribution that comes with pcn.
func NamedCDF(name string) (*CDF, error) {
	file := "cdf/" + name + ".txt"
	data, err := cdfFiles.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("unknown distribution of flow sizes %q (hint: one of %s)",
			name, strings.Join(CDFs(), ", "))
	}
	return ParseCDF(file, string(data))
}

// ParseCDF parses a distribution. Each line has a size in bytes and the share of flows of at most
// this size; a third value between them, as in files of ns-2, says nothing here. Neither shrinks
// from line to line: all flows between two shares of one size have that size. The share goes from 0
// to 1, or to 100 if it is in percent. A single line is the size of all flows. A comment starts
// with #. Errors name the file and wrap an [*config.Error].
func ParseCDF(file, text string) (*CDF, error) {
	c := &CDF{}
	line := 0
	for l := range strings.Lines(text) {
		line++
		l, _, _ = strings.Cut(l, "#")
		fields := strings.Fields(l)
		if len(fields) == 0 {
			continue
		}
		if err := c.add(fields); err != nil {
			return nil, &config.Error{File: file, Line: line, Msg: err.Error()}
		}
	}
	if err := c.normalise(); err != nil {
		return nil, &config.Error{File: file, Line: max(line, 1), Msg: err.Error()}
	}
	return c, nil
}

func (c *CDF) add(fields []string) error {
	if len(fields) == 1 && len(c.bytes) == 0 {
		return fmt.Errorf("one value, %s: want a size in bytes and a share. If this is the mean, "+
			"with which files of Homa's simulator begin, remove the line; their sizes may be "+
			"packets", fields[0])
	}
	if len(fields) != 2 && len(fields) != 3 {
		return fmt.Errorf("%d values: want a size in bytes and a share", len(fields))
	}
	var point [2]float64
	c.Counted = c.Counted || len(fields) == 3
	fields = []string{fields[0], fields[len(fields)-1]}
	for i, text := range fields {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0 && v <= maxBytes) {
			return fmt.Errorf("invalid value %q: want a number from 0 to %g", text, maxBytes)
		}
		point[i] = v
	}
	if last := len(c.bytes) - 1; last >= 0 &&
		(point[0] < c.bytes[last] || point[1] < c.share[last]) {
		return fmt.Errorf("size %s or share %s shrinks: want as much as in the line before, or more",
			fields[0], fields[1])
	}
	c.bytes, c.share = append(c.bytes, point[0]), append(c.share, point[1])
	return nil
}

// normalise turns percent into shares.
func (c *CDF) normalise() error {
	if len(c.share) == 0 {
		return fmt.Errorf("the distribution is empty: want lines with a size in bytes and a share")
	}
	total := c.share[len(c.share)-1]
	if total != 1 && total != 100 {
		return fmt.Errorf("the last share is %g: want 1 or 100", total)
	}
	for i := range c.share {
		c.share[i] /= total
	}
	if len(c.share) == 1 {
		c.bytes, c.share = []float64{c.bytes[0], c.bytes[0]}, []float64{0, 1}
	}
	if c.share[0] != 0 {
		return fmt.Errorf("the first share is %g: want 0, with a size below that of all flows",
			c.share[0])
	}
	// no flow has a size below the last of share 0
	for len(c.share) > 1 && c.share[1] == 0 {
		c.bytes, c.share = c.bytes[1:], c.share[1:]
	}
	return nil
}

// Quantile returns the size that this share of flows, 0 to 1, does not exceed. It is at least 1
// byte.
func (c *CDF) Quantile(share float64) uint64 {
	i := min(max(sort.SearchFloat64s(c.share, share), 1), len(c.share)-1)
	part := (share - c.share[i-1]) / (c.share[i] - c.share[i-1])
	return max(uint64(math.Round(c.bytes[i-1]+part*(c.bytes[i]-c.bytes[i-1]))), 1)
}

// MeanBytes returns the mean size.
func (c *CDF) MeanBytes() float64 {
	sum := 0.0
	for i := 1; i < len(c.bytes); i++ {
		sum += (c.bytes[i-1] + c.bytes[i]) / 2 * (c.share[i] - c.share[i-1])
	}
	return sum
}
