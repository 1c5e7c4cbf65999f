package sonic

import (
	"fmt"
	"strconv"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/fence"
)

// A queue holds nothing from before a block once it was seen empty after it, or once it was free to
// send for longer than the whole buffer takes: no PFC frame of its priority came in between two
// polls of the port's counters. A host that pauses a queue repeats its PFC frames within 3.4 ms
// (65,535 quanta at 10 Gb/s), and a buffer of 256 MiB is sent within 0.25 s at 10 Gb/s.

const (
	queueHolds = "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES" // where the PFC watchdog looks
	freeFor    = 500 * time.Millisecond
	// How often SONiC polls, where it is not configured.
	portPoll     = time.Second
	watchdogPoll = 200 * time.Millisecond
)

// draining is what is known of the queues of a port since a block.
type draining struct {
	pauses  [fabric.Priorities]uint64 // PFC frames that had come in by then
	changed [fabric.Priorities]time.Time
	empty   [fabric.Priorities]bool
}

// Drained implements fence.Dataplane. A port that is shut holds nothing.
func (f *Fence) Drained(b fence.Block) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	have := f.blocks[b.Key]
	if have == nil || have.Since.IsZero() {
		return false, fmt.Errorf("%s is not blocked", fenceText(b.Key))
	}
	if b.WholePort() {
		rows, err := f.ports.read([]string{b.Port})
		r := rows[b.Port]
		return err == nil && r.is(false), err
	}
	return f.look(have, time.Now())
}

// look reads the queues of a block's port once more.
func (f *Fence) look(b *fenced, now time.Time) (bool, error) {
	poll, watch, err := f.polls()
	if err != nil {
		return false, err
	}
	names := []string{"HMGET", "COUNTERS_QUEUE_NAME_MAP"}
	pfc := []string{}
	for q := range fabric.Priorities {
		names = append(names, b.Port+":"+strconv.Itoa(q))
		pfc = append(pfc, "SAI_PORT_STAT_PFC_"+strconv.Itoa(q)+"_RX_PKTS")
	}
	ids, err := f.counters.all([][]string{names, {"HMGET", "COUNTERS_PORT_NAME_MAP", b.Port}})
	if err != nil {
		return false, err
	}
	port := at(ids[1], 0).text
	if port == "" {
		return false, fmt.Errorf("COUNTERS_DB has no port %s: nothing is known of its queues", b.Port)
	}
	ask := [][]string{append([]string{"HMGET", "COUNTERS:" + port}, pfc...)}
	for q := range fabric.Priorities {
		ask = append(ask, []string{"HMGET", "COUNTERS:" + at(ids[0], q).text, queueHolds})
	}
	answers, err := f.counters.all(ask)
	if err != nil {
		return false, err
	}
	first := b.queue == nil
	if first {
		b.queue = &draining{}
	}
	d, done := b.queue, true
	for q := range fabric.Priorities {
		n, ok := number(at(answers[0], q))
		if first || n != d.pauses[q] || !ok {
			d.pauses[q], d.changed[q] = n, now
		}
		if holds, known := number(at(answers[1+q], 0)); known && holds == 0 && now.Sub(b.Since) >= 2*watch {
			d.empty[q] = true
		}
		done = done && (d.empty[q] || now.Sub(d.changed[q]) >= poll+freeFor)
	}
	return done, nil
}

// polls reads how often SONiC polls ports and watched queues.
func (f *Fence) polls() (port, watchdog time.Duration, err error) {
	answers, err := f.config.all([][]string{{"HMGET", "FLEX_COUNTER_TABLE|PORT", "POLL_INTERVAL"}, {"HMGET", "PFC_WD|GLOBAL", "POLL_INTERVAL"}})
	if err != nil {
		return 0, 0, err
	}
	port, watchdog = portPoll, watchdogPoll
	for i, to := range []*time.Duration{&port, &watchdog} {
		if n, ok := number(at(answers[i], 0)); ok && n > 0 && n <= 60_000 {
			*to = time.Duration(n) * time.Millisecond
		}
	}
	return port, watchdog, nil
}

// inForce reports whether ASIC_DB has the tables of these rules at the port, or at its PortChannel.
func (f *Fence) inForce(port string, rules []aclRule) (bool, error) {
	names := "COUNTERS_PORT_NAME_MAP"
	kind := "PORT"
	if lag := f.trunks[port]; lag != "" {
		port, names, kind = lag, "COUNTERS_LAG_NAME_MAP", "LAG"
	}
	ids, err := f.counters.all([][]string{{"HMGET", names, port}, {"HMGET", "ACL_COUNTER_RULE_MAP", rules[0].table + ":" + rules[0].name(), rules[1].table + ":" + rules[1].name()}})
	if err != nil {
		return false, err
	}
	asic, err := f.asic.all([][]string{
		{"HMGET", "ASIC_STATE:SAI_OBJECT_TYPE_" + kind + ":" + at(ids[0], 0).text, "SAI_" + kind + "_ATTR_EGRESS_ACL", "SAI_" + kind + "_ATTR_INGRESS_ACL"},
		{"HMGET", "ASIC_STATE:SAI_OBJECT_TYPE_ACL_COUNTER:" + at(ids[1], 0).text, "SAI_ACL_COUNTER_ATTR_TABLE_ID"},
		{"HMGET", "ASIC_STATE:SAI_OBJECT_TYPE_ACL_COUNTER:" + at(ids[1], 1).text, "SAI_ACL_COUNTER_ATTR_TABLE_ID"},
	})
	if err != nil {
		return false, err
	}
	members, err := f.asic.scan("ASIC_STATE:SAI_OBJECT_TYPE_ACL_TABLE_GROUP_MEMBER:*")
	if err != nil {
		return false, err
	}
	rows, err := f.asic.hashes(members)
	if err != nil {
		return false, err
	}
	found := 0
	for i := range rules {
		group, table := at(asic[0], i).text, at(asic[1+i], 0).text
		for _, r := range rows {
			if group != "" && r["SAI_ACL_TABLE_GROUP_MEMBER_ATTR_ACL_TABLE_GROUP_ID"] == group && r["SAI_ACL_TABLE_GROUP_MEMBER_ATTR_ACL_TABLE_ID"] == table {
				found++
			}
		}
	}
	return found == len(rules), nil
}
