// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/fabric"
)

// Is reports whether a path is a configuration, or a folder of them, rather than an experiment.
func Is(path string) bool {
	if ext := filepath.Ext(path); ext == ".json" || ext == ".j2" {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Check looks for mistakes in the configuration of a switch, or of all whose files, *.json, are in
// a folder. It fails if a file is no configuration.
func Check(path string) (*fabric.Result, error) {
	files := []string{path}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s has no *.json: want a config_db.json of each switch: %w",
				path,
				fs.ErrNotExist)
		}
	}
	return CheckFiles(files)
}

// CheckFiles is [Check] of these files, one for each switch.
func CheckFiles(files []string) (*fabric.Result, error) {
	var switches []*config
	var errs []error
	for _, file := range files {
		c, err := read(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		switches = append(switches, c)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return check(switches)
}

func check(switches []*config) (*fabric.Result, error) {
	all := &fabric.Result{Findings: []fabric.Finding{}}
	for _, c := range switches {
		k := newChecker(c)
		if err := k.check(); err != nil {
			return nil, err
		}
		all.Findings = append(all.Findings, k.done()...)
		for _, port := range c.ports {
			classes, err := c.lossless(port)
			if err != nil {
				return nil, err
			}
			all.Lossless = all.Lossless || len(classes) > 0
		}
	}
	links, err := checkLinks(switches)
	if err != nil {
		return nil, err
	}
	all.Findings = append(all.Findings, links...)
	net, err := checkNetwork(switches)
	if err != nil {
		return nil, err
	}
	all.Findings = append(all.Findings, net.Findings...)
	all.Checked, all.Pairs = net.Checked, net.Pairs
	return all, nil
}

// checker collects the findings of one switch. What many ports share is found once.
type checker struct {
	*config
	findings []fabric.Finding
	more     map[string][]string // ports with the finding of this group
	order    []string
}

func newChecker(c *config) *checker {
	return &checker{config: c, more: map[string][]string{}}
}

// finding is what was found, before it is known of how many ports.
type finding struct {
	severity   fabric.Severity
	table, key string
	field      string // empty: the row
	hint       string
	show       string // what to run
	experiment string // that shows it, in YAML; show then says what to look at
	name       string // of the experiment
}

// find notes a finding of a port, one for all ports whose group is the same.
func (k *checker) find(group, port string, f finding, format string, args ...any) {
	if port != "" && slices.Contains(k.more[group], port) {
		return
	}
	k.more[group] = append(k.more[group], port)
	if len(k.more[group]) > 1 {
		return
	}
	k.order = append(k.order, group)
	path, line := f.table, 1
	if t := k.table(f.table); t != nil {
		line = t.line
	}
	if row := k.row(f.table, f.key); row != nil {
		path, line = path+"|"+f.key, row.line
	}
	if v := k.field(f.table, f.key, f.field); v != nil {
		path, line = path+"|"+f.field, v.line
	}
	k.findings = append(k.findings, fabric.Finding{
		Severity: f.severity, File: k.file, Key: path, Line: line,
		Message: fmt.Sprintf(format, args...), Hint: f.hint, Show: f.show,
		Experiment: f.experiment, Name: f.name,
	})
}

// done returns the findings, with how many more ports have each.
func (k *checker) done() []fabric.Finding {
	others := len(k.findings) - len(k.order) // that are of no port come first
	for i, group := range k.order {
		if n := len(k.more[group]) - 1; n > 0 {
			k.findings[others+i].Message += fmt.Sprintf(", and %d more ports", n)
		}
	}
	return k.findings
}

func (k *checker) check() error {
	for _, r := range k.twice {
		k.findings = append(k.findings, fabric.Finding{
			Severity: fabric.Mistake, File: k.file, Key: r.key, Line: r.line,
			Message: fmt.Sprintf("the key is in line %d too, and SONiC takes the last", r.first),
			Hint:    "remove one", Show: logCommand,
		})
	}
	for _, step := range []func() error{
		k.references, k.directions, k.profiles, k.pools, k.wred, k.schedulers, k.watchdog,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	for _, port := range k.ports {
		if !k.up(port) {
			continue
		}
		if err := k.classes(port); err != nil {
			return err
		}
		if err := k.headroom(port); err != nil {
			return err
		}
	}
	return nil
}

// named are fields that name rows of other tables.
var named = []struct{ table, field, of string }{
	{"BUFFER_PROFILE", "pool", "BUFFER_POOL"},
	{"BUFFER_PG", "profile", "BUFFER_PROFILE"},
	{"BUFFER_QUEUE", "profile", "BUFFER_PROFILE"},
	{"QUEUE", "scheduler", "SCHEDULER"},
	{"QUEUE", "wred_profile", "WRED_PROFILE"},
	{"PORT_QOS_MAP", "dscp_to_tc_map", "DSCP_TO_TC_MAP"},
	{"PORT_QOS_MAP", "tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP"},
	{"PORT_QOS_MAP", "tc_to_queue_map", "TC_TO_QUEUE_MAP"},
	{"PORT_QOS_MAP", "pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE"},
	{"PORT_QOS_MAP", "pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"},
}

// references checks that rows which are named are there. A file without the other table is a part
// of a configuration, and says nothing of it.
func (k *checker) references() error {
	for _, n := range named {
		table, others := k.table(n.table), k.table(n.of)
		if table == nil || others == nil {
			continue
		}
		for _, key := range table.keys {
			f := k.field(n.table, key, n.field)
			name := reference(f)
			if f == nil || name == "" || name == "NULL" || others.fields[name] != nil {
				continue
			}
			k.find("reference "+n.table+n.field+name, key, finding{
				severity: fabric.Mistake, table: n.table, key: key, field: n.field,
				hint: fmt.Sprintf("add %s|%s, or name one of %s", n.of, name,
					strings.Join(others.keys[:min(len(others.keys), 5)], ", ")),
				show: logCommand,
			}, "%s has no %s, so the row is not applied", n.of, name)
		}
	}
	return nil
}

// directions checks that packets which come in are counted in a pool for them, and those that leave
// in one for those.
func (k *checker) directions() error {
	for _, of := range []struct{ table, opposite string }{
		{"BUFFER_PG", "egress"}, {"BUFFER_QUEUE", "ingress"},
	} {
		rows := k.table(of.table)
		if rows == nil {
			continue
		}
		for _, key := range rows.keys {
			profile := reference(k.field(of.table, key, "profile"))
			pool := reference(k.field("BUFFER_PROFILE", profile, "pool"))
			if k.field("BUFFER_POOL", pool, "type").String() != of.opposite {
				continue
			}
			k.find("direction "+of.table+profile, key, finding{
				severity: fabric.Mistake, table: of.table, key: key, field: "profile",
				hint: "want a profile whose pool is of the other type", show: logCommand,
			}, "%s is of pool %s, which is for %s, so the row is not applied", profile, pool,
				of.opposite)
		}
	}
	return nil
}

// logCommand shows what orchagent did not apply. No experiment has what a switch leaves out.
const logCommand = "no packet shows it; on the switch: grep -E 'ERR.*orchagent' /var/log/syslog"

// lossless profiles have headroom: their own, or what the switch computes.
func (k *checker) hasHeadroom(profile string) bool {
	if profile == "NULL" || k.field("BUFFER_PROFILE", profile,
		"headroom_type").String() == "dynamic" {
		return true
	}
	xoff := k.field("BUFFER_PROFILE", profile, "xoff")
	return xoff != nil && xoff.String() != "0"
}

// threshold returns how long a queue or group of a profile gets before it drops or is paused; ok is
// false if the file does not say.
func (k *checker) threshold(profile string) (limit uint64, ok bool, err error) {
	if static, ok, err := k.number("BUFFER_PROFILE", profile, "static_th"); ok || err != nil {
		return uint64(max(static, 0)), ok, err
	}
	power, ok, err := k.number("BUFFER_PROFILE", profile, "dynamic_th")
	if !ok || err != nil {
		return 0, false, err
	}
	size, ok, err := k.number("BUFFER_POOL", reference(k.field("BUFFER_PROFILE", profile, "pool")),
		"size")
	if !ok || err != nil {
		return 0, false, err
	}
	alpha := math.Pow(2, float64(power))
	return uint64(alpha / (1 + alpha) * float64(size)), true, nil
}

// lacksThreshold reports whether a profile with headroom does not say when PAUSE is sent. One
// without a pool is an excerpt, and for one with headroom_type the switch decides.
func (k *checker) lacksThreshold(profile string) bool {
	has := func(field string) bool { return k.field("BUFFER_PROFILE", profile, field) != nil }
	return has("pool") && !has("headroom_type") && !has("static_th") && !has("dynamic_th") &&
		k.hasHeadroom(profile)
}

// profiles checks each buffer profile in itself and against its pool.
func (k *checker) profiles() error {
	table := k.table("BUFFER_PROFILE")
	if table == nil {
		return nil
	}
	for _, name := range table.keys {
		f := finding{severity: fabric.Mistake, table: "BUFFER_PROFILE", key: name}
		if k.field("BUFFER_PROFILE", name, "pool") == nil && k.table("BUFFER_POOL") != nil {
			f.hint, f.show = "add pool, a name of BUFFER_POOL", logCommand
			k.find("poolless "+name, "", f, "it is of no pool, so SONiC does not apply it")
			continue
		}
		power, dynamic, err := k.number("BUFFER_PROFILE", name, "dynamic_th")
		if err != nil {
			return err
		}
		if dynamic && (power < -8 || power > 8) {
			f.field, f.hint = "dynamic_th", "want -8 to 8; -3 is an eighth of what is free"
			f.show = logCommand
			k.find("power "+name, "", f, "alpha would be 2 to the power of %d", power)
			continue
		}
		limit, ok, err := k.threshold(name)
		if err != nil {
			return err
		}
		if k.lacksThreshold(name) {
			f.hint, f.show = "add dynamic_th, such as -3, or static_th", logCommand
			k.find("no alpha "+name, "", f, "nothing says when PAUSE is sent")
		}
		pool := reference(k.field("BUFFER_PROFILE", name, "pool"))
		size, sized, err := k.number("BUFFER_POOL", pool, "size")
		if err != nil {
			return err
		}
		// Without headroom such a threshold means: do not drop here.
		if ok && sized && size > 0 && limit > uint64(size) && k.hasHeadroom(name) {
			f.field, f.hint = "static_th", fmt.Sprintf("want at most %d, the pool's size", size)
			f.show, f.experiment, f.name = dropsShow, dropsExperiment(limit, uint64(size)), "pool"
			k.find("static "+name, "", f,
				"PAUSE is sent at %d, and pool %s has %d: it is full before", limit, pool, size)
		}
		xon, hasXON, err := k.number("BUFFER_PROFILE", name, "xon")
		if err != nil {
			return err
		}
		// RESUME comes at xon, or at xon_offset below the threshold, whichever is higher.
		if hasXON && ok && !dynamic && k.hasHeadroom(name) && uint64(max(xon, 0)) >= limit {
			f.field, f.hint = "xon", fmt.Sprintf("want less than static_th, %d", limit)
			f.show, f.experiment, f.name = pauseShow, pauseExperiment(limit), "xon"
			k.find("xon "+name, "", f, "RESUME comes at %d, and PAUSE at %d: a port is resumed as "+
				"soon as it is paused", xon, limit)
		}
	}
	return nil
}

// pools checks what is promised against what there is.
func (k *checker) pools() error {
	promised := map[string]int{}
	for _, e := range k.groups {
		name := reference(e.row.fields["profile"])
		pool := reference(k.field("BUFFER_PROFILE", name, "pool"))
		size, _, err := k.number("BUFFER_PROFILE", name, "size")
		if err != nil {
			return err
		}
		promised[pool] += size
		xoff, _, err := k.number("BUFFER_PROFILE", name, "xoff")
		if err != nil {
			return err
		}
		shared, ok, err := k.number("BUFFER_POOL", pool, "xoff")
		if err != nil {
			return err
		}
		if ok && shared == 0 && size < xoff {
			k.find("no headroom "+name, "", finding{
				severity: fabric.Mistake, table: "BUFFER_PROFILE", key: name, field: "size",
				hint: fmt.Sprintf("want at least %d, or xoff of the pool for all ports", xoff),
				show: dropsShow,
			}, "a group has %d for itself, needs headroom of %d, and pool %s has none to share",
				size, xoff, pool)
		}
		if ok && shared > 0 && shared < xoff {
			k.find("shared headroom "+pool, "", finding{
				severity: fabric.Mistake, table: "BUFFER_POOL", key: pool, field: "xoff",
				hint: fmt.Sprintf("want several times %d: ports share it", xoff), show: dropsShow,
				// A cable over which about as much comes as one group has room for, at 100 Gbit/s.
				experiment: k.headroomExperiment("", 0.008*float64(xoff), uint64(shared), 0),
				name:       "shared-headroom",
			}, "all ports share headroom of %d, and one group of %s may need %d", shared, name,
				xoff)
		}
	}
	if table := k.table("BUFFER_POOL"); table != nil {
		for _, pool := range table.keys {
			size, ok, err := k.number("BUFFER_POOL", pool, "size")
			if err != nil {
				return err
			}
			if !ok || size == 0 || promised[pool] <= size || k.rest() {
				continue
			}
			k.find("promised "+pool, "", finding{
				severity: fabric.Mistake, table: "BUFFER_POOL", key: pool, field: "size",
				hint: fmt.Sprintf("want at least %d, or profiles of less size", promised[pool]),
				show: dropsShow, experiment: dropsExperiment(uint64(promised[pool]), uint64(size)),
				name: "pool-size",
			}, "priority groups have %d for themselves, and the pool has %d", promised[pool], size)
		}
	}
	return nil
}

// rest reports whether a pool is what is left after what groups have for themselves, as on
// NVIDIA's switches.
func (k *checker) rest() bool {
	who := strings.ToLower(k.field("DEVICE_METADATA", "localhost", "platform").String() +
		k.field("DEVICE_METADATA", "localhost", "hwsku").String())
	return slices.ContainsFunc([]string{"mlnx", "nvidia", "mellanox"}, func(maker string) bool {
		return strings.Contains(who, maker)
	})
}

// wred checks WRED's thresholds in themselves.
func (k *checker) wred() error {
	table := k.table("WRED_PROFILE")
	if table == nil {
		return nil
	}
	for _, name := range table.keys {
		for _, colour := range []string{"green", "yellow", "red"} {
			low, ok1, err1 := k.number("WRED_PROFILE", name, colour+"_min_threshold")
			high, ok2, err2 := k.number("WRED_PROFILE", name, colour+"_max_threshold")
			chance, ok3, err3 := k.number("WRED_PROFILE", name, colour+"_drop_probability")
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
			f := finding{severity: fabric.Mistake, table: "WRED_PROFILE", key: name,
				show: logCommand}
			if ok1 && ok2 && low > high {
				f.field = colour + "_min_threshold"
				f.hint = fmt.Sprintf("want at most %s_max_threshold, %d", colour, high)
				k.find("wred "+name+colour, "", f, "marking begins at %d and is complete at %d",
					low,
					high)
			}
			if ok3 && (chance < 0 || chance > 100) {
				f.field, f.hint = colour+"_drop_probability", "want percent, 0 to 100"
				k.find("chance "+name+colour, "", f, "the probability is %d%%", chance)
			}
		}
	}
	return nil
}

func (k *checker) schedulers() error {
	table := k.table("SCHEDULER")
	if table == nil {
		return nil
	}
	for _, name := range table.keys {
		kind := k.field("SCHEDULER", name, "type").String()
		weight, ok, err := k.number("SCHEDULER", name, "weight")
		if err != nil {
			return err
		}
		if (kind == "DWRR" || kind == "WRR") && ok && (weight < 1 || weight > 100) {
			k.find("weight "+name, "", finding{
				severity: fabric.Mistake, table: "SCHEDULER", key: name, field: "weight",
				hint: "want 1 to 100", show: logCommand,
			}, "%s has no weight of %d", kind, weight)
		}
	}
	return nil
}

// watchdog checks PFC's watchdog: that ports with PFC have it, and its times.
func (k *checker) watchdog() error {
	poll, ok, err := k.number("PFC_WD", "GLOBAL", "POLL_INTERVAL")
	if err != nil {
		return err
	}
	if !ok {
		poll = 200 // ms, of "config pfcwd"
	}
	watched := false
	if table := k.table("PFC_WD"); table != nil {
		for _, port := range table.keys {
			watched = watched || port != "GLOBAL"
		}
	}
	for _, port := range k.ports {
		lossless, err := k.lossless(port)
		if err != nil {
			return err
		}
		if len(lossless) == 0 || !k.up(port) {
			continue
		}
		f := finding{severity: fabric.Risk, table: "PORT_QOS_MAP", key: port, field: "pfc_enable",
			hint: "run: config pfcwd start --action drop ports all detection-time 200 " +
				"--restoration-time 400",
			show: "pcn run storm; compare the flows that stand still with and without a watchdog"}
		switch {
		case k.row("PFC_WD", port) == nil && !watched:
			starts := k.field("DEVICE_METADATA", "localhost", "default_pfcwd_status").String()
			if starts != "enable" && k.field("PORT_QOS_MAP", port, "pfcwd_sw_enable") == nil {
				k.find("no watchdog", port, f, "no watchdog ends a storm of PAUSE at %s", port)
			}
			continue
		case k.row("PFC_WD", port) == nil:
			k.find("a port without watchdog", port, f, "other ports have a watchdog, and %s has "+
				"none",
				port)
			continue
		}
		if err := k.watchdogTimes(port, poll); err != nil {
			return err
		}
	}
	return nil
}

func (k *checker) watchdogTimes(port string, poll int) error {
	detection, ok1, err1 := k.number("PFC_WD", port, "detection_time")
	restoration, ok2, err2 := k.number("PFC_WD", port, "restoration_time")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	f := finding{severity: fabric.Mistake, table: "PFC_WD", key: port,
		show: "pcn run storm with switch.pfc.watchdog of these times; see the metric storms"}
	switch {
	case ok1 && detection < poll:
		f.field = "detection_time"
		f.hint = fmt.Sprintf("want at least PFC_WD|GLOBAL|POLL_INTERVAL, %d", poll)
		k.find(fmt.Sprint("detection ", detection), port, f,
			"a storm is to be seen after %d ms at %s, and looks are %d ms apart", detection, port,
			poll)
	case ok2 && restoration < poll:
		f.field = "restoration_time"
		f.hint = fmt.Sprintf("want at least PFC_WD|GLOBAL|POLL_INTERVAL, %d", poll)
		k.find(fmt.Sprint("restoration ", restoration), port, f,
			"a queue is to be restored after %d ms at %s, and looks are %d ms apart", restoration,
			port, poll)
	case ok1 && ok2 && restoration < detection:
		f.severity, f.field = fabric.Risk, "restoration_time"
		f.hint = fmt.Sprintf("want at least detection_time, %d; config pfcwd takes twice that",
			detection)
		k.find(fmt.Sprint("short restoration ", restoration), port, f,
			"%s obeys PAUSE again after %d ms, before the same storm would be seen again: %d ms",
			port, restoration, detection)
	}
	if action := k.field("PFC_WD", port, "action"); action != nil &&
		!slices.Contains([]string{"drop", "forward", "alert"}, action.String()) {
		f.severity, f.field, f.hint = fabric.Mistake, "action", "want drop, forward or alert"
		k.find("action "+action.String(), port, f, "%s has no action %q", port, action)
	}
	return nil
}

// frames returns the longest frame of a port, in bytes on the wire, and that of lossless traffic:
// SONiC computes headroom with frames of 1024 bytes, or with what LOSSLESS_TRAFFIC_PATTERN says.
func (k *checker) frames(port string) (longest, lossless uint64, err error) {
	mtu, ok, err := k.number("PORT", port, "mtu")
	if err != nil {
		return 0, 0, err
	}
	if !ok || mtu <= 0 {
		mtu = 9100 // SONiC's default
	}
	pattern := 1024
	if table := k.table("LOSSLESS_TRAFFIC_PATTERN"); table != nil && len(table.keys) > 0 {
		n, ok, err := k.number("LOSSLESS_TRAFFIC_PATTERN", table.keys[0], "mtu")
		if err != nil {
			return 0, 0, err
		}
		if ok && n > 0 {
			pattern = n
		}
	}
	const ethernet = 18 // header and check sequence
	return uint64(mtu) + ethernet, uint64(min(pattern, mtu)) + ethernet, nil
}

// A metre of fibre or copper takes light about 5 ns.
const nsPerMetre = 5

// headroom checks that a port's lossless groups have room for what arrives after their PAUSE: twice
// the cable, a frame that delays the PAUSE, one that the other end has begun, and the PAUSE. Any
// switch needs more: nothing is counted for its own reaction, nor for cells that are not full.
func (k *checker) headroom(port string) error {
	metres, cable, err := k.cable(port)
	if err != nil {
		return err
	}
	mbps, hasSpeed, err := k.number("PORT", port, "speed")
	if err != nil || !hasSpeed || mbps <= 0 {
		return err
	}
	longest, lossless, err := k.frames(port)
	if err != nil {
		return err
	}
	enabled, err := k.lossless(port)
	if err != nil {
		return err
	}
	if cable != nil && metres == 0 && len(enabled) > 0 {
		k.find("no cable", port, finding{
			severity: fabric.Mistake, table: "PORT_QOS_MAP", key: port, field: "pfc_enable",
			hint: "want the length in CABLE_LENGTH, or no pfc_enable", show: dropsShow,
			experiment: k.headroomExperiment(port, 300, 0, 0), name: "no-cable",
		}, "%s has PFC, and a cable of 0m, for which SONiC takes headroom away", port)
		return nil
	}
	if cable == nil {
		if table := k.table("CABLE_LENGTH"); table != nil && len(table.keys) > 0 &&
			len(enabled) > 0 {
			k.find("unknown cable", port, finding{
				severity: fabric.Risk, table: "CABLE_LENGTH", key: table.keys[0],
				hint: "add its length: SONiC computes headroom from it", show: dropsShow,
			}, "%s has PFC and no length here, so nobody knows whether its headroom is enough",
				port)
		}
		return nil
	}
	delayNs := metres * nsPerMetre
	need := uint64(2*delayNs*float64(mbps)/8000) + longest + lossless + 64
	for number := range 8 {
		e, ok := k.groups[slot{port, number}]
		name := reference(e.row.field("profile"))
		if !ok || !k.hasHeadroom(name) {
			continue
		}
		xoff, ok, err := k.number("BUFFER_PROFILE", name, "xoff")
		if err != nil {
			return err
		}
		if !ok || uint64(max(xoff, 0)) >= need {
			continue
		}
		k.find(fmt.Sprint("headroom ", name, mbps, metres, longest), port, finding{
			severity: fabric.Mistake, table: "BUFFER_PROFILE", key: name, field: "xoff",
			hint: fmt.Sprintf("want at least %d, with frames of %d and %d bytes, and more for the "+
				"switch's own reaction", need, longest, lossless),
			show: dropsShow, name: "headroom",
			experiment: k.headroomExperiment(port, metres, uint64(max(xoff, 0)), need),
		}, "%s, %s over %gm: %d bytes arrive after a PAUSE, and there is room for %d", port,
			experiment.Rate(uint64(mbps)*1_000_000), metres, need, xoff)
	}
	return nil
}
