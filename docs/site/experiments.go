// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

var experimentsLine = regexp.MustCompile(`(?m)^<!-- experiments (.+) -->$`)

// withExperiments puts a list of the experiments that run any of some schemes where a document asks
// for it.
func withExperiments(text string) (string, error) {
	line := experimentsLine.FindStringSubmatch(text)
	if line == nil {
		return text, nil
	}
	schemes := strings.Fields(line[1])
	var list strings.Builder
	list.WriteString("| `pcn run` | what it shows |\n|---|---|\n")
	for _, name := range experiments.Names() {
		e, err := experiments.Load(name)
		if err != nil {
			return "", err
		}
		runs := func(scheme string) bool { return slices.Contains(e.Schemes, scheme) }
		if slices.ContainsFunc(schemes, runs) {
			fmt.Fprintf(&list, "| `%s` | %s |\n", name, e.Title)
		}
	}
	return strings.Replace(text, line[0], list.String(), 1), nil
}
