// SPDX-License-Identifier: Apache-2.0

// Package sonic checks the configuration of SONiC's switches, config_db.json, before it is used:
// headroom for cables and frames, thresholds in the wrong order, classes that do not match on the
// two ends of a link, pools that promise more than they have, and watchdogs of PFC.
package sonic

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	files "github.com/pcn-linux/pcn/config"
)

// config is the configuration of one switch.
type config struct {
	file  string
	name  string // of the switch
	root  *value
	twice []repeat

	ports    []string // in the order of the file
	groups   map[slot]entry
	buffers  map[slot]entry // of queues
	queues   map[slot]entry // their scheduler and WRED
	anyAdmin bool           // some port says whether it is up
}

// slot is a priority group or a queue of a port.
type slot struct {
	port   string
	number int
}

// entry is the row of a table that a slot is in.
type entry struct {
	key string
	row *value
}

// mostBytes bounds a file; those of the largest chassis are below 10 MB.
const mostBytes = 64 << 20

// read reads the configuration of a switch.
func read(file string) (*config, error) {
	data, err := files.ReadText(file, mostBytes)
	if err != nil {
		return nil, err
	}
	return parseConfig(file, data)
}

// templateLine returns the line of a file's first sign that it is a template; 0 if there is none.
// Configurations have such signs too, in strings.
func templateLine(data []byte) int {
	for _, sign := range []string{"{%", "{{", "{#"} {
		if before, _, ok := bytes.Cut(data, []byte(sign)); ok {
			return 1 + bytes.Count(before, []byte("\n"))
		}
	}
	return 0
}

