// SPDX-License-Identifier: Apache-2.0

package host

import "fmt"

// SettingsOf returns the settings of a control as status shows them where it runs.
func (c *Config) SettingsOf(control string) ([]Setting, error) {
	components, err := controlComponents(c, c.LineRate, c.RTT)
	if err != nil {
		return nil, err
	}
	for _, one := range components {
		if one.name == controlPrefix+control {
			return one.settings, nil
		}
	}
	return nil, fmt.Errorf("control %s is not to be registered", control)
}
