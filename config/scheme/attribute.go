// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// attribute is one statement about a control's scheme in its C source (bpf/include/scheme.h).
type attribute struct {
	text  string // as it is written
	value string
	key   string   // of the parameter that it depends on; empty: it holds always
	in    []string // the parameter's values with which it holds
}

// attributeValues holds the possible values of each attribute; nil allows any text.
var attributeValues = map[string][]string{
	"name": nil, "section": nil, "title": nil, "source": nil, "min_rate": nil,
	burstsBy: nil, "tcd.values": nil,
	"sender": senders, "marker": markers, "notification": notifications, "hears": messages,
	"ecn":     {"needed"},
	"at_kmax": {"all"},
	"accecn":  yes, "counts_acks": yes, "delayed_ack": yes, "first_rtt": {"drop"}, "tcd": yes,
	"telemetry":  {"int"},
	"tcd.marker": markers, "tcd.notification": notifications, "tcd.hears": messages,
	"tcd.ecn": {"needed"},
}

// Possible values of attributes.
var (
	senders       = []string{string(SenderRate), string(SenderWindow), string(SenderLine)}
	markers       = []string{"npecn", "red", "fecn", "qcn", ownValue + "FILE"}
	notifications = []string{"pcn", "marked", ownValue + "FILE"}
	messages      = []string{"cnp", "cnm"}
	yes           = []string{"yes"}
)

// checkAttribute fails for an unknown attribute or value.
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

// parseAttributes reads the attributes from the annotations of a variable.
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

// Attribute returns the text of an attribute, such as "pcn when feedback is cnp or auto"; it is
// empty if the control does not set it (bpf/include/scheme.h).
func (o *Object) Attribute(name string) string { return o.attributes[name].text }

// ReactionPoint is the program of a control's object that reads what it hears of receivers.
const ReactionPoint = "rp_ingress"

// SetRate is the program of a rate-based control's object that sets a flow's rate.
const SetRate = "set_rate"

// burstsBy names the parameters that the operation min_tso_segs goes by.
const burstsBy = "bursts_by"

func burstKeys(a attribute) []string { return strings.Split(a.value, " or ") }

// checkBursts fails if there are no such parameters.
func (o *Object) checkBursts() error {
	a, ok := o.attributes[burstsBy]
	if !ok {
		return nil
	}
	for _, key := range burstKeys(a) {
		if o.Param(key) == nil {
			return noParameter(burstsBy, key)
		}
	}
	return nil
}

func noParameter(attribute, key string) error {
	return fmt.Errorf("attribute %q depends on %q: there is no such parameter", attribute, key)
}

// checkAttributes fails for attributes that depend on an unknown parameter.
func (o *Object) checkAttributes() error {
	for _, name := range slices.Sorted(maps.Keys(o.attributes)) {
		a := o.attributes[name]
		if a.key == "" {
			continue
		}
		p := o.Param(a.key)
		if p == nil {
			return noParameter(name, a.key)
		}
		for _, value := range a.in {
			if _, err := p.Parse(value); err != nil {
				return fmt.Errorf("attribute %q depends on %s: %w", name, a.key, err)
			}
		}
	}
	return o.checkBursts()
}

// neededKeys holds the parameters that a marker, a notification point or telemetry reads.
var neededKeys = map[string][]string{
	"red": {"marking.kmin", "marking.kmax", "marking.pmax"},
	"qcn": {"qeq", "w", "sample_base", "sample_jitter"},
	"pcn": {"T", "congested_share", "rate_unit"},
	// WRED, which drops packets of the first round trip.
	"drop": {"wred_k"},
	// Telemetry's units, and the window of flows.
	"int": {"int_multi", "rtt"},
}

// checkParts fails if the object lacks parameters of its marker, notification point, WRED or
// telemetry.
func (o *Object) checkParts() error {
	for _, name := range []string{"marker", "notification", "first_rtt", "telemetry", "tcd.marker",
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

// tcdPrefix starts the attributes that apply if switches mark by TCD.
const tcdPrefix = "tcd."

// valueFor returns the attribute's value for these values of parameters; empty if its condition
// does not hold.
func (a attribute) valueFor(v *Values) string {
	if a.key != "" && !slices.Contains(a.in, v.Get(a.key).String()) {
		return ""
	}
	return a.value
}