func parseConfig(file string, data []byte) (*config, error) {
	root, twice, err := parse(file, data)
	if line := templateLine(data); err != nil && line > 0 {
		return nil, fmt.Errorf("%s:%d: this is a template, and its values are not known until "+
			"the switch fills it in: want what \"sonic-cfggen -d --print-data\" prints there, or "+
			"/etc/sonic/config_db.json", file, line)
	}
	if err != nil {
		return nil, err
	}
	if err = root.unfold(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c := &config{file: file, root: root, twice: twice}
	if err = c.validate(); err != nil {
		return nil, err
	}
	c.name = c.field("DEVICE_METADATA", "localhost", "hostname").String()
	c.name = cmp.Or(c.name, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
	if table := c.table("PORT"); table != nil {
		c.ports = table.keys
	}
	for _, p := range c.ports {
		c.anyAdmin = c.anyAdmin || c.field("PORT", p, "admin_status") != nil
	}
	c.table("PORT_QOS_MAP").split()
	for table, slots := range map[string]*map[slot]entry{
		"BUFFER_PG": &c.groups, "BUFFER_QUEUE": &c.buffers, "QUEUE": &c.queues,
	} {
		if *slots, err = c.slots(table); err != nil {
			return nil, err
		}
	}
	if len(c.ports) == 0 {
		c.ports = c.portsOfRows()
	}
	return c, nil
}

// portsOfRows returns the ports of a file without PORT, a part of a configuration.
func (c *config) portsOfRows() []string {
	ports := map[string]bool{}
	if table := c.table("PORT_QOS_MAP"); table != nil {
		for _, key := range table.keys {
			ports[key] = true
		}
	}
	for s := range c.groups {
		ports[s.port] = true
	}
	delete(ports, "global")
	return slices.Sorted(maps.Keys(ports))
}

// tables are those that are read; a file needs one of them.
var tables = []string{"PORT", "PORT_QOS_MAP", "BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG",
	"BUFFER_QUEUE", "WRED_PROFILE", "QUEUE", "SCHEDULER", "DEVICE_NEIGHBOR", "CABLE_LENGTH",
	"PFC_WD", "TC_TO_PRIORITY_GROUP_MAP", "DSCP_TO_TC_MAP", "TC_TO_QUEUE_MAP"}

// validate checks that tables have rows of fields.
func (c *config) validate() error {
	known := false
	for _, name := range c.root.keys {
		table := c.root.fields[name]
		if strings.HasPrefix(name, "asic") && table.fields["PORT"] != nil {
			return fmt.Errorf("%s:%d: the file has several ASICs: write each to a file of its own",
				c.file, table.line)
		}
		if !slices.Contains(tables, name) {
			continue
		}
		known = true
		if table.fields == nil {
			return fmt.Errorf("%s:%d: table %s is not an object of rows", c.file, table.line, name)
		}
		for _, key := range table.keys {
			if row := table.fields[key]; row.fields == nil {
				return fmt.Errorf("%s:%d: %s|%s is not an object of fields", c.file, row.line, name,
					key)
			}
		}
	}
	if !known {
		return fmt.Errorf("%s:1: no table of a switch in it: want config_db.json, which has PORT, "+
			"BUFFER_PG or PORT_QOS_MAP", c.file)
	}
	return nil
}

// table returns a table; nil if the file has none.
func (c *config) table(name string) *value { return c.root.fields[name] }

// row returns the row of a table; nil if there is none.
func (c *config) row(table, key string) *value { return c.table(table).field(key) }

// field returns a field of a row; nil if there is none.
func (c *config) field(table, key, name string) *value { return c.row(table, key).field(name) }

// number returns the value of a field that is a whole number.
func (c *config) number(table, key, name string) (int, bool, error) {
	f := c.field(table, key, name)
	if f == nil {
		return 0, false, nil
	}
	n, err := strconv.Atoi(strings.TrimSpace(f.String()))
	if err != nil || n < -1<<40 || n > 1<<40 {
		return 0, false, fmt.Errorf("%s:%d: %s|%s|%s is %q: want a whole number", c.file, f.line,
			table, key, name, f.String())
	}
	return n, true, nil
}

// reference returns the name in a field that names a row: older releases write [TABLE|NAME].
func reference(f *value) string {
	name := strings.Trim(f.String(), "[]")
	if _, after, ok := strings.Cut(name, "|"); ok {
		return after
	}
	return name
}

// slots returns the rows of a table whose keys are PORTS|NUMBERS. A chassis writes
// SWITCH|ASIC|PORT|NUMBERS, of all of its line cards.
func (c *config) slots(name string) (map[slot]entry, error) {
	slots := map[slot]entry{}
	table := c.table(name)
	if table == nil {
		return slots, nil
	}
	for _, key := range table.keys {
		row := table.fields[key]
		parts := strings.Split(key, "|")
		if len(parts) == 4 && parts[0] == c.name {
			parts = parts[2:]
		} else if len(parts) == 4 {
			continue
		}
		if len(parts) != 2 {
			return nil, fmt.Errorf("%s:%d: %s|%s: want PORT|NUMBER or PORT|FROM-TO", c.file,
				row.line, name, key)
		}
		from, to, err := span(parts[1])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %s|%s: %w", c.file, row.line, name, key, err)
		}
		for port := range strings.SplitSeq(parts[0], ",") {
			for i := from; i <= to; i++ {
				slots[slot{port, i}] = entry{key, row}
			}
		}
	}
	return slots, nil
}

// mostNumber is the highest number of a queue, with those of control packets.
const mostNumber = 63

// span reads a number or FROM-TO.
func span(text string) (from, to int, err error) {
	first, last, ok := strings.Cut(text, "-")
	if !ok {
		last = first
	}
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	if cmp.Or(err1, err2) != nil || from < 0 || to < from || to > mostNumber {
		return 0, 0, fmt.Errorf("%q is no queue or group: want a number to %d, or FROM-TO", text,
			mostNumber)
	}
	return from, to, nil
}

// up reports whether a port carries traffic.
func (c *config) up(port string) bool {
	return !c.anyAdmin || c.field("PORT", port, "admin_status").String() == "up"
}

// mapped returns where a map of a port leads to; ok is false if the file does not say.
func (c *config) mapped(table, port, field, from string) (to string, ok bool) {
	f := c.field("PORT_QOS_MAP", port, field)
	if f == nil {
		f = c.field("PORT_QOS_MAP", "global", field)
	}
	if f == nil {
		return "", false
	}
	v := c.field(table, reference(f), from)
	return v.String(), v != nil
}

// lossless returns the priorities that a port has PFC for.
func (c *config) lossless(port string) ([]int, error) {
	f := c.field("PORT_QOS_MAP", port, "pfc_enable")
	var list []int
	for _, part := range strings.FieldsFunc(f.String(), func(r rune) bool { return r == ',' }) {
		p, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || p < 0 || p > 7 {
			return nil, fmt.Errorf("%s:%d: PORT_QOS_MAP|%s|pfc_enable has %q: want priorities, 0 "+
				"to 7",
				c.file, f.line, port, part)
		}
		list = append(list, p)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// cable returns the length of a port's cable in metres; ok is false if the file does not say.
func (c *config) cable(port string) (metres float64, f *value, err error) {
	table := c.table("CABLE_LENGTH")
	if table == nil {
		return 0, nil, nil
	}
	for _, key := range table.keys {
		if f = table.fields[key].fields[port]; f == nil {
			continue
		}
		text, ok := strings.CutSuffix(f.String(), "m")
		metres, err = strconv.ParseFloat(text, 64)
		if !ok || err != nil || !(metres >= 0 && metres <= 1e6) {
			return 0, f, fmt.Errorf("%s:%d: CABLE_LENGTH|%s|%s is %q: want metres, such as 40m",
				c.file, f.line, key, port, f.String())
		}
		return metres, f, nil
	}
	return 0, nil, nil
}
