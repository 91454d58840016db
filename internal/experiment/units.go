// SPDX-License-Identifier: Apache-2.0

package experiment

import "github.com/pcn-linux/pcn/config"

// Values with units, as files have them. Times are in the paper's time.
type (
	Rate     = config.Rate
	Duration = config.Duration
	Bytes    = config.Bytes
	Ratio    = config.Ratio
	Unit     = config.Unit
	Quantity = config.Quantity
)

// The units of [Duration].
const (
	Nanosecond  = config.Nanosecond
	Microsecond = config.Microsecond
	Millisecond = config.Millisecond
	Second      = config.Second
)

// The units of a quantity.
const (
	UnitCount = config.UnitCount
	UnitShare = config.UnitShare
	UnitTime  = config.UnitTime
	UnitRate  = config.UnitRate
	UnitBytes = config.UnitBytes
)
