// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/fabric"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/sim"
)

// leaf is the configuration of one of two switches, without a mistake and without a risk: a link of
// 400 Gbit/s joins them, and each has two servers of 100 Gbit/s.
func leaf(name, other string) string {
	ports := []string{"Ethernet0", "Ethernet4", "Ethernet8"}
	each := func(format string) string {
		var rows []string
		for _, p := range ports {
			rows = append(rows, strings.ReplaceAll(format, "PORT", p))
		}
		return strings.Join(rows, ",\n")
	}
	return fmt.Sprintf(`{
"DEVICE_METADATA": {"localhost": {"hostname": "%s", "default_pfcwd_status": "enable"}},
"PORT": {
"Ethernet0": {"speed": "100000", "mtu": "9100", "fec": "rs", "admin_status": "up"},
"Ethernet4": {"speed": "100000", "mtu": "9100", "fec": "rs", "admin_status": "up"},
"Ethernet8": {"speed": "400000", "mtu": "9100", "fec": "rs", "admin_status": "up"}
},
"CABLE_LENGTH": {"AZURE": {"Ethernet0": "5m", "Ethernet4": "5m", "Ethernet8": "40m"}},
"DEVICE_NEIGHBOR": {
"Ethernet0": {"name": "%sServers0", "port": "eth0"},
"Ethernet4": {"name": "%sServers1", "port": "eth0"},
"Ethernet8": {"name": "%s", "port": "Ethernet8"}
},
"BUFFER_POOL": {
"ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "32000000",
  "xoff": "2000000"},
"egress_lossless_pool": {"type": "egress", "mode": "static", "size": "32000000"},
"egress_lossy_pool": {"type": "egress", "mode": "dynamic", "size": "24000000"}
},
"BUFFER_PROFILE": {
"ingress_lossy_profile": {"pool": "ingress_lossless_pool", "size": "0", "static_th": "33000000"},
"egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "0", "static_th": "32000000"},
"egress_lossy_profile": {"pool": "egress_lossy_pool", "size": "1518", "dynamic_th": "3"},
"pg_lossless_100000_5m_profile": {"pool": "ingress_lossless_pool", "size": "1248",
  "xon": "2288", "xoff": "53248", "dynamic_th": "-3"},
"pg_lossless_400000_40m_profile": {"pool": "ingress_lossless_pool", "size": "1248",
  "xon": "2288", "xoff": "124928", "dynamic_th": "-3"}
},
"BUFFER_PG": {
%s,
"Ethernet0|3-4": {"profile": "pg_lossless_100000_5m_profile"},
"Ethernet4|3-4": {"profile": "pg_lossless_100000_5m_profile"},
"Ethernet8|3-4": {"profile": "[BUFFER_PROFILE|pg_lossless_400000_40m_profile]"}
},
"BUFFER_QUEUE": {
%s,
%s
},
"WRED_PROFILE": {"AZURE_LOSSLESS": {"ecn": "ecn_all", "wred_green_enable": "true",
"green_min_threshold": "1048576", "green_max_threshold": "2097152", "green_drop_probability": "5"}},
"SCHEDULER": {
"scheduler.0": {"type": "DWRR", "weight": "14"},
"scheduler.1": {"type": "DWRR", "weight": "15"}
},
"QUEUE": {
%s
},
"DSCP_TO_TC_MAP": {"AZURE": {"0": "1", "3": "3", "4": "4", "46": "5", "48": "6"}},
"TC_TO_QUEUE_MAP": {"AZURE": {"0": "0", "1": "1", "3": "3", "4": "4", "5": "5", "6": "6"}},
"TC_TO_PRIORITY_GROUP_MAP": {"AZURE": {"0": "0", "1": "0", "3": "3", "4": "4", "5": "0", "6": "0"}},
"MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": {"3": "3", "4": "4"}},
"PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {"AZURE": {"3": "3", "4": "4"}},
"PORT_QOS_MAP": {
%s
},
"PFC_WD": {
"GLOBAL": {"POLL_INTERVAL": "200"},
%s
}
}
`, name, name, name, other, each(`"PORT|0": {"profile": "ingress_lossy_profile"}`),
		each(`"PORT|0-2": {"profile": "egress_lossy_profile"}`),
		each(`"PORT|3-4": {"profile": "egress_lossless_profile"}`),
		each(`"PORT|3-4": {"scheduler": "scheduler.1", "wred_profile": "AZURE_LOSSLESS"}`),
		each(`"PORT": {"dscp_to_tc_map": "AZURE", "tc_to_queue_map": "AZURE", `+
			`"tc_to_pg_map": "AZURE", "pfc_to_queue_map": "AZURE", "pfc_to_pg_map": "AZURE", `+
			`"pfc_enable": "3,4"}`),
		each(`"PORT": {"action": "drop", "detection_time": "200", "restoration_time": "400"}`))
}

