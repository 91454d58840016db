// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// header names the columns of the table.
var header = []string{"figure", "claim", "paper (band)", "simulation", "declared", "kernel",
	"verdict", "command"}

// columns returns the row's texts, with its verdict and command as they are to be written.
func (row Row) columns(verdict, command string) []string {
	return []string{
		row.Figure.ID(), row.Claim.What, row.paper(),
		row.on(experiment.EngineSim), row.declared(), row.on(experiment.EngineKernel), verdict,
		command,
	}
}

// declared returns what came out with the declared parameters.
func (row Row) declared() string {
	if row.Declared == nil {
		return "-"
	}
	return fmt.Sprintf("%s: %s", row.Declared, row.DeclaredVerdict)
}

// verdict returns the row's verdict, and whether parameters were fitted for it.
func (row Row) verdict() string {
	if row.Figure.CauseOf != "" {
		return row.causeVerdict()
	}
	if len(row.Fitted) > 0 && row.Verdict == Met {
		return "met, fitted"
	}
	return string(row.Verdict)
}

// paper returns the paper's value and the band that it leaves.
func (row Row) paper() string { return fmt.Sprintf("%s (%s)", row.Claim.Paper, row.Claim.Band()) }

// on returns what an engine measured.
func (row Row) on(engine experiment.Engine) string {
	e := row.Results[engine]
	if e == nil || engine != row.Figure.decides() && e.Seeds < minSeeds {
		return "-"
	}
	text := e.String()
	if f := row.Figure; engine != f.decides() &&
		!maps.Equal(f.part(engine, row.quick).size(), f.part(f.decides(), row.quick).size()) {
		text += otherSize
	}
	return text
}

// otherSize marks a value of runs that are shorter or longer, or of another network or workload,
// than those that decide.
const otherSize = " (other size)"

// size returns the settings that say how long runs are, and of which network and workload.
func (p *Part) size() map[string]string {
	size := maps.Clone(p.Set)
	maps.DeleteFunc(size, func(path, _ string) bool {
		top, _, _ := strings.Cut(path, ".")
		return !slices.Contains([]string{"duration", "topology", "workload"}, top)
	})
	return size
}

// command returns what prints the row's value again, with the seeds that ran.
func (row Row) command() string {
	f, engine := row.Figure, row.Figure.decides()
	text := fmt.Sprintf("pcn reproduce %s --engine %s", f.ID(), engine)
	if row.quick {
		text += " --quick"
	}
	e, part := row.Results[engine], f.part(engine, row.quick)
	if e != nil && !slices.Equal(e.ran, part.Seeds) {
		text += " --seeds " + strings.Join(ranges(e.ran), ",")
	}
	return text
}

// causeVerdict says whether the paper's number is there once a cause is removed.
func (row Row) causeVerdict() string {
	switch row.Verdict {
	case Met:
		return "came back"
	case NotMet:
		return "did not come back"
	}
	return string(row.Verdict)
}

// Table returns the table as texts, with a header, but without the commands: it is for terminals.
func (r *Reproduction) Table() [][]string {
	last := len(header) - 1
	table := [][]string{header[:last]}
	for _, row := range r.Rows {
		table = append(table, row.columns(row.verdict(), "")[:last])
	}
	return table
}

// Summary says in one line how many claims are met, and with which parameters.
func (r *Reproduction) Summary() string {
	claims := 0
	for _, row := range r.Rows {
		if row.Figure.CauseOf == "" {
			claims++
		}
	}
	text := fmt.Sprintf("%d of %d claims are met, %d are not", r.Count(Met), claims,
		r.Count(NotMet))
	if n := r.Count(TooFew); n > 0 {
		text += fmt.Sprintf(", %d ran with too few seeds", n)
	}
	if n := r.Count(NotRun); n > 0 {
		text += fmt.Sprintf(", %d were not run", n)
	}
	ran, met, fits := 0, 0, 0
	for _, row := range r.Rows {
		if row.Figure.CauseOf != "" {
			continue
		}
		if row.Declared != nil {
			ran++
		}
		if row.DeclaredVerdict == Met {
			met++
		}
		if row.Verdict == Met && len(row.Fitted) > 0 {
			fits++
		}
	}
	if ran > 0 {
		text += fmt.Sprintf(". With the declared parameters %d of %d are met; %d of those that "+
			"are met have others", met, ran, fits)
	}
	open := 0
	for _, p := range r.papers() {
		open += len(p.Open)
	}
	if open > 0 {
		text += fmt.Sprintf(". %d more claims are open: nothing measures them", open)
	}
	return text + "."
}

