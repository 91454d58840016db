// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
)

// FlowsRefused is how many flows found the table full.
func (c *Control) FlowsRefused() (uint64, error) {
	var n uint64
	err := c.coll.Variables["flows_refused"].Get(&n)
	return n, err
}

// BaseRTT is the smallest round trip that LDCP has measured to a host; ErrNoFlow if it has none.
func (c *Control) BaseRTT(host netip.Addr) (time.Duration, error) {
	var ns uint64
	err := c.coll.Maps["base_rtts"].Lookup(host.As16(), &ns)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return 0, ErrNoFlow
	}
	return time.Duration(ns), err
}
