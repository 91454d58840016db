// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// value is a value of JSON that knows its line.
type value struct {
	line   int
	text   string            // of a string, number, true, false or null
	list   []*value          // of an array
	keys   []string          // of an object, in the order of the file
	fields map[string]*value // of an object; nil if it is none
}

// mostDepth is how deep values may be in each other: a configuration has four levels.
const mostDepth = 16

// reader turns the tokens of a file into values.
type reader struct {
	*json.Decoder
	file      string
	data      []byte
	line, pos int // the line of data[pos]
	twice     []repeat
}

// repeat is a key that an object has twice. SONiC takes the last.
type repeat struct {
	key         string
	first, line int
}

// lineNow returns the line of the last token.
func (r *reader) lineNow() int {
	now := int(r.InputOffset())
	r.line += bytes.Count(r.data[r.pos:now], []byte("\n"))
	r.pos = now
	return r.line
}

// fail returns an error of the last token's line.
func (r *reader) fail(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", r.file, r.lineNow(), fmt.Sprintf(format, args...))
}

// parse reads a file that is one object of JSON, and returns the keys that it has twice.
func parse(file string, data []byte) (*value, []repeat, error) {
	r := &reader{Decoder: json.NewDecoder(bytes.NewReader(data)), file: file, data: data, line: 1}
	r.UseNumber()
	v, err := r.value(0)
	if err != nil {
		return nil, nil, err
	}
	if v.fields == nil {
		return nil, nil, r.fail("not an object, {TABLE: {KEY: {FIELD: VALUE}}}: want " +
			"config_db.json, as \"config save\" and \"sonic-cfggen -d --print-data\" write it")
	}
	if _, err = r.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, r.fail("more text behind the end of the object: remove it")
	}
	return v, r.twice, nil
}

func (r *reader) token() (json.Token, error) {
	t, err := r.Token()
	if err == nil {
		return t, nil
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		line := 1 + bytes.Count(r.data[:min(int(syntax.Offset), len(r.data))], []byte("\n"))
		return nil, fmt.Errorf("%s:%d: not JSON: %w", r.file, line, err)
	}
	return nil, r.fail("not JSON: the file ends in the middle")
}

func (r *reader) value(depth int) (*value, error) {
	t, err := r.token()
	if err != nil {
		return nil, err
	}
	v := &value{line: r.lineNow()}
	if depth == mostDepth {
		return nil, r.fail("values are more than %d deep in each other", mostDepth)
	}
	switch t {
	case json.Delim('{'):
		v.fields = map[string]*value{}
		for r.More() {
			key, err := r.token()
			if err != nil {
				return nil, err
			}
			name := key.(string) // the decoder takes nothing else before a colon
			line := r.lineNow()
			field, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			field.line = line
			if first, ok := v.fields[name]; ok {
				r.twice = append(r.twice, repeat{name, first.line, line})
			} else {
				v.keys = append(v.keys, name)
			}
			v.fields[name] = field
		}
	case json.Delim('['):
		for r.More() {
			item, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			v.list = append(v.list, item)
		}
	default:
		v.text = fmt.Sprint(t)
		return v, nil
	}
	_, err = r.token() // the end of the object or array
	return v, err
}

// String returns a field's value; lists as SONiC's older files write them, with commas.
func (v *value) String() string {
	if v == nil {
		return ""
	}
	if v.list == nil {
		return v.text
	}
	var items []string
	for _, item := range v.list {
		items = append(items, item.text)
	}
	return strings.Join(items, ",")
}

// field returns a field of an object; nil if there is none.
func (v *value) field(name string) *value {
	if v == nil {
		return nil
	}
	return v.fields[name]
}

// unfold makes tables of rows whose names have their table in front, TABLE|KEY, as dumps of the
// database have them.
func (v *value) unfold() error {
	var keys []string
	for _, key := range v.keys {
		table, name, ok := strings.Cut(key, "|")
		if !ok {
			keys = append(keys, key)
			continue
		}
		row := v.fields[key]
		delete(v.fields, key)
		t := v.fields[table]
		if t == nil {
			t = &value{line: row.line, fields: map[string]*value{}}
			v.fields[table], keys = t, append(keys, table)
		}
		if t.fields == nil || t.fields[name] != nil {
			return fmt.Errorf("line %d: %s is given twice", row.line, key)
		}
		t.fields[name], t.keys = row, append(t.keys, name)
	}
	v.keys = keys
	return nil
}

// split makes a row of each port of those that a table has for several, PORT,PORT.
func (v *value) split() {
	if v == nil {
		return
	}
	for _, key := range v.keys {
		ports := strings.Split(key, ",")
		if len(ports) == 1 {
			continue
		}
		row := v.fields[key]
		delete(v.fields, key)
		v.keys = slices.DeleteFunc(slices.Clone(v.keys), func(k string) bool { return k == key })
		for _, port := range ports {
			if v.fields[port] == nil {
				v.fields[port], v.keys = row, append(v.keys, port)
			}
		}
	}
}
