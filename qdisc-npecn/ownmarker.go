// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"bytes"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// spec returns the object to load: the built-in one, or the one with an own marker.
func (o *Options) spec() (*ebpf.CollectionSpec, error) {
	if o.Object == nil {
		return loadNpecn()
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(o.Object))
	if err != nil {
		return nil, fmt.Errorf("read the object with an own marker: %w", err)
	}
	// whatever else is missing is told when the object is loaded
	if spec.Maps[npecnMapPorts] == nil {
		return nil, fmt.Errorf("the object with an own marker has no map %q: "+
			"compile npecn.bpf.c with -DOWN_MARKER", npecnMapPorts)
	}
	return spec, nil
}

// ownMarker is where an object keeps what belongs to its own marker: struct port's last member. The
// zero value is that of an object without one.
type ownMarker struct {
	valueBytes   uint32 // of struct port
	paramsAt     uint32 // offset of struct own_marker_params in it
	paramsBytes  int
	fromOwnBuild bool
}

// findOwnMarker reads where it is from the object's BTF. It fails if the rest of struct port is not
// as in the built-in object: then the object was compiled from other sources.
func findOwnMarker(spec *ebpf.CollectionSpec) (ownMarker, error) {
	const builtIn = uint32(unsafe.Sizeof(npecnPort{}))
	m := spec.Maps[npecnMapPorts]
	found := ownMarker{valueBytes: m.ValueSize}
	port, ok := btf.As[*btf.Struct](m.Value)
	if !ok {
		return found, fmt.Errorf("the object has no BTF of struct port: compile it with -g")
	}
	end := m.ValueSize
	for _, member := range port.Members {
		own, ok := btf.As[*btf.Struct](member.Type)
		if member.Name != "own" || !ok {
			continue
		}
		params, err := btf.Sizeof(own.Members[0].Type)
		if err != nil {
			return found, fmt.Errorf("struct own_marker_params: %w", err)
		}
		end, found.paramsAt = member.Offset.Bytes(), member.Offset.Bytes()
		found.paramsBytes, found.fromOwnBuild = params, true
	}
	if end != builtIn {
		return found, fmt.Errorf("the object's struct port is of %d bytes, without an own marker: "+
			"want %d; compile it from the sources of this version", end, builtIn)
	}
	return found, nil
}

// check checks the ports that have an own marker.
func (m *ownMarker) check(ports []Port) error {
	for id := range ports {
		p := &ports[id]
		switch {
		case p.Marker != OwnMarker:
			continue
		case !m.fromOwnBuild:
			return fmt.Errorf("port %d (%s) has an own marker, and the object has none: "+
				"compile npecn.bpf.c with -DOWN_MARKER", id, p.Name)
		case len(p.OwnMarkerParams) != m.paramsBytes:
			return fmt.Errorf("port %d (%s): parameters of the own marker of %d bytes: want %d",
				id, p.Name, len(p.OwnMarkerParams), m.paramsBytes)
		}
	}
	return nil
}

// portValue returns the port as the map has it, with the parameters of an own marker if it has one.
func (m *ownMarker) portValue(p *npecnPort, params []byte) []byte {
	value := make([]byte, m.valueBytes)
	*view[npecnPort](value) = *p
	if m.fromOwnBuild {
		copy(value[m.paramsAt:][:m.paramsBytes], params)
	}
	return value
}
