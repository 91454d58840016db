// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
)

// setKey is the key of a section that names its preset.
const setKey = "set"

// Section decodes the parameters of an object from a mapping in a file.
type Section struct {
	Object *Object
	// Takes reports whether the mapping may have a parameter; nil allows all.
	Takes func(Param) bool
	// Extra holds the decoders of further keys.
	Extra map[string]func(path string, value *yaml.Node)
}

// Decode decodes the mapping at path. It adds mistakes to the decoder's errors.
func (s Section) Decode(d *config.Decoder, path string, n *yaml.Node) Settings {
	settings := Settings{Given: map[string]Value{}}
	s.mapping(d, path, "", n, &settings)
	return settings
}

// mapping decodes a mapping of keys that begin with prefix in the object.
func (s Section) mapping(d *config.Decoder, path, prefix string, n *yaml.Node, to *Settings) {
	d.EachKey(path, n, func(key string, at, value *yaml.Node) {
		child := path + "." + key
		extra := s.Extra[prefix+key]
		switch {
		case extra != nil:
			extra(child, value)
		case prefix == "" && key == setKey && len(s.Object.sets()) > 0:
			to.Set = d.Text(child, value)
		case s.hasMapping(prefix + key + "."):
			s.mapping(d, child, prefix+key+".", value, to)
		default:
			s.parameter(d, child, prefix+key, at, value, to)
		}
	})
}

func (s Section) hasMapping(prefix string) bool {
	return slices.ContainsFunc(s.Object.Params, func(p Param) bool {
		return strings.HasPrefix(p.Key, prefix) && s.takes(p)
	})
}

func (s Section) takes(p Param) bool { return s.Takes == nil || s.Takes(p) }

func (s Section) parameter(d *config.Decoder, path, key string, at, value *yaml.Node,
	to *Settings) {
	p := s.Object.Param(key)
	if p == nil || !s.takes(*p) {
		d.FailAt(at, fmt.Sprintf("unknown key %q", at.Value),
			config.Suggest(at.Value, s.keysBeside(key)))
		return
	}
	text := d.Text(path, value)
	if d.IsBad(value) {
		return
	}
	v, err := p.Parse(text)
	if err != nil {
		d.Check(value, err)
		return
	}
	to.Given[key] = v
}

// keysBeside returns the keys that are possible in the mapping of key.
func (s Section) keysBeside(key string) []string {
	prefix := key[:strings.LastIndexByte(key, '.')+1]
	var keys []string
	if prefix == "" && len(s.Object.sets()) > 0 {
		keys = append(keys, setKey)
	}
	for _, p := range s.Object.Params {
		rest, ok := strings.CutPrefix(p.Key, prefix)
		first, _, _ := strings.Cut(rest, ".")
		if ok && s.takes(p) && !slices.Contains(keys, first) {
			keys = append(keys, first)
		}
	}
	return slices.AppendSeq(keys, maps.Keys(s.Extra))
}
