// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/pcn-linux/pcn/loader"
)

// PortOptions holds the devices around a switch port in front of a real interface.
type PortOptions struct {
	Port int // index of the veth's end that has the qdisc
	Out  int // index of the real interface
}

// Port leads what a real interface sends through the npecn qdisc, and marks what the qdisc has
// judged (tc/bpf/port.bpf.c). The caller attaches it: ToPort last at the real interface's egress,
// FromPort at the ingress of the veth's other end.
type Port struct{ object }

// LoadPort loads the programs.
func LoadPort(o PortOptions, options ...Option) (*Port, error) {
	if o.Port <= 0 || o.Out <= 0 {
		return nil, fmt.Errorf("port: devices %d and %d: want their indexes", o.Port, o.Out)
	}
	spec, err := loadPort()
	if err != nil {
		return nil, err
	}
	obj, err := load("port", spec, map[string]any{
		portVarPortIfindex: uint32(o.Port), portVarOutIfindex: uint32(o.Out),
	}, nil, options...)
	if err != nil {
		return nil, err
	}
	return &Port{obj}, nil
}

// ToPort returns the place of the program at the real interface.
func (*Port) ToPort() Place { return Place{"to_port", ebpf.AttachTCXEgress, link.Tail()} }

// FromPort returns the place of the program behind the qdisc.
func (*Port) FromPort() Place { return Place{"from_port", ebpf.AttachTCXIngress, link.Head()} }

// PortFingerprint returns a hash of the programs of a [Port], for any devices.
func PortFingerprint() (string, error) {
	spec, err := loadPort()
	if err != nil {
		return "", err
	}
	return loader.Fingerprint(spec), nil
}
