// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/safchain/ethtool"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/socket"
)

// measured is what components need to know of the network beside the configuration.
type measured struct {
	lineRate config.Rate
	rtt      config.Duration
}

// lineRate returns the configured line rate, or the speed that all interfaces have; 0 if no control
// needs it.
func lineRate(c *Config) (config.Rate, error) {
	usesLineRate := func(o Control) bool { return o.values().Uses("line_rate") }
	isNeeded := slices.ContainsFunc(c.Controls.all, usesLineRate) || c.hasAutoPeriod()
	if c.LineRate != 0 || !isNeeded {
		return c.LineRate, nil
	}
	var rate config.Rate
	var of string
	for _, name := range c.Interfaces() {
		speed, err := linkSpeed(name)
		if err != nil {
			return 0, err
		}
		if rate != 0 && speed != rate {
			return 0, fmt.Errorf("%s has %s and %s %s: say which with line_rate", of, rate, name,
				speed)
		}
		rate, of = speed, name
	}
	if rate == 0 {
		return 0,
			errors.New("no interface is named whose link speed could be the line rate: add " +
				"line_rate: 10Gbps")
	}
	return rate, nil
}

// linkSpeed returns the speed of an interface of the thread's network namespace, which /sys need
// not show.
func linkSpeed(name string) (config.Rate, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return 0, fmt.Errorf("read the link speed of interface %s: %w", name, err)
	}
	defer e.Close()
	// Not its GetLinkSettings, which prints where the kernel knows more link modes than it does.
	mbps, err := e.CmdGet(&ethtool.EthtoolCmd{}, name)
	if err == nil && mbps != 0 && mbps != math.MaxUint32 {
		return config.Rate(mbps) * 1e6, nil
	}
	return 0, notReady{fmt.Errorf("the link speed of interface %s is not known: is it there, and "+
		"up? or add line_rate: 10Gbps", name)}
}

// roundTrip returns the configured round trip, or that measured to the same services earlier, or
// measures it now. It returns 0 if the configuration has neither rtt nor rtt_to.
func (h *Host) roundTrip(ctx context.Context, c *Config) (config.Duration, error) {
	if c.RTT != 0 || len(c.RTTTo) == 0 {
		return c.RTT, nil
	}
	to := strings.Join(c.RTTTo, ",")
	names, err := h.components()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		s, err := h.folder(name).state()
		if err != nil || s == nil || s.setting("rtt_to") != to {
			continue
		}
		if rtt, err := config.ParseDuration(s.setting("rtt")); err == nil && rtt > 0 {
			return rtt, nil
		}
	}
	return MeasureRTT(ctx, c.RTTTo)
}

// MeasureRTT returns the largest round trip to the TCP services HOST:PORT. A service's round trip
// is the shortest of some handshakes.
func MeasureRTT(ctx context.Context, to []string) (config.Duration, error) {
	const handshakes = 5
	var largest time.Duration
	for _, service := range to {
		least := time.Duration(0)
		for range handshakes {
			rtt, err := handshake(ctx, service)
			if err != nil {
				return 0,
					notReady{fmt.Errorf("measure the round trip to %s: %w: is something listening "+
						"there? or add rtt: 50us", service, err)}
			}
			if least == 0 || rtt < least {
				least = rtt
			}
		}
		largest = max(largest, least)
	}
	return config.Duration(max(largest, time.Microsecond)), nil
}

// handshake opens a connection and returns the round trip that the kernel measured.
func handshake(ctx context.Context, service string) (time.Duration, error) {
	// one address after the other: goroutines would be in another network namespace
	dialer := net.Dialer{Timeout: 3 * time.Second, FallbackDelay: -1}
	c, err := dialer.DialContext(ctx, "tcp", service)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	info, err := socket.Info(c.(*net.TCPConn))
	if err != nil {
		return 0, err
	}
	return time.Duration(info.Rtt) * time.Microsecond, nil
}

// rttSettings returns the settings that record where the round trip comes from.
func rttSettings(c *Config, rtt config.Duration) []Setting {
	s := []Setting{{"rtt", rtt.String()}}
	if c.RTT == 0 && len(c.RTTTo) > 0 {
		s = append(s, Setting{"rtt_to", strings.Join(c.RTTTo, ",")})
	}
	return s
}

// ErrNotReady reports that something is not there, such as an interface, that may still come while
// the machine boots.
var ErrNotReady = errors.New("not ready")

type notReady struct{ error }

func (notReady) Is(target error) bool { return target == ErrNotReady }

func (e notReady) Unwrap() error { return e.error }
