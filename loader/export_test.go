// SPDX-License-Identifier: Apache-2.0

package loader

// FlowsRefused is how many flows found the table full.
func (c *Control) FlowsRefused() (uint64, error) {
	var n uint64
	err := c.coll.Variables[pcnVarFlowsRefused].Get(&n)
	return n, err
}
