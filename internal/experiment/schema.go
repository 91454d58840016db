// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/config/jsonschema"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/workload"
)

// Schema returns the JSON schema of experiment files with the schemes of a catalogue.
func Schema(c *scheme.Catalogue) *jsonschema.Schema {
	e := defaults(c)
	s := schemaMaker.Of(&e)
	s.Title = "PCN for Linux: experiment"
	s.Description = "An experiment of data-centre congestion control. " +
		"pcn docs experiments describes the keys."
	allowOwn(s, slices.Concat(c.Names(), scheme.KernelControls()))
	return s
}

// ExtraSchemas returns the schemas of the sections of schemes.
func (e *Experiment) ExtraSchemas() map[string]*jsonschema.Schema {
	all := map[string]*jsonschema.Schema{}
	for section, object := range e.parameters.objects {
		all[section] = scheme.Section{Object: object}.JSONSchema(nil)
		all[section].Description = "Parameters: pcn docs schemes describes them."
	}
	return all
}

// allowOwn allows unknown sections and names of schemes in files with the key that lists their own
// schemes.
func allowOwn(s *jsonschema.Schema, names []string) {
	keys := slices.Sorted(maps.Keys(s.Properties))
	ownName := &jsonschema.Schema{Type: jsonschema.String, Pattern: "^[a-z][a-z0-9_]*([+]tcd)?$"}

	s.AdditionalProperties = nil
	s.If = &jsonschema.Schema{Required: []string{algorithmsKey}}
	s.Then = &jsonschema.Schema{PropertyNames: ownName}
	s.Else = &jsonschema.Schema{
		PropertyNames: jsonschema.OneOf(keys),
		Properties: map[string]*jsonschema.Schema{
			"schemes": {Items: jsonschema.OneOf(names)},
		},
	}
	s.Properties["schemes"] = jsonschema.List(
		&jsonschema.Schema{AnyOf: []*jsonschema.Schema{jsonschema.OneOf(names), ownName}},
	)
	s.Properties["schemes"].MinItems = 1
}

// Schemas of nodes, ports, ranges and lists of them.
var (
	nodes = jsonschema.OneOrList(
		&jsonschema.Schema{Type: jsonschema.String, Pattern: nodesPattern()},
	)
	links = jsonschema.OneOrList(&jsonschema.Schema{Type: jsonschema.String})
	// 10KB..1MB; one end may be missing.
	sizeRange = &jsonschema.Schema{Type: jsonschema.String, Pattern: `^.*\.\..*$`}
	incast    = &jsonschema.Schema{
		Type:    jsonschema.Types{jsonschema.Integer, jsonschema.String},
		Minimum: new(1.0), Pattern: `^[0-9]+(\.\.[0-9]+)?$`,
	}
	// F0, or F0 + 10us.
	dependency = &jsonschema.Schema{Type: jsonschema.String, Pattern: `^[^+]+([+].+)?$`}
	dilation   = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Type: jsonschema.Integer, Minimum: new(0.0)}, jsonschema.OneOf([]string{autoDilation}),
	}}
	point = &jsonschema.Schema{
		Type: jsonschema.Array, MinItems: 2, MaxItems: 2,
		PrefixItems: []*jsonschema.Schema{jsonschema.Time(), jsonschema.Quantity()},
	}
	// A built-in distribution, or a file, whose name has a dot or a slash.
	distribution = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		jsonschema.OneOf(workload.CDFs()), {Type: jsonschema.String, Pattern: `[./]`},
	}}
)

// afterProgram is the name of a program, or a mapping.
var afterProgram = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
	{Type: jsonschema.String},
	{
		Type: jsonschema.Object, Required: []string{"program"},
		Properties: map[string]*jsonschema.Schema{
			"program": {Type: jsonschema.String}, "says": {Type: jsonschema.String},
		},
		AdditionalProperties: false,
	},
}}

// nodesPattern returns the pattern of a node or a range of nodes: H2..H15.
func nodesPattern() string {
	name := strings.Trim(nodeName().String(), "^$")
	return "^" + name + `(\.\.` + name + ")?$"
}

