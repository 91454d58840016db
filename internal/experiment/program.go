// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
)

// Program is a program of this machine that runs on a host of the network, in virtual time.
type Program struct {
	// Name is unique among programs, and the name of its folder of results. Required.
	Name string `yaml:"name"`
	// Host is the host, or the switch with rules in `nft`, that it runs on. Required.
	Host string `yaml:"host"`
	// At is when it starts. With After it is how long after that. Default 0.
	At Duration `yaml:"at"`
	// After is the program whose end it waits for, or {program: NAME, says: REGEXP}: it waits for a
	// line of that program's output. The program stands above this one. Default: it waits for none.
	After AfterProgram `yaml:"after"`
	// Image is what the program sees in place of this machine's files: a folder, or what docker
	// save writes, or an OCI layout; relative to the experiment's file. Default: none.
	Image string `yaml:"image"`
	// Command is the program and its arguments. It is looked up in [ProgramPath], or that of the
	// image. Required, unless the image has one.
	Command []string `yaml:"command"`
	// Env adds variables to its environment.
	Env map[string]string `yaml:"env"`
	// Inputs are texts for its folder, relative to the experiment's file.
	Inputs []string `yaml:"inputs"`
	// Files are patterns of files in its folder that come back when it has ended.
	Files []string `yaml:"files"`
	// Limit is for how long it may run; then it is killed. Default: to the end of the run.
	Limit Duration `yaml:"limit"`
	// Server makes the run not wait for its end: when all others have ended it gets SIGTERM, and a
	// second later SIGKILL. Default false.
	Server bool `yaml:"server"`
}

// ProgramPath is where commands are looked up.
const ProgramPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// AfterProgram is what a program waits for.
type AfterProgram struct {
	// Program is the other program. Required.
	Program string `yaml:"program"`
	// Says is a regular expression for a line of its output, on stdout or stderr. Default: the
	// program's end.
	Says string `yaml:"says"`
}

// UnmarshalYAML implements [yaml.Unmarshaler]: a name alone is that of the program.
func (a *AfterProgram) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		a.Program = n.Value
		return nil
	}
	known := map[string]*string{"program": &a.Program, "says": &a.Says}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("want the name of a program, or {program: NAME, says: REGEXP}")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		if known[key] == nil {
			return fmt.Errorf("unknown key %q: want program or says", key)
		}
		*known[key] = n.Content[i+1].Value
	}
	return nil
}

// InputTexts returns the texts of a program's inputs by the names that they have in its folder.
func (e *Experiment) InputTexts(p Program) map[string]string {
	texts := map[string]string{}
	for _, name := range p.Inputs {
		texts[path.Base(name)] = e.inputs[name]
	}
	return texts
}

// OnlyPrograms reports whether nothing but programs sends.
func (e *Experiment) OnlyPrograms() bool { return len(e.Flows)+len(e.Bursts) == 0 }

func (d *decoder) validatePrograms(e *Experiment) {
	if len(e.Programs) > 0 && e.Engine != EngineKernel {
		d.fail("programs", "programs run on Linux only", "write engine: kernel, or remove engine:")
	}
	above := map[string]bool{}
	for i, p := range e.Programs {
		at := fmt.Sprintf("programs[%d].", i)
		d.checkName(at+"name", p.Name, objectName, "letters, digits, \"_\" and \"-\"")
		if above[p.Name] {
			d.fail(at+"name", fmt.Sprintf("duplicate program %q", p.Name), "name each differently")
		}
		if _, router := e.NFT[p.Host]; d.hasRequired(at, "host") && !router {
			d.checkKnownHost(at+"host", p.Host)
		}
		if d.has(at + "image") {
			d.validateImage(at, e, &e.Programs[i])
			p = e.Programs[i]
		}
		empty := len(p.Command) == 0 || p.Command[0] == ""
		if empty && d.hasRequired(at, "command") {
			d.fail(at+"command", "the command is empty", "write command: [ping, -c, \"1\", H1]")
		}
		config.InRange(d.Decoder, at+"at", p.At, 0, max(e.Duration-1, 0))
		if d.has(at + "limit") {
			config.InRange(d.Decoder, at+"limit", p.Limit, 1, e.Duration)
		}
		if d.has(at + "after") {
			d.validateAfterProgram(at+"after", p.After, above)
		}
		d.validateProgramFiles(e, at, p)
		above[p.Name] = true
	}
	d.checkAllKnown("captures", "host", e.Captures, d.hosts)
	d.checkUnique("captures", "host", e.Captures)
}

func (d *decoder) validateAfterProgram(at string, a AfterProgram, above map[string]bool) {
	if a.Program == "" {
		d.fail(at, "\"program\" is missing", "add program:")
	} else if !above[a.Program] {
		d.checkKnown(at, "program above this one", a.Program, slices.Sorted(maps.Keys(above)))
	}
	d.checkRegexp(at, a.Says)
}

func (d *decoder) checkRegexp(at, text string) {
	if _, err := regexp.Compile(text); err != nil {
		d.fail(at, fmt.Sprintf("%q is no regular expression: %v", text, err),
			"write it as Go's package regexp has it")
	}
}

func (d *decoder) validateProgramFiles(e *Experiment, at string, p Program) {
	for key := range p.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			d.fail(at+"env", fmt.Sprintf("%q can't name a variable", key), "write KEY: value")
		}
	}
	for i, name := range p.Inputs {
		if _, text, ok := d.attachedText(fmt.Sprintf("%sinputs[%d]", at, i), e, name); ok {
			e.setInput(name, text)
		}
	}
	for i, pattern := range p.Files {
		_, err := path.Match(pattern, "")
		if err != nil || path.IsAbs(pattern) || strings.Contains(pattern, "..") {
			d.fail(fmt.Sprintf("%sfiles[%d]", at, i),
				fmt.Sprintf("%q is no pattern of files in the program's folder", pattern),
				"write *.json")
		}
	}
}

// fillProgram sets the metric of an expectation about a program, and the bounds that it implies.
func (x *Expect) fillProgram() {
	count := func(n int) *Quantity { return &Quantity{Value: float64(n), Unit: UnitCount} }
	switch {
	case x.Program == "" || x.Metric != "":
	case x.Exit != nil:
		x.Metric, x.Min, x.Max = ProgramExit, count(*x.Exit), count(*x.Exit)
	case x.Says != "":
		x.Metric = ProgramSays
		if x.Min == nil && x.Max == nil {
			x.Min = count(1)
		}
	case x.JSON != "":
		x.Metric = ProgramJSON
	}
}

// programNames are the names of all programs.
func (e *Experiment) programNames() []string {
	names := make([]string, len(e.Programs))
	for i, p := range e.Programs {
		names[i] = p.Name
	}
	return names
}

// validateProgramMeasure checks the arguments of metrics of programs.
func (d *decoder) validateProgramMeasure(at string, m Measure, e *Experiment) {
	if m.Program != "" {
		d.checkKnown(at+"program", "program", m.Program, e.programNames())
	}
	d.checkRegexp(at+"says", m.Says)
}
