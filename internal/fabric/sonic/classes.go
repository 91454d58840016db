// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/internal/fabric"
)

// classes checks a port's lossless classes: maps, groups, queues and their thresholds.
func (k *checker) classes(port string) error {
	enabled, err := k.lossless(port)
	if err != nil {
		return err
	}
	groups := map[int]int{} // priority, by its group
	for _, p := range enabled {
		group, err := k.group(port, p)
		if err != nil {
			return err
		}
		groups[group] = p
		if err = k.losslessGroup(port, p, group); err != nil {
			return err
		}
		if err = k.losslessQueue(port, p, group); err != nil {
			return err
		}
		k.reached(port, p)
	}
	return k.strangers(port, groups, enabled)
}

// group returns the priority group of a priority's class.
func (k *checker) group(port string, priority int) (int, error) {
	to, ok := k.mapped("TC_TO_PRIORITY_GROUP_MAP", port, "tc_to_pg_map", strconv.Itoa(priority))
	if !ok {
		return priority, nil
	}
	group, err := strconv.Atoi(to)
	if err != nil || group < 0 || group > 7 {
		return 0, fmt.Errorf("%s: class %d of TC_TO_PRIORITY_GROUP_MAP leads to %q: want a group, "+
			"0 to 7", k.file, priority, to)
	}
	return group, nil
}

// reached checks that packets get into a lossless class: a port that goes by DSCP has one for it.
func (k *checker) reached(port string, priority int) {
	f := k.field("PORT_QOS_MAP", port, "dscp_to_tc_map")
	if f == nil {
		f = k.field("PORT_QOS_MAP", "global", "dscp_to_tc_map")
	}
	if k.field("PORT_QOS_MAP", port, "dot1p_to_tc_map") != nil {
		return
	}
	class := strconv.Itoa(priority)
	if f == nil && k.anyDSCP() {
		k.find("no map of DSCP", port, finding{
			severity: fabric.Mistake, table: "PORT_QOS_MAP", key: port,
			hint: "add dscp_to_tc_map, as other ports have it", show: logCommand,
		}, "%s has PFC for priority %d and no dscp_to_tc_map: all its packets are in class 0", port,
			priority)
	}
	row := k.row("DSCP_TO_TC_MAP", reference(f))
	if row == nil {
		return
	}
	for _, v := range row.fields {
		if v.String() == class {
			return
		}
	}
	k.find("no DSCP of "+class+" "+reference(f), port, finding{
		severity: fabric.Risk, table: "DSCP_TO_TC_MAP", key: reference(f),
		hint: fmt.Sprintf("map the DSCP of that traffic to %s, or remove %s from pfc_enable", class,
			class), show: logCommand,
	}, "%s has PFC for priority %d, and no DSCP leads to class %d: its traffic is in another class",
		port, priority, priority)
}

// anyDSCP reports whether some port goes by DSCP: a file that lacks all such maps is a part.
func (k *checker) anyDSCP() bool {
	return slices.ContainsFunc(k.ports, func(port string) bool {
		return k.field("PORT_QOS_MAP", port, "dscp_to_tc_map") != nil
	})
}

// anyLossless reports whether some port has a group with headroom. SONiC adds them itself when
// ports come up: in a file from before that, none is no mistake.
func (k *checker) anyLossless() bool {
	for _, e := range k.groups {
		if k.hasHeadroom(reference(e.row.field("profile"))) {
			return true
		}
	}
	return false
}

