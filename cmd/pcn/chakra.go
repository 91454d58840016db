// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/chakra"
)

func newChakra() *cobra.Command {
	var groups string
	c := &cobra.Command{
		Use:   "chakra TRACE...",
		Short: "Turn execution traces of Chakra into a GOAL schedule",
		Long: `Read execution traces of MLCommons' Chakra (protobuf or JSON), one of each rank, or a
folder of them, and write a GOAL schedule. An experiment runs it with trace: {file: FILE}. The
number before a file's ending is its rank: trace.0.et, trace.1.et and on.

Collectives are rings, as in ASTRA-sim; all-to-all sends all at once.`,
		Example: `  pcn workload chakra all_reduce/ > all_reduce.goal
  pcn workload chakra trace.*.et --groups comm_groups.json > trace.goal`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var o chakra.Options
			if groups != "" {
				data, err := config.ReadFile(groups, config.MaxFile)
				if err != nil {
					return err
				}
				if err := json.Unmarshal(data, &o.Groups); err != nil {
					return fmt.Errorf("%s: want {\"NAME\": [RANK, RANK]}: %w", groups, err)
				}
			}
			ranks, err := readRanks(args)
			if err != nil {
				return err
			}
			schedule, err := chakra.Schedule(ranks, o)
			if err != nil {
				return err
			}
			return schedule.Write(cmd.OutOrStdout())
		},
	}
	c.Flags().StringVar(&groups, "groups", "",
		`process groups, a JSON file {"NAME": [RANK, RANK]} (default: all ranks are one)`)
	return c
}

// mostTraceBytes bounds the file of a rank.
const mostTraceBytes = 1 << 30

// readRanks reads the traces of all ranks, which are files or all of a folder.
func readRanks(paths []string) ([][]chakra.Node, error) {
	if info, err := os.Stat(paths[0]); err == nil && info.IsDir() && len(paths) == 1 {
		dir := paths[0]
		for _, ending := range []string{"*.et", "*.json"} {
			if paths, err = filepath.Glob(filepath.Join(dir, ending)); err != nil {
				return nil, err
			}
			if len(paths) > 0 {
				break
			}
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("%s has no *.et and no *.json: want a trace of each rank", dir)
		}
	}
	ranks := make([][]chakra.Node, len(paths))
	for _, path := range paths {
		parts := strings.Split(filepath.Base(path), ".")
		rank, err := strconv.Atoi(parts[max(len(parts)-2, 0)])
		if err != nil || rank < 0 || rank >= len(paths) || ranks[rank] != nil {
			return nil, fmt.Errorf("%s: want NAME.RANK.et, with ranks 0 to %d, each once", path,
				len(paths)-1)
		}
		data, err := config.ReadFile(path, mostTraceBytes)
		if err != nil {
			return nil, err
		}
		nodes, err := chakra.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		ranks[rank] = slices.Clip(nodes)
	}
	return ranks, nil
}
