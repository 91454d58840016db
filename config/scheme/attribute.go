// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// attribute is something that a control's description says of its scheme (bpf/include/scheme.h).
type attribute struct {
	text  string // as it is written
	value string
	key   string   // of the parameter that it depends on; empty: it holds always
	in    []string // the parameter's values with which it holds
}

// attributeValues are the attributes that a description may have, with what they may be; nil: any
// text.
var attributeValues = map[string][]string{
	"name": nil, "section": nil, "title": nil, "source": nil, "min_rate": nil,
	"tcd.values": nil,
	"sender":     senders, "marker": markers, "notification": notifications, "hears": heard,
	"ecn":    {"needed"},
	"accecn": yes, "counts_acks": yes, "delayed_ack": yes, "first_rtt": {"drop"}, "tcd": yes,
	"tcd.marker": markers, "tcd.notification": notifications, "tcd.hears": heard,
	"tcd.ecn": {"needed"},
}

// What attributes may be.
var (
	senders       = []string{string(SenderRate), string(SenderWindow), string(SenderLine)}
	markers       = []string{"npecn", "red", "fecn", "qcn", ownValue + "FILE"}
	notifications = []string{"pcn", "marked", ownValue + "FILE"}
	heard         = []string{"cnp", "cnm"}
	yes           = []string{"yes"}
)

// checkAttribute fails for an attribute that there is not, or that cannot be this.
func checkAttribute(name, value string) error {
	values, ok := attributeValues[name]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(attributeValues)), ", ")
		return fmt.Errorf("unknown attribute %q of the scheme: want one of %s", name, known)
	}
	isOwn := strings.HasPrefix(value, ownValue) && slices.Contains(values, ownValue+"FILE")
	if values != nil && !isOwn && !slices.Contains(values, value) {
		return fmt.Errorf("unknown %s %q of the scheme: want %s", name, value,
			strings.Join(values, " or "))
	}
	return nil
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
		a := attribute{text: value, value: value}
		if v, condition, ok := strings.Cut(value, " when "); ok {
			key, in, ok := strings.Cut(condition, " is ")
			if !ok {
				return nil, fmt.Errorf("attribute %q depends on %q: want KEY is VALUE or VALUE",
					name, condition)
			}
			a = attribute{value, v, key, strings.Split(in, " or ")}
		}
		if err := checkAttribute(name, a.value); err != nil {
			return nil, err
		}
		all[name] = a
	}
	return all, nil
}

// Attribute returns what the control says of its scheme, such as "pcn when feedback is cnp or
// auto"; empty if it says nothing (bpf/include/scheme.h).
func (o *Object) Attribute(name string) string { return o.attributes[name].text }

// checkAttributes fails for attributes that depend on a parameter which is not there.
func (o *Object) checkAttributes() error {
	for _, name := range slices.Sorted(maps.Keys(o.attributes)) {
		a := o.attributes[name]
		if a.key == "" {
			continue
		}
		p := o.Param(a.key)
		if p == nil {
			return fmt.Errorf("attribute %q depends on %q: there is no such parameter", name, a.key)
		}
		for _, value := range a.in {
			if _, err := p.Parse(value); err != nil {
				return fmt.Errorf("attribute %q depends on %s: %w", name, a.key, err)
			}
		}
	}
	return nil
}

// neededKeys are the parameters that a marker or notification point goes by.
var neededKeys = map[string][]string{
	"red": {"marking.kmin", "marking.kmax", "marking.pmax"},
	"qcn": {"qeq", "w", "sample_base", "sample_jitter"},
	"pcn": {"T", "congested_share", "rate_unit"},
	// What drops packets of the first round trip.
	"drop": {"wred_k"},
}

// checkParts fails for a marker, notification point or drop whose parameters the object does not
// have.
func (o *Object) checkParts() error {
	for _, name := range []string{"marker", "notification", "first_rtt", "tcd.marker",
		"tcd.notification"} {
		if strings.HasPrefix(name, tcdPrefix) && o.attributes["tcd.values"].value != "" {
			continue // another section has them
		}
		value := o.attributes[name].value
		for _, key := range neededKeys[value] {
			if o.Param(key) == nil {
				return fmt.Errorf("%s %q of the scheme goes by parameter %q, and there is none",
					name, value, key)
			}
		}
	}
	return nil
}

// tcdPrefix begins the attributes that hold where switches mark by TCD.
const tcdPrefix = "tcd."

// under returns the attribute's value where parameters have these values; empty if it does not
// hold.
func (a attribute) under(v *Values) string {
	if a.key != "" && !slices.Contains(a.in, v.Get(a.key).String()) {
		return ""
	}
	return a.value
}