func findings(t *testing.T, texts ...string) []fabric.Finding {
	t.Helper()
	var switches []*config
	for i, text := range texts {
		c, err := parseConfig(fmt.Sprintf("%d.json", i), []byte(text))
		qt.Assert(t, qt.IsNil(err))
		switches = append(switches, c)
	}
	r, err := check(switches)
	qt.Assert(t, qt.IsNil(err))
	return r.Findings
}

func TestSoundSwitchesHaveNoFindings(t *testing.T) {
	qt.Check(t, qt.HasLen(findings(t, leaf("leaf0", "leaf1")), 0))
	qt.Check(t, qt.HasLen(findings(t, leaf("leaf0", "leaf1"), leaf("leaf1", "leaf0")), 0))
}

// Each of these is one mistake in the first of two sound switches. want is in the message; a
// finding's line is that of old in the file with the mistake, unless line says another.
func TestPlantedMistakes(t *testing.T) {
	for _, tc := range []struct {
		name, old, new string
		severity       fabric.Severity
		key            string
		want           string
	}{
		{"lossless queue in the lossy pool",
			`"Ethernet0|3-4": {"profile": "egress_lossless_profile"}`,
			`"Ethernet0|3-4": {"profile": "egress_lossy_profile"}`, fabric.Mistake,
			"BUFFER_QUEUE|Ethernet0|3-4|profile", "shares egress_lossy_pool with queues that drop"},
		{"group in a pool of the way out",
			`"Ethernet0|3-4": {"profile": "pg_lossless_100000_5m_profile"}`,
			`"Ethernet0|3-4": {"profile": "egress_lossless_profile"}`, fabric.Mistake,
			"BUFFER_PG|Ethernet0|3-4|profile", "of pool egress_lossless_pool, which is for egress"},
		{"no threshold for PAUSE", `"xoff": "124928", "dynamic_th": "-3"}`, `"xoff": "124928"}`,
			fabric.Mistake,
			"BUFFER_PROFILE|pg_lossless_400000_40m_profile", "nothing says when PAUSE is sent"},
		{"headroom of a shorter cable", `"Ethernet8": "40m"`, `"Ethernet8": "400m"`, fabric.Mistake,
			"BUFFER_PROFILE|pg_lossless_400000_40m_profile|xoff", "over 400m"},
		{"headroom of a slower port",
			`"[BUFFER_PROFILE|pg_lossless_400000_40m_profile]"`, `"pg_lossless_slow_profile"`,
			fabric.Mistake, "BUFFER_PG|Ethernet8|3-4|profile",
			"BUFFER_PROFILE has no pg_lossless_slow_profile"},
		{"a cable without a length", `, "Ethernet4": "5m"`, ``, fabric.Risk,
			"CABLE_LENGTH|AZURE", "Ethernet4 has PFC and no length here"},
		{"a profile without a pool", `"egress_lossy_profile": {"pool": "egress_lossy_pool", `,
			`"egress_lossy_profile": {`, fabric.Mistake, "BUFFER_PROFILE|egress_lossy_profile",
			"it is of no pool"},
		{"a port without a map of DSCP", `"Ethernet4": {"dscp_to_tc_map": "AZURE", `,
			`"Ethernet4": {`, fabric.Mistake, "PORT_QOS_MAP|Ethernet4",
			"priority 3 and no dscp_to_tc_map: all its packets are in class 0"},
		{"no headroom to share", "\"size\": \"32000000\",\n  \"xoff\": \"2000000\"",
			"\"size\": \"32000000\",\n  \"xoff\": \"0\"", fabric.Mistake,
			"BUFFER_PROFILE|pg_lossless_400000_40m_profile|size",
			"has 1248 for itself, needs headroom of 124928"},
		{"an egress pool below PAUSE", `"mode": "static", "size": "32000000"`,
			`"mode": "static", "size": "2000000"`, fabric.Mistake,
			"BUFFER_QUEUE|Ethernet0|3-4|profile", "queue 3 of Ethernet0 drops at 2000000"},
		{"no DSCP of a lossless class", `"4": "4", "46": "5"`, `"4": "1", "46": "5"`, fabric.Risk,
			"DSCP_TO_TC_MAP|AZURE", "no DSCP leads to class 4"},
		{"little headroom", `"xoff": "124928"`, `"xoff": "12492"`, fabric.Mistake,
			"BUFFER_PROFILE|pg_lossless_400000_40m_profile|xoff",
			"Ethernet8, 400Gbps over 40m: 30224 bytes arrive after a PAUSE, and there is room " +
				"for 12492"},
		{"a lossless class without a group", "\"Ethernet4|3-4\": {\"profile\": \"pg_l",
			"\"Ethernet4|3\": {\"profile\": \"pg_l", fabric.Mistake,
			"PORT_QOS_MAP|Ethernet4|pfc_enable", "priority 4 of Ethernet4, and its group 4 has " +
				"no row"},
		{"a lossless class in a lossy group",
			`"Ethernet4|3-4": {"profile": "pg_lossless_100000_5m_profile"`,
			`"Ethernet4|3-4": {"profile": "ingress_lossy_profile"`, fabric.Mistake,
			"PORT_QOS_MAP|Ethernet4|pfc_enable", "has profile ingress_lossy_profile, without xoff"},
		{"headroom without PFC", `"pfc_enable": "3,4"`, `"pfc_enable": "3"`, fabric.Mistake,
			"BUFFER_PG|Ethernet0|3-4|profile", "no priority with PFC leads to it"},
		{"a class without PFC in a lossless group", `"5": "0", "6": "0"`, `"5": "4", "6": "0"`,
			fabric.Mistake, "TC_TO_PRIORITY_GROUP_MAP|AZURE|5",
			"class 5 waits in group 4 of Ethernet0, whose PAUSE is of priority 4"},
		{"PAUSE stops another queue", `"MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": {"3": "3"`,
			`"MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": {"3": "2"`, fabric.Mistake,
			"PORT_QOS_MAP|Ethernet0|pfc_to_queue_map",
			"class 3 of Ethernet0 waits in queue 3, and PAUSE of priority 3 stops queue 2"},
		{"no PAUSE of a group",
			`"PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {"AZURE": {"3": "3", "4": "4"}}`,
			`"PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {"AZURE": {"3": "3"}}`, fabric.Mistake,
			"PORT_QOS_MAP|Ethernet0|pfc_to_pg_map", "PAUSE of priority 4 is sent for group \"\""},
		{"marks above PAUSE", `"green_min_threshold": "1048576", "green_max_threshold": "2097152"`,
			`"green_min_threshold": "10485760", "green_max_threshold": "20971520"`, fabric.Mistake,
			"WRED_PROFILE|AZURE_LOSSLESS|green_min_threshold", "it hears of no queue"},
		{"marks in the wrong order", `"green_min_threshold": "1048576"`,
			`"green_min_threshold": "3048576"`, fabric.Mistake,
			"WRED_PROFILE|AZURE_LOSSLESS|green_min_threshold", "begins at 3048576"},
		{"WRED drops lossless packets", `"ecn": "ecn_all"`, `"ecn": "ecn_none"`, fabric.Mistake,
			"QUEUE|Ethernet0|3-4|wred_profile", "drops its packets: it has no ECN"},
		{"a lossless queue without marks", `, "wred_profile": "AZURE_LOSSLESS"`, ``, fabric.Risk,
			"QUEUE|Ethernet0|3-4", "PAUSE alone slows senders"},
		{"a queue drops before PAUSE", `"size": "0", "static_th": "32000000"`,
			`"size": "0", "static_th": "3200000"`, fabric.Mistake,
			"BUFFER_QUEUE|Ethernet0|3-4|profile", "drops at 3200000, before PAUSE is sent at " +
				"3555555"},
		{"PAUSE above the pool", `"xoff": "124928", "dynamic_th": "-3"`,
			`"xoff": "124928", "static_th": "40000000"`, fabric.Mistake,
			"BUFFER_PROFILE|pg_lossless_400000_40m_profile|static_th", "it is full before"},
		{"RESUME above PAUSE", `"xon": "2288", "xoff": "124928", "dynamic_th": "-3"`,
			`"xon": "1000001", "xoff": "124928", "static_th": "1000000"`, fabric.Mistake,
			"BUFFER_PROFILE|pg_lossless_400000_40m_profile|xon", "RESUME comes at 1000001"},
		{"the pool promises more than it has", "\"size\": \"1248\",\n  \"xon\": \"2288\", " +
			"\"xoff\": \"53248\"",
			"\"size\": \"10000000\",\n  \"xon\": \"2288\", \"xoff\": \"53248\"", fabric.Mistake,
			"BUFFER_POOL|ingress_lossless_pool|size", "have 40002496 for themselves"},
		{"shared headroom for less than one group", `"xoff": "2000000"`, `"xoff": "100000"`,
			fabric.Mistake, "BUFFER_POOL|ingress_lossless_pool|xoff", "one group of " +
				"pg_lossless_400000"},
		{"alpha out of range", `"size": "1518", "dynamic_th": "3"`,
			`"size": "1518", "dynamic_th": "36736"`, fabric.Mistake,
			"BUFFER_PROFILE|egress_lossy_profile|dynamic_th", "2 to the power of 36736"},
		{"a port without watchdog", "\"Ethernet4\": {\"action\": \"drop\"",
			"\"Ethernet44\": {\"action\": \"drop\"", fabric.Risk,
			"PORT_QOS_MAP|Ethernet4|pfc_enable",
			"and Ethernet4 has none"},
		{"the watchdog looks too seldom", `"POLL_INTERVAL": "200"`, `"POLL_INTERVAL": "300"`,
			fabric.Mistake, "PFC_WD|Ethernet0|detection_time",
			"seen after 200 ms at Ethernet0, and looks are 300 ms apart, and 2 more ports"},
		{"the watchdog restores early", `"detection_time": "200", "restoration_time": "400"`,
			`"detection_time": "500", "restoration_time": "400"`, fabric.Risk,
			"PFC_WD|Ethernet0|restoration_time", "obeys PAUSE again after 400 ms"},
		{"the watchdog does nothing known", `"action": "drop"`, `"action": "droop"`, fabric.Mistake,
			"PFC_WD|Ethernet0|action", `no action "droop"`},
		{"MTU of one end", `"speed": "400000", "mtu": "9100"`, `"speed": "400000", "mtu": "1500"`,
			fabric.Mistake, "PORT|Ethernet8|mtu", "has MTU 1500, and leaf1's Ethernet8"},
		{"speed of one end", `"speed": "400000"`, `"speed": "200000"`, fabric.Mistake,
			"PORT|Ethernet8|speed", "has speed 200000"},
		{"cable of one end", `"Ethernet8": "40m"`, `"Ethernet8": "5m"`, fabric.Mistake,
			"CABLE_LENGTH", "has a cable of 5m, and leaf1's Ethernet8, its other end, 40m"},
		{"PFC of one end", `"pfc_enable": "3,4"`, `"pfc_enable": "3,4,5"`, fabric.Mistake,
			"PORT_QOS_MAP|Ethernet8|pfc_enable", "for [3 4 5], and leaf1's Ethernet8"},
		{"DSCP of one end", `"3": "3", "4": "4", "46": "5"`, `"3": "4", "4": "4", "46": "5"`,
			fabric.Mistake, "PORT_QOS_MAP|Ethernet8|dscp_to_tc_map",
			"packets of DSCP 3 are of class 4 at leaf0's Ethernet8, and of class 3 at leaf1's"},
		{"a cable to the wrong port", `"name": "leaf1", "port": "Ethernet8"`,
			`"name": "leaf1", "port": "Ethernet4"`, fabric.Mistake,
			"DEVICE_NEIGHBOR|Ethernet8|port",
			"leads to Ethernet4 of leaf1, which leads to eth0 of leaf1Servers1"},
		{"no cable length", `"Ethernet0": "5m"`, `"Ethernet0": "0m"`, fabric.Mistake,
			"PORT_QOS_MAP|Ethernet0|pfc_enable", "SONiC takes headroom away"},
		{"a weight of nothing", `"weight": "15"`, `"weight": "0"`, fabric.Mistake,
			"SCHEDULER|scheduler.1|weight", "DWRR has no weight of 0"},
		{"a key given twice", "\"PFC_WD\": {\n", "\"PFC_WD\": {\n\"GLOBAL\": {},\n", fabric.Mistake,
			"GLOBAL", "SONiC takes the last"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := leaf("leaf0", "leaf1")
			qt.Assert(t, qt.StringContains(text, tc.old))
			text = strings.ReplaceAll(text, tc.old, tc.new)
			found := findings(t, text, leaf("leaf1", "leaf0"))
			lines := strings.Split(text, "\n")
			for _, f := range found {
				if f.Severity != tc.severity || f.Key != tc.key ||
					!strings.Contains(f.Message, tc.want) {
					continue
				}
				parts := strings.Split(f.Key, "|")
				qt.Check(t, qt.StringContains(lines[f.Line-1], parts[len(parts)-1]+`"`))
				qt.Check(t, qt.Equals(f.File, "0.json"))
				qt.Check(t, qt.Not(qt.Equals(f.Hint, "")))
				qt.Check(t, qt.Not(qt.Equals(f.Show, "")))
				shows(t, f.Experiment)
				return
			}
			t.Errorf("not found, but %+v", found)
		})
	}
}

