// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"cmp"
	"fmt"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
)

// Shares of the bands that rules compute.
const (
	nearShare   = 0.25
	factorShare = 0.75
	pointsShare = 0.05 // of the capacity
)

// checkRule computes the claim's band by its rule, and fails if the rule lacks something or a band
// is written that the rule computes.
func checkRule(d *config.Decoder, at string, c *Claim) {
	fail := func(msg, hint string) { d.Fail(at+"rule", msg, hint) }
	written := c.Min != nil || c.Max != nil
	switch {
	case c.Rule == "":
		return // reported
	case c.Rule == RuleOurs && !written:
		fail("the claim has neither min nor max", "add min: or max:")
		return
	case c.Rule != RuleOurs && written:
		fail(fmt.Sprintf("the rule %q computes the band", c.Rule), "remove min and max")
		return
	case c.Rule == RuleBetween && len(c.Numbers) != 2:
		fail(`the rule "between" needs two numbers`, "write numbers: [50KB, 100KB]")
		return
	case c.needsNumber() && c.Number == nil:
		fail(fmt.Sprintf("the rule %q needs the paper's number", c.Rule), "add number:")
		return
	case c.Rule == RuleNear && c.Within > nearShare:
		fail(fmt.Sprintf("within %s is more than a quarter", c.Within), "remove it")
		return
	}
	if !c.computeBand() {
		fail(fmt.Sprintf("unknown rule %q", c.Rule), "near, points, at_most, at_least, between, "+
			"factor, none, some, less, more or ours")
	}
	c.Paper = cmp.Or(c.Paper, c.number())
	if c.Paper == "" {
		d.Fail(at+"paper", "the claim has neither the paper's word nor its number",
			"add paper: or number:")
	}
}

func (c *Claim) needsNumber() bool {
	switch c.Rule {
	case RuleNear, RulePoints, RuleAtMost, RuleAtLeast, RuleFactor:
		return true
	}
	return false
}

// number returns the paper's number as text.
func (c *Claim) number() string {
	switch {
	case c.Number != nil && c.Rule == RuleFactor && c.Number.Value >= 1:
		return c.Number.String() + " times"
	case c.Number != nil:
		return c.Number.String()
	case len(c.Numbers) == 2:
		return c.Numbers[0].String() + " to " + c.Numbers[1].String()
	}
	return ""
}

// computeBand sets Min and Max; false if there is no such rule.
func (c *Claim) computeBand() bool {
	times := func(share float64) *experiment.Quantity {
		return &experiment.Quantity{Value: c.Number.Value * share, Unit: c.Number.Unit}
	}
	plain := func(value float64) *experiment.Quantity {
		return &experiment.Quantity{Value: value, Unit: c.unit()}
	}
	switch c.Rule {
	case RuleNear:
		within := cmp.Or(float64(c.Within), nearShare)
		c.Min, c.Max = times(1-within), times(1+within)
	case RulePoints:
		// a rate of 10 Gbit/s has points of 100 Mbit/s
		capacity := 1.0
		if c.Number.Unit == config.UnitRate {
			capacity = pointsCapacityBps
		}
		low, high := *c.Number, *c.Number
		low.Value -= pointsShare * capacity
		high.Value += pointsShare * capacity
		c.Min, c.Max = &low, &high
	case RuleAtMost:
		c.Max = c.Number
	case RuleAtLeast:
		c.Min = c.Number
	case RuleBetween:
		c.Min, c.Max = &c.Numbers[0], &c.Numbers[1]
	case RuleFactor:
		if c.Number.Value < 1 { // PCN has so much of the others'
			c.Max = times(1 / factorShare)
		} else {
			c.Min = times(factorShare)
		}
	case RuleNone:
		c.Max = plain(0)
	case RuleSome:
		c.Min = plain(1)
	case RuleLess:
		c.Max = plain(1)
	case RuleMore:
		c.Min = plain(1)
	case RuleOurs:
	default:
		return false
	}
	return true
}

// pointsCapacityBps is that of the links whose rate the papers give as a share.
const pointsCapacityBps = 10e9