// schemaMaker makes the schemas of the types in experiment files.
var schemaMaker = jsonschema.Maker{
	Types: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[NodeList]():       nodes,
		reflect.TypeFor[LinkList]():       links,
		reflect.TypeFor[Sizes]():          sizeRange,
		reflect.TypeFor[Incast]():         incast,
		reflect.TypeFor[Point]():          point,
		reflect.TypeFor[Dilation]():       dilation,
		reflect.TypeFor[Dependency]():     dependency,
		reflect.TypeFor[After]():          jsonschema.OneOrList(dependency),
		reflect.TypeFor[AfterProgram]():   afterProgram,
		reflect.TypeFor[CollectiveKind](): jsonschema.OneOf(collectiveKinds()),
		reflect.TypeFor[Metric]():         jsonschema.OneOf(Metrics()),
		reflect.TypeFor[Since]():          jsonschema.OneOf(sinces()),
		reflect.TypeFor[Over]():           jsonschema.OneOf(overs()),
		reflect.TypeFor[FigureName]():     jsonschema.OneOf(figureNames()),
		reflect.TypeFor[FlowControl]():    jsonschema.OneOf(flowControls()),
		reflect.TypeFor[Engine]():         jsonschema.OneOf(Engines()),
		reflect.TypeFor[FlowFormat]():     jsonschema.OneOf(flowFormats()),
		reflect.TypeFor[MarkingRule]():    jsonschema.OneOf(markingRules()),
		reflect.TypeFor[ECMP]():           jsonschema.OneOf(ecmps()),
		reflect.TypeFor[Recovery]():       jsonschema.OneOf(recoveries()),
		reflect.TypeFor[LoadEnd]():        jsonschema.OneOf(loadEnds()),
		reflect.TypeFor[LinkState]():      jsonschema.OneOf(linkStates()),
		reflect.TypeFor[WatchdogAction](): jsonschema.OneOf(watchdogActions()),
		reflect.TypeFor[Schedule]():       jsonschema.OneOf(schedules()),
		reflect.TypeFor[Flight](): {AnyOf: []*jsonschema.Schema{
			jsonschema.Size(), jsonschema.OneOf([]string{flightBDP}),
		}},
		reflect.TypeFor[Seeds]():    seedsSchema(),
		reflect.TypeFor[Detector](): jsonschema.OneOf(detectors()),
	},
	Structs: map[reflect.Type]jsonschema.Struct{
		reflect.TypeFor[Experiment](): {
			Required: []string{"name", "topology", "schemes", "duration"},
		},
		reflect.TypeFor[Topology](): {
			OneRequired: []string{"kind", "file"},
			Fields: map[string]*jsonschema.Schema{
				"kind": jsonschema.OneOf(network.KindNames()),
			},
		},
		reflect.TypeFor[Marking]():    {Required: []string{"kmin", "kmax", "pmax"}},
		reflect.TypeFor[DynamicPFC](): {Required: []string{"alpha"}},
		reflect.TypeFor[FlowGroup](): {
			Required: []string{"name", "from", "to"},
			Fields: map[string]*jsonschema.Schema{
				"control": jsonschema.OneOf(scheme.KernelControls()),
			},
		},
		reflect.TypeFor[Collective](): {Required: []string{"kind", "ranks", "size"}},
		reflect.TypeFor[Straggler]():  {Required: []string{"host", "late"}},
		reflect.TypeFor[Trace]():      {Required: []string{"file"}},
		reflect.TypeFor[Burst]():      {Required: []string{"name", "from", "to", "size"}},
		reflect.TypeFor[LinkEvent](): {
			Required: []string{"link"}, OneRequired: []string{"rate", "state"},
		},
		reflect.TypeFor[Storm]():     {Required: []string{"hosts"}},
		reflect.TypeFor[Case]():      {Required: []string{"name"}},
		reflect.TypeFor[Reference](): {Required: []string{"figure", "name", "label", "points"}},
		reflect.TypeFor[Expect](): {
			Required: []string{"what"},
			Alternatives: [][]string{
				{"metric", "min"}, {"metric", "max"},
				{"program", "exit"}, {"program", "says"},
				{"program", "json", "min"}, {"program", "json", "max"},
			},
		},
		reflect.TypeFor[Program](): {Required: []string{"name", "host", "command"}},
		reflect.TypeFor[Bounds]():  {OneRequired: []string{"min", "max"}},
		reflect.TypeFor[Compare](): {
			Required: []string{"what", "metric"},
		},
		reflect.TypeFor[Ratios]():      {Required: []string{"to", "min"}},
		reflect.TypeFor[NamedMetric](): {Required: []string{"name", "metric"}},
		reflect.TypeFor[Workload](): {
			Required: []string{"cdf"}, OneRequired: []string{"load", "mean_rate"},
			Fields: map[string]*jsonschema.Schema{"cdf": distribution},
		},
	},
}
