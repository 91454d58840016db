// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"fmt"
	"math"
)

// DCTCPOptions are the parameters of DCTCP (RFC 8257; bpf/algo/dctcp.h).
type DCTCPOptions struct {
	G             float64 // weight of the newest window: 2^-10 to 1, a power of 2
	InitialAlpha  float64 // 0 to 1
	DilationShift uint32
	MaxFlows      uint32 // 0: 65536
}

// dctcpAlphaOne is alpha = 1 in bpf/algo/dctcp.h.
const dctcpAlphaOne = 1 << 10

// RegisterDCTCP registers congestion control "pcn_dctcp" (bpf/cc/dctcp.bpf.c). Receivers must run it too, or the
// kernel's dctcp.
func RegisterDCTCP(o DCTCPOptions, options ...Option) (*Control, error) {
	shift := -math.Log2(o.G)
	if !(shift >= 0 && shift <= 10 && shift == math.Trunc(shift)) || !(o.InitialAlpha >= 0 && o.InitialAlpha <= 1) {
		return nil, fmt.Errorf("pcn_dctcp: g %g, initial alpha %g: want 1, 1/2, ... 1/1024, and 0 to 1", o.G, o.InitialAlpha)
	}
	if o.DilationShift > MaxDilationShift {
		return nil, fmt.Errorf("pcn_dctcp: dilation shift %d: want 0 to %d", o.DilationShift, MaxDilationShift)
	}
	spec, err := loadDctcp()
	if err != nil {
		return nil, err
	}
	params := struct{ GShift, InitialAlpha uint32 }{uint32(shift), uint32(math.Round(o.InitialAlpha * dctcpAlphaOne))}
	return register(spec, definition{
		name: "pcn_dctcp", params: params, table: dctcpTable, maxFlows: o.MaxFlows, shift: o.DilationShift,
	}, options)
}