// shows checks that an experiment fails as its finding says, if there is one.
func shows(t *testing.T, text string) {
	t.Helper()
	if text == "" {
		return
	}
	e, err := experiment.Parse("shown.yaml", []byte(text))
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", text))
	run, err := sim.New().Run(t.Context(), e, e.Schemes[0], func(float64) {})
	qt.Assert(t, qt.IsNil(err))
	outcomes := result.Evaluate(e, run)
	qt.Assert(t, qt.HasLen(outcomes, 1))
	qt.Check(t, qt.IsFalse(outcomes[0].Pass), qt.Commentf("%+v\n%s", outcomes[0], text))
}

// Two switches with one link of 400 Gbit/s for 2 servers of 400 each are oversubscribed.
func TestNetworkOfSwitches(t *testing.T) {
	slow := strings.NewReplacer(`"speed": "100000"`, `"speed": "400000"`,
		`"Ethernet0|3-4": {"profile": "pg_lossless_100000_5m`,
		`"Ethernet0|3-4": {"profile": "pg_lossless_400000_40m`,
		`"Ethernet4|3-4": {"profile": "pg_lossless_100000_5m`,
		`"Ethernet4|3-4": {"profile": "pg_lossless_400000_40m`)
	a, err := parseConfig("a.json", []byte(slow.Replace(leaf("leaf0", "leaf1"))))
	qt.Assert(t, qt.IsNil(err))
	b, err := parseConfig("b.json", []byte(slow.Replace(leaf("leaf1", "leaf0"))))
	qt.Assert(t, qt.IsNil(err))
	n, err := networkOf([]*config{a, b})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(n.Hosts, []string{"leaf0Servers0", "leaf0Servers1", "leaf1Servers0",
		"leaf1Servers1"}))
	qt.Check(t, qt.HasLen(n.Links, 5))
	_, err = experiment.Parse("network.yaml", []byte(networkExperiment(n)))
	qt.Check(t, qt.IsNil(err))
}