func (k *checker) losslessGroup(port string, priority, group int) error {
	at := finding{severity: fabric.Mistake, table: "PORT_QOS_MAP", key: port, field: "pfc_enable"}
	to, ok := k.mapped("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", port, "pfc_to_pg_map",
		strconv.Itoa(priority))
	mapped := k.field("PORT_QOS_MAP", port, "pfc_to_pg_map")
	hasMap := k.row("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", reference(mapped)) != nil
	if hasMap && (!ok || to != strconv.Itoa(group)) {
		f := at
		f.field = "pfc_to_pg_map"
		f.hint = fmt.Sprintf("want priority %d to lead to group %d", priority, group)
		f.show, f.experiment, f.name = dropsShow, k.headroomExperiment(port, 300, 0, 0), "pfc-to-pg"
		k.find(fmt.Sprint("pfc to pg ", priority), port, f,
			"class %d of %s waits in group %d, and PAUSE of priority %d is sent for group %q",
			priority, port, group, priority, to)
	}
	e, ok := k.groups[slot{port, group}]
	name := reference(e.row.field("profile"))
	if k.table("BUFFER_PG") == nil || ok && (k.hasHeadroom(name) ||
		k.row("BUFFER_PROFILE", name) == nil) || !ok && !k.anyLossless() {
		return nil
	}
	at.hint = fmt.Sprintf("add BUFFER_PG|%s|%d with a profile that has xoff, or take %d out of "+
		"pfc_enable", port, group, priority)
	at.show, at.experiment, at.name = dropsShow, k.headroomExperiment(port, 300, 0, 0),
		"no-headroom"
	what := "has no row in BUFFER_PG"
	if ok {
		what = "has profile " + name + ", without xoff"
	}
	k.find(fmt.Sprint("group ", priority, group, what), port, at,
		"PFC is on for priority %d of %s, and its group %d %s: packets are lost after PAUSE",
		priority, port, group, what)
	return nil
}

func (k *checker) losslessQueue(port string, priority, group int) error {
	class := strconv.Itoa(priority)
	queue, ok := k.mapped("TC_TO_QUEUE_MAP", port, "tc_to_queue_map", class)
	paused, ok2 := k.mapped("MAP_PFC_PRIORITY_TO_QUEUE", port, "pfc_to_queue_map", class)
	if ok && ok2 && queue != paused {
		k.find(fmt.Sprint("queue ", priority), port, finding{
			severity: fabric.Mistake, table: "PORT_QOS_MAP", key: port, field: "pfc_to_queue_map",
			hint: fmt.Sprintf("want queue %s for both", queue), show: dropsShow,
			experiment: k.headroomExperiment(port, 300, 0, 0), name: "queue",
		}, "class %d of %s waits in queue %s, and PAUSE of priority %d stops queue %s: the class "+
			"goes on", priority, port, queue, priority, paused)
	}
	number := priority
	if ok {
		n, err := strconv.Atoi(queue)
		if err != nil {
			return fmt.Errorf("%s: class %d of TC_TO_QUEUE_MAP leads to %q: want a queue", k.file,
				priority, queue)
		}
		number = n
	}
	pauses, known, err := k.threshold(reference(k.groups[slot{port, group}].row.field("profile")))
	if err != nil {
		return err
	}
	if err := k.queueLimit(port, number, pauses, known); err != nil {
		return err
	}
	return k.queueMarks(port, priority, number, pauses, known)
}

// queueLimit checks that a lossless queue does not drop before PAUSE comes.
func (k *checker) queueLimit(port string, number int, pauses uint64, known bool) error {
	e, ok := k.buffers[slot{port, number}]
	if !ok {
		return nil
	}
	profile := reference(e.row.field("profile"))
	pool := reference(k.field("BUFFER_PROFILE", profile, "pool"))
	if strings.Contains(pool, "lossy") {
		k.find("lossy pool "+profile, port, finding{
			severity: fabric.Mistake, table: "BUFFER_QUEUE", key: e.key, field: "profile",
			hint: "want a profile of a pool that only lossless queues use", show: logCommand,
		}, "queue %d of %s has PFC and shares %s with queues that drop: they may fill it", number,
			port, pool)
		return nil
	}
	limit, ok, err := k.threshold(profile)
	if err != nil || !ok || !known {
		return err
	}
	size, sized, err := k.number("BUFFER_POOL", pool, "size")
	if err != nil {
		return err
	}
	if sized && size > 0 && !k.rest() {
		limit = min(limit, uint64(size))
	}
	if limit >= pauses {
		return nil
	}
	k.find("limit "+profile, port, finding{
		severity: fabric.Mistake, table: "BUFFER_QUEUE", key: e.key, field: "profile",
		hint: fmt.Sprintf("want a profile with a threshold far above %d", pauses), show: dropsShow,
		experiment: dropsExperiment(pauses, limit), name: "queue-limit",
	}, "queue %d of %s drops at %d, before PAUSE is sent at %d", number, port, limit, pauses)
	return nil
}

