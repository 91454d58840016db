// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"fmt"
	"maps"
	"time"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/loader"
)

// registration is that of a scheme that comes along, at this line rate, with all defaults but
// these.
func registration(name string, lineRateBps uint64, keysAndValues ...string) loader.Registration {
	s, err := scheme.Builtin().Lookup(name)
	if err != nil {
		panic(err) // a mistake in the test
	}
	r := loader.Registration{
		Scheme: s,
		Network: scheme.Network{
			LineRateBps: lineRateBps, BaseRTTNs: uint64(time.Millisecond), FrameBytes: frameBytes,
		},
	}
	return with(r, keysAndValues...)
}

// with is the registration with these values of parameters besides, as files write them.
func with(r loader.Registration, keysAndValues ...string) loader.Registration {
	given := maps.Clone(r.Settings.Given)
	if given == nil {
		given = map[string]scheme.Value{}
	}
	for i := 0; i < len(keysAndValues); i += 2 {
		key, text := keysAndValues[i], keysAndValues[i+1]
		v, err := r.Scheme.Object.Param(key).Parse(text)
		if err != nil {
			panic(fmt.Sprintf("%s: %s: %v", r.Scheme.Name, key, err))
		}
		given[key] = v
	}
	r.Settings.Given = given
	return r
}

// withNumber is with for a number that no file could give.
func withNumber(r loader.Registration, key string, number float64) loader.Registration {
	r = with(r)
	r.Settings.Given[key] = scheme.Value{Kind: r.Scheme.Object.Param(key).Kind, Number: number}
	return r
}

func pcn(lineRateBps uint64) loader.Registration { return registration("pcn", lineRateBps) }

func line(lineRateBps uint64) loader.Registration { return registration("pfc", lineRateBps) }

// recovery is QCN's and DCQCN's, with the longest timer that there is.
func recovery(name, timer string, lineRateBps uint64) loader.Registration {
	return registration(name, lineRateBps, "min_rate", "1Mbps", timer, never, "fast_recovery", "5",
		"rate_ai", bps(lineRateBps/100), "rate_hai", bps(lineRateBps/10))
}

// never is the longest time that a timer may have.
const never = "1s"

func bps(rate uint64) string { return fmt.Sprintf("%dbps", rate) }

// dcqcn has timers that do not run out within a second.
func dcqcn(lineRateBps uint64) loader.Registration {
	return with(recovery("dcqcn", "rate_timer", lineRateBps), "byte_counter", "0",
		"g", "1/16", "initial_alpha", "0.75", "alpha_timer", never)
}

// qcn has a timer that does not run out within a second, and a byte counter that does not in 10 GB.
func qcn(lineRateBps uint64) loader.Registration {
	return with(recovery("qcn", "timer", lineRateBps), "byte_counter", "10GB", "half_from", "ai",
		"hai_after_packets", "0", "gd", "1/128", "min_decrease_factor", "0.5")
}

// timely is such that no round trip changes the rate: none is long, and ACKs that are less than
// half a second apart add less than half a bit per second.
func timely(lineRateBps uint64) loader.Registration {
	return registration("timely", lineRateBps, "min_rate", "1Mbps",
		"delta", "1bps", "delta_factor", "true", "min_rtt", "1s", "t_low", never, "t_high", never,
		"ewma", "0.5", "beta", "0.8", "max_cut", "0.5", "hai_after", "0")
}

// ibcc has a table whose entry i, 0 to 9, divides the line rate by i + 1.
func ibcc(lineRateBps uint64) loader.Registration {
	return registration("ibcc", lineRateBps, "ccti_timer", never, "ccti_increase", "1",
		"ccti_limit", "9", "cct_delay", "9", "cct_exponent", "1")
}

// withTCD is the registration under the scheme whose switches mark by TCD.
func withTCD(r loader.Registration) loader.Registration {
	s, err := r.Scheme.WithTCD()
	if err != nil {
		panic(err)
	}
	r.Scheme = s
	return r
}

// paced are all controls that pace, each at line rate until it hears of congestion.
func paced(lineRateBps uint64) map[string]loader.Registration {
	return map[string]loader.Registration{
		"pcn":      pcn(lineRateBps),
		"pcn_line": line(lineRateBps),
		"dcqcn":    dcqcn(lineRateBps),
		"qcn":      qcn(lineRateBps),
		"timely":   timely(lineRateBps),
		"ibcc":     ibcc(lineRateBps),

		"dcqcn_tcd":  withTCD(dcqcn(lineRateBps)),
		"timely_tcd": withTCD(timely(lineRateBps)),
		"ibcc_tcd":   withTCD(ibcc(lineRateBps)),
	}
}