func TestNoConfiguration(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "c.json:1: not JSON"},
		{"{\n\"PORT\": {", "c.json:2: not JSON: the file ends in the middle"},
		{"{\n\"PORT\" {}}", "c.json:2: not JSON: invalid character"},
		{"[]", "c.json:1: not an object"},
		{"{\"FEATURE\": {}}", "no table of a switch"},
		{"{} {}", "more text behind"},
		{"{\"PORT\": []}", "c.json:1: table PORT is not an object"},
		{"{\"PORT\": {\n\"Ethernet0\": \"up\"}}", "c.json:2: PORT|Ethernet0 is not an object"},
		{"{\"BUFFER_PG\": {\"Ethernet0\": {}}}", "want PORT|NUMBER"},
		{"{\"BUFFER_PG\": {\"Ethernet0|4-3\": {}}}", "want a number to 63"},
		{"{\"asic0\": {\"PORT\": {}}}", "several ASICs"},
		{"{\n{% if PORT %}\n\"PORT\": {}}", "c.json:2: this is a template"},
		{strings.Repeat("{\"a\":", 100), "16 deep"},
	} {
		_, err := parseConfig("c.json", []byte(tc.text))
		qt.Check(t, qt.ErrorMatches(err, "(?s).*"+regexpQuote(tc.want)+".*"), qt.Commentf("%s",
			tc.text))
	}
}