// WriteMarkdown writes the table, and what explains the claims that are not met.
func (r *Reproduction) WriteMarkdown(w io.Writer) error {
	var text strings.Builder
	text.WriteString(r.Summary() + "\n\n")
	writeRow := func(cells []string) {
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", "\\|")
		}
		fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | "))
	}
	writeRow(slices.Clone(header))
	writeRow(slices.Repeat([]string{"---"}, len(header)))
	for _, row := range r.Rows {
		verdict := row.verdict()
		if verdict == string(NotMet) {
			verdict = "**not met**"
		}
		writeRow(row.columns(verdict, "`"+row.command()+"`"))
	}
	r.writeOpen(&text)
	for _, x := range r.fits() {
		fmt.Fprintf(&text, "\n- %s\n", wrap(x, "  "))
	}
	for _, x := range r.misses() {
		fmt.Fprintf(&text, "\n- %s\n", wrap("**"+x.figure+"**: "+x.why, "  "))
		if x.shows != "" {
			fmt.Fprintf(&text, "  Shown by\n  `%s`.\n", x.shows)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// papers returns the papers of the figures, each once.
func (r *Reproduction) papers() []*Paper {
	var all []*Paper
	for _, f := range r.Figures {
		if !slices.Contains(all, f.Paper) {
			all = append(all, f.Paper)
		}
	}
	return all
}

// writeOpen lists the claims that nothing measures.
func (r *Reproduction) writeOpen(text *strings.Builder) {
	first := true
	for _, p := range r.papers() {
		for _, c := range p.Open {
			if first {
				text.WriteString("\n| paper | claim that is open | its words | why it is open |\n" +
					"| --- | --- | --- | --- |\n")
				first = false
			}
			fmt.Fprintf(text, "| %s | %s | \"%s\" | %s |\n", p.Name, c.What, c.Quote, c.Why)
		}
	}
}

// fits says of each figure which parameters differ from the declared ones, and what those are.
func (r *Reproduction) fits() []string {
	var all []string
	for _, f := range r.Figures {
		var names []string
		for _, row := range r.Rows {
			if row.Figure != f {
				continue
			}
			for _, name := range row.Fitted {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		if len(names) > 0 {
			all = append(all, fmt.Sprintf("**%s** has other parameters than the declared, which "+
				"stand in parentheses: %s.", f.ID(), strings.Join(names, ", ")))
		}
	}
	return all
}

// miss is why claims of a figure are not met.
type miss struct{ figure, why, shows string }

// misses returns the reasons of the rows that are not met, each reason of a figure once.
func (r *Reproduction) misses() []miss {
	var all []miss
	seen := map[miss]bool{}
	for _, row := range r.Rows {
		if row.Verdict != NotMet || row.Figure.CauseOf != "" {
			continue
		}
		x := miss{figure: row.Figure.ID(), why: row.Claim.Missed, shows: row.Claim.Shows}
		switch by := row.Claim.RemovedBy; {
		case x.why == "":
			x.why = "Open: nothing explains \"" + row.Claim.What + "\"."
		case by == "":
			x.why = "Open, as no run is without it: " + x.why
		default:
			x.why = r.withoutCause(row.Figure.Paper.Name+"-"+by, row.Claim.What, x.why)
		}
		if seen[x] {
			continue
		}
		seen[x] = true
		all = append(all, x)
	}
	return all
}

// withoutCause says what the runs of a figure without a cause say of it: its claim of the same
// thing or, if it has none, all of its claims.
func (r *Reproduction) withoutCause(id, what, why string) string {
	verdict := NotRun
	for _, row := range r.Rows {
		if row.Figure.ID() != id {
			continue
		}
		if row.Claim.What == what {
			verdict = row.Verdict
			break
		}
		if verdict != NotMet {
			verdict = row.Verdict
		}
	}
	switch verdict {
	case Met:
		return fmt.Sprintf("%s. Without that (%s) the number comes back", why, id)
	case NotMet:
		return fmt.Sprintf("Open, as the number does not come back without that (%s): %s", id, why)
	}
	return fmt.Sprintf("Open, as %s did not run, which is without that: %s", id, why)
}

// textWidth is that of Markdown files.
const textWidth = 98

// wrap breaks the text into lines; all but the first are indented.
func wrap(text, indent string) string {
	var out strings.Builder
	width := len(indent)
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case width+1+len(word) > textWidth:
			out.WriteString("\n" + indent)
			width = len(indent)
		default:
			out.WriteString(" ")
			width++
		}
		out.WriteString(word)
		width += len(word)
	}
	return out.String()
}
