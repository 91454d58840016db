// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/sweep"
)

// tableFile is the table as Markdown, in the folder of results.
const tableFile = "table.md"

// Write writes the page and the table into the folder, and returns the page's path.
func (r *Reproduction) Write(out string) (string, error) {
	page := filepath.Join(out, launch.ReportFile)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of results: %w", err)
	}
	for path, write := range map[string]func(io.Writer) error{
		filepath.Join(out, tableFile): r.WriteMarkdown, page: r.writePage,
	} {
		f, err := os.Create(path)
		if err != nil {
			return "", fmt.Errorf("write %s: %w", path, err)
		}
		if err := errors.Join(write(f), f.Close()); err != nil {
			return "", fmt.Errorf("write %s: %w", path, err)
		}
	}
	return page, nil
}

func (r *Reproduction) writePage(w io.Writer) error {
	page := report.Reproduction{Summary: r.Summary()}
	rows := r.Rows
	for _, f := range r.Figures {
		title := f.Paper.Title + ", " + f.Title
		x := report.ReproducedFigure{ID: f.ID(), Title: title, Note: f.Note}
		for range f.Claims {
			x.Claims = append(x.Claims, rows[0].forPage())
			rows = rows[1:]
		}
		if res := r.results[f.ID()][experiment.EngineSim]; res != nil {
			x.Sweeps = append(x.Sweeps, res.Report())
		}
		var err error
		if x.Bands, err = r.bands(f); err != nil {
			return fmt.Errorf("figure %s: %w", f.ID(), err)
		}
		page.Figures = append(page.Figures, x)
	}
	return report.WriteReproduction(w, page)
}

func (row Row) forPage() report.ReproducedClaim {
	c := row.Claim
	x := report.ReproducedClaim{
		What: c.What, Quote: c.Quote, Paper: row.paper(),
		Simulation: row.on(experiment.EngineSim), Kernel: row.on(experiment.EngineKernel),
		Verdict: string(row.Verdict), Met: row.Verdict == Met, Command: row.command(),
		Missed: c.Missed, Shows: c.Shows, Min: math.Inf(-1), Max: math.Inf(1),
	}
	if c.Min != nil {
		x.Min = c.Min.Value
	}
	if c.Max != nil {
		x.Max = c.Max.Value
	}
	if e := row.Results[row.Figure.decides()]; e != nil && e.Seeds > 0 {
		x.HasValue, x.Low, x.Value, x.High = true, e.Low, e.Value, e.High
	}
	return x
}

// bands reads the runs of a figure that is drawn, one after the other: together they are too much.
func (r *Reproduction) bands(f *Figure) ([]*report.Bands, error) {
	res, plan := r.results[f.ID()][experiment.EngineSim], r.plans[f.ID()][experiment.EngineSim]
	if !f.Draw || res == nil {
		return nil, nil
	}
	all := make([]*report.Bands, len(res.Sweep.Points))
	for i, p := range res.Sweep.Points {
		all[i] = report.NewBands(p.Experiment)
	}
	for _, row := range res.Rows {
		if row.Verdict == result.Invalid {
			continue
		}
		run, err := result.Read(sweep.CellDir(plan.Dir, row.ID))
		if err != nil {
			return nil, fmt.Errorf("cell %s: %w", row.ID, err)
		}
		if err := all[row.Point].Add(run); err != nil {
			return nil, fmt.Errorf("cell %s: %w", row.ID, err)
		}
	}
	return all, nil
}