func regexpQuote(s string) string {
	return strings.NewReplacer("|", `\|`, "[", `\[`, "(", `\(`).Replace(s)
}

func TestNumbersThatAreNone(t *testing.T) {
	for _, tc := range []struct{ old, new, want string }{
		{`"xoff": "124928"`, `"xoff": "much"`,
			`pg_lossless_400000_40m_profile\|xoff is "much": want`},
		{`"pfc_enable": "3,4"`, `"pfc_enable": "3,9"`,
			`pfc_enable has "9": want priorities, 0 to 7`},
		{`"Ethernet8": "40m"`, `"Ethernet8": "40"`, `is "40": want metres, such as 40m`},
		{`"Ethernet8": "40m"`, `"Ethernet8": "NaNm"`, `is "NaNm": want metres, such as 40m`},
	} {
		c, err := parseConfig("c.json", []byte(strings.ReplaceAll(leaf("a", "b"), tc.old, tc.new)))
		qt.Assert(t, qt.IsNil(err))
		_, err = check([]*config{c})
		qt.Check(t, qt.ErrorMatches(err, `c.json:\d+: .*`+tc.want+".*"))
	}
}

func TestFolderOfSwitches(t *testing.T) {
	dir := t.TempDir()
	_, err := Check(dir)
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
	for _, name := range []string{"leaf0", "leaf1"} {
		other := map[string]string{"leaf0": "leaf1", "leaf1": "leaf0"}[name]
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, name+".json"),
			[]byte(leaf(name, other)), 0o600)))
	}
	qt.Check(t, qt.IsTrue(Is(dir)))
	r, err := Check(dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(r.Findings, 0))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, "again.json"),
		[]byte(leaf("leaf0", "leaf1")), 0o600)))
	_, err = Check(dir)
	qt.Check(t, qt.ErrorMatches(err, `.*both of switch "leaf0".*`))
}

