// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"fmt"
	"slices"
	"strings"
)

// attribute is something that a control's description says of its scheme (bpf/include/scheme.h).
type attribute struct {
	value string
	key   string   // of the parameter that it depends on; empty: it holds always
	in    []string // the parameter's values with which it holds
}

// The attributes that a description may have.
var attributeNames = []string{
	"name", "section", "title", "source", "sender", "marker", "notification", "hears", "ecn", "accecn", "counts_acks",
	"delayed_ack", "first_rtt", "min_rate", "tcd", "tcd.marker", "tcd.notification", "tcd.hears", "tcd.ecn", "tcd.values",
}

const attributeTag = "scheme:"

// parseAttributes reads the description that stands on a variable.
func parseAttributes(list []string) (map[string]attribute, error) {
	all := map[string]attribute{}
	for _, tag := range list {
		text, ok := strings.CutPrefix(tag, attributeTag)
		if !ok {
			continue
		}
		name, value, _ := strings.Cut(text, "=")
		if !slices.Contains(attributeNames, name) {
			return nil, fmt.Errorf("unknown attribute %q of the scheme: want one of %s", name, strings.Join(attributeNames, ", "))
		}
		a := attribute{value: value}
		if v, condition, ok := strings.Cut(value, " when "); ok {
			key, in, ok := strings.Cut(condition, " is ")
			if !ok {
				return nil, fmt.Errorf("attribute %q depends on %q: want KEY is VALUE or VALUE", name, condition)
			}
			a = attribute{v, key, strings.Split(in, " or ")}
		}
		all[name] = a
	}
	return all, nil
}

// in returns the attribute's value where parameters have these values; empty if it does not hold.
func (a attribute) under(v *Values) string {
	if a.key != "" && !slices.Contains(a.in, v.Get(a.key).String()) {
		return ""
	}
	return a.value
}