// queueMarks checks that a lossless queue marks, does not drop, and marks before PAUSE.
func (k *checker) queueMarks(port string, priority, number int, pauses uint64, known bool) error {
	e, ok := k.queues[slot{port, number}]
	if !ok {
		return nil
	}
	wred := e.row.field("wred_profile")
	profile := reference(wred)
	f := finding{table: "QUEUE", key: e.key}
	if wred == nil || profile == "" {
		f.severity, f.hint = fabric.Risk, "add wred_profile with ecn: ecn_all"
		f.show = "pcn run hol; compare pfc, which has no marks, with the others"
		k.find("no marks", port, f, "queue %d of %s is lossless and marks nothing: PAUSE alone "+
			"slows senders, and spreads", number, port)
		return nil
	}
	row := k.row("WRED_PROFILE", profile)
	if row == nil {
		return nil // references has it
	}
	f.field = "wred_profile"
	ecn := row.field("ecn").String()
	if (ecn == "" || ecn == "ecn_none") && row.field("wred_green_enable").String() == "true" {
		f.severity, f.hint = fabric.Mistake, "want ecn: ecn_all in WRED_PROFILE|"+profile
		begin, _, err := k.number("WRED_PROFILE", profile, "green_min_threshold")
		if err != nil {
			return err
		}
		f.show, f.experiment, f.name = dropsShow, wredExperiment(uint64(max(begin, 0))), "wred"
		k.find("wred drops "+profile, port, f, "queue %d of %s has PFC of priority %d, and %s "+
			"drops its packets: it has no ECN", number, port, priority, profile)
		return nil
	}
	begin, ok, err := k.number("WRED_PROFILE", profile, "green_min_threshold")
	if err != nil || !ok || !known || uint64(max(begin, 0)) < pauses {
		return err
	}
	f = finding{severity: fabric.Mistake, table: "WRED_PROFILE", key: profile,
		field: "green_min_threshold", hint: fmt.Sprintf("want well below %d", pauses),
		show: "see the metric marked_packets", experiment: marksExperiment(uint64(begin), pauses),
		name: "marks"}
	k.find("marks "+profile, port, f, "queue %d of %s marks from %d on, and PAUSE stops a sender "+
		"at %d: it hears of no queue", number, port, begin, pauses)
	return nil
}

// strangers checks that lossless groups hold lossless classes only, and that each has PFC.
func (k *checker) strangers(port string, groups map[int]int, enabled []int) error {
	qos := k.table("PORT_QOS_MAP")
	if qos == nil {
		return nil
	}
	for number := range 8 {
		e, ok := k.groups[slot{port, number}]
		name := reference(e.row.field("profile"))
		if _, paused := groups[number]; ok && !paused && k.hasHeadroom(name) {
			severity := fabric.Mistake
			if len(enabled) == 0 {
				severity = fabric.Risk // perhaps nothing lossless is meant to come by here
			}
			k.find(fmt.Sprint("idle group ", number), port, finding{
				severity: severity, table: "BUFFER_PG", key: e.key, field: "profile",
				hint: fmt.Sprintf("add a priority of group %d to PORT_QOS_MAP|%s|pfc_enable",
					number,
					port), show: dropsShow,
				experiment: k.headroomExperiment(port, 300, 0, 0), name: "no-pfc",
			}, "group %d of %s has headroom, and no priority with PFC leads to it: its packets "+
				"are lost", number, port)
		}
	}
	tcs := k.row("TC_TO_PRIORITY_GROUP_MAP", reference(k.field("PORT_QOS_MAP", port,
		"tc_to_pg_map")))
	if tcs == nil {
		return nil
	}
	for _, tc := range tcs.keys {
		class, err1 := strconv.Atoi(tc)
		group, err2 := strconv.Atoi(tcs.fields[tc].String())
		if err1 != nil || err2 != nil {
			return fmt.Errorf("%s:%d: class %q leads to group %q: want numbers", k.file,
				tcs.fields[tc].line, tc, tcs.fields[tc].String())
		}
		p, lossless := groups[group]
		if !lossless || slices.Contains(enabled, class) {
			continue
		}
		table := "TC_TO_PRIORITY_GROUP_MAP"
		k.find(fmt.Sprint("stranger ", class, group), port, finding{
			severity: fabric.Mistake, table: table,
			key: reference(k.field("PORT_QOS_MAP", port, "tc_to_pg_map")), field: tc,
			hint: fmt.Sprintf("want class %d in a group without PFC", class), show: dropsShow,
			experiment: k.headroomExperiment(port, 300, 0, 0), name: "stranger",
		}, "class %d waits in group %d of %s, whose PAUSE is of priority %d and does not stop it",
			class, group, port, p)
	}
	return nil
}
