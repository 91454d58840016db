// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"

	"github.com/pcn-linux/pcn/internal/table"
)

// ReadTables reads the tables of result folders as one: of a run, of several seeds, or of a sweep.
// Each folder is that of results, or contains those of several.
func ReadTables(dirs []string) (table.Table, error) {
	var all []table.Table
	for _, dir := range dirs {
		found, err := dirsWith(table.File, dir, maxDepth)
		if err != nil {
			return table.Table{}, fmt.Errorf("look for results: %w", err)
		}
		if len(found) == 0 {
			return table.Table{}, fmt.Errorf("%s holds no %s: give the folder that pcn run or "+
				"pcn sweep named, after it has ended", dir, table.File)
		}
		for _, d := range found {
			t, err := table.ReadFile(d)
			if err != nil {
				return table.Table{}, err
			}
			all = append(all, t)
		}
	}
	return table.Join(all), nil
}