// A dump of the database has its tables in front of the keys, and means the same.
func TestDumpOfTheDatabase(t *testing.T) {
	c, err := parseConfig("dump.json", []byte(`{
"PORT|Ethernet0": {"speed": "100000", "mtu": "9100"},
"BUFFER_PG|Ethernet0|3-4": {"profile": "NULL"},
"PORT_QOS_MAP|Ethernet0,Ethernet4": {"pfc_enable": "3,4"}
}`))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(c.ports, []string{"Ethernet0"}))
	qt.Check(t, qt.Equals(c.groups[slot{"Ethernet0", 4}].key, "Ethernet0|3-4"))
	qt.Check(t, qt.Equals(c.field("PORT_QOS_MAP", "Ethernet4", "pfc_enable").String(), "3,4"))
}

// Whatever a file has, it is refused or checked, and every experiment that is shown is one.
func FuzzConfig(f *testing.F) {
	f.Add(leaf("leaf0", "leaf1"))
	f.Add(`{"PORT|Ethernet0": {}, "BUFFER_PG": {"Ethernet0,Ethernet4|3-4": {"profile": ["a"]}}}`)
	f.Add(`{"PORT": {"E": {"speed": "-1"}}, "CABLE_LENGTH": {"A": {"E": "1e6m"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseConfig("f.json", []byte(text))
		if err != nil {
			return
		}
		r, err := check([]*config{c})
		if err != nil {
			return
		}
		for _, found := range r.Findings {
			if found.Experiment == "" {
				continue
			}
			if _, err := experiment.Parse("shown.yaml", []byte(found.Experiment)); err != nil {
				t.Errorf("%s: %v\n%s", found.Message, err, found.Experiment)
			}
		}
	})
}
