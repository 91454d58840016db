// SPDX-License-Identifier: Apache-2.0

package averaging

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// forms are RCP's sources by their steps of averaging. PD-RCP is AP-RCP's equivalent.
var forms = []string{"RCP", "AP-RCP, PD-RCP", "two-step AP-RCP"}

// Limits are the longest stable round trips of RCP with so many steps of averaging, in s.
type Limits struct {
	Linear   float64 // by linear analysis
	Run      float64 // by runs of the same equations
	Messages float64 // by runs with messages every T and a queue at 0 or above
}

// limitsOf computes the limits of the slides' RCP.
func limitsOf(steps int) Limits {
	g := gainsOf(steps)
	linear := delayLimit(slideRCP.Loop(g), 1e-2, 1e5)
	return Limits{
		Linear: linear,
		Run: bisect(linear/2, linear*2, 0.005, func(rtt float64) bool {
			return slideRCP.Grows(g, rtt)
		}),
		Messages: bisect(0.02, 0.4, 0.02, func(rtt float64) bool {
			m := messages{RCP: slideRCP, Steps: steps, RTT: rtt, Start: 1.02}
			return m.Swing(12) > 0.05
		}),
	}
}

// slideLimits are the round trips of the slides' plots, stable and not, in ms.
var slideLimits = []string{"60 to 65", "120 to 130", "230 to 240"}

// Response is one of the slides' step responses of the generic plant.
type Response struct {
	Slide, Steps int
	Delay        float64 // s
}

// responses are those of slides 45 to 48.
var responses = []Response{{45, 1, 0}, {46, 1, 8}, {47, 2, 14}, {48, 2, 25}}

const (
	responsePeriod  = 0.1 // s
	responseSeconds = 400
)

// WriteTables writes the limits of RCP's forms and of the generic plant.
func WriteTables(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "longest stable round trip\tlinear\tby run\tby messages\tslides")
	for steps, name := range forms {
		l := limitsOf(steps)
		fmt.Fprintf(t, "%s\t%.2f ms\t%.2f ms\t%.0f ms\t%s ms\n", name, l.Linear*1e3, l.Run*1e3,
			l.Messages*1e3, slideLimits[steps])
	}
	fmt.Fprintln(t, "\nlongest stable delay of the generic plant\tin its own loop\t"+
		"behind a sum, gain 0.15\t\t")
	for steps, name := range []string{"no averaging", "one step", "two steps"} {
		g := gainsOf(steps)
		fmt.Fprintf(t, "%s\t%.2f s\t%.1f s\t\t\n", name,
			delayLimit(plantLoop(g, 1), 1e-3, 1e3),
			delayLimit(summedPlantLoop(g, 1, 0.15), 1e-4, 1e3))
	}
	fmt.Fprintln(t, "\nstep response in its own loop\tsteps\tdelay\tsettles\t")
	for _, r := range responses {
		fmt.Fprintf(t, "slide %d\t%d\t%g s\t%v\t\n", r.Slide, r.Steps, r.Delay,
			Settles(stepResponse(r.Steps, responsePeriod, r.Delay, responseSeconds)))
	}
	return t.Flush()
}

// The size of a panel of a drawing, in pixels.
const panelWidth, panelHeight = 640, 160

// WriteSVG draws the slides' step responses, each in a panel from -1 to 3.
func WriteSVG(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="12">`+"\n", panelWidth, panelHeight*len(responses))
	for i, r := range responses {
		top := panelHeight * i
		points := stepResponse(r.Steps, responsePeriod, r.Delay, responseSeconds)
		fmt.Fprintf(&b, `<text x="4" y="%d">slide %d: %d steps, delay %g s</text>`+"\n", top+14,
			r.Slide, r.Steps, r.Delay)
		fmt.Fprintf(&b, `<polyline fill="none" stroke="#a00000" points="`)
		for k := 0; k < len(points); k += 20 {
			p := points[k]
			y := 2 + 1 - min(max(p.Y, -1), 3) // from the top of a panel
			if math.IsNaN(p.Y) {
				break
			}
			fmt.Fprintf(&b, "%.1f,%.1f ", p.T/responseSeconds*panelWidth,
				float64(top)+20+y/4*(panelHeight-24))
		}
		fmt.Fprintf(&b, `"/>`+"\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}
