package sonic

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// orchagent does what SONiC's does with ACL tables: it takes changes of CONFIG_DB in an order of
// its own, one after the other, into an ASIC of so many rules, and says in other databases what it
// did.
type orchagent struct {
	t        testing.TB
	config   db
	state    db
	counters db
	asic     db
	room     int  // rules of a table
	mute     bool // an image that says nothing

	turn  sync.Mutex // held for a whole step
	mu    sync.Mutex
	after func()                       // each change of the ASIC
	rules map[string]map[string]string // in the ASIC, by key
	ports map[string]string            // bound, by table
	lag   map[string]string            // PortChannels, by member
	ops   int
	stop  chan struct{}
	done  chan struct{}
}

func newOrchagent(t testing.TB, address string, room int) *orchagent {
	o := &orchagent{t: t, config: db{address: address, number: configDB}, state: db{address: address, number: stateDB}, counters: db{address: address, number: countersDB},
		asic: db{address: address, number: asicDB}, room: room, rules: map[string]map[string]string{}, ports: map[string]string{}, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(o.done)
		for {
			o.step()
			select {
			case <-o.stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		close(o.stop)
		<-o.done
		for _, d := range []*db{&o.config, &o.state, &o.counters, &o.asic} {
			d.close()
		}
	})
	return o
}

func (o *orchagent) must(d *db, args ...string) {
	if out, err := d.do(args); err != nil || out[0] == nil {
		o.t.Errorf("%q: %v", args, err)
	}
}

func (o *orchagent) used(table string) (n int) {
	for k := range o.rules {
		if strings.HasPrefix(k, "ACL_RULE|"+table+"|") {
			n++
		}
	}
	return n
}

// step takes what differs.
func (o *orchagent) step() {
	o.turn.Lock()
	defer o.turn.Unlock()
	tables, err := o.config.scan("ACL_TABLE|*")
	rules, err1 := o.config.scan("ACL_RULE|*")
	rows, err2 := o.config.hashes(append(tables, rules...))
	if err != nil || err1 != nil || err2 != nil { // a busy machine: the next step sees it, or the test waits in vain
		return
	}
	o.mu.Lock()
	keys := map[string]bool{}
	for k := range o.rules {
		keys[k] = true
	}
	for _, k := range rules {
		keys[k] = true
	}
	o.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		_, table, _ := strings.Cut(k, "|")
		table, _, _ = strings.Cut(table, "|")
		o.mu.Lock()
		have, was := o.rules[k]
		want := rows[k]
		status := ""
		switch {
		case len(want) == 0:
			delete(o.rules, k)
		case maps.Equal(have, want):
			o.mu.Unlock()
			continue
		case was:
			o.t.Errorf("%s is changed in its place: the real one would take it away first", k)
			o.rules[k], status = want, aclActive
		case o.used(table) >= o.room:
			status = "Pending creation"
		default:
			o.rules[k], status = want, aclActive
		}
		o.ops++
		n := o.ops
		o.mu.Unlock()
		stateKey := strings.Replace(k, "ACL_RULE|", "ACL_RULE_TABLE|", 1)
		name := strings.Replace(strings.TrimPrefix(k, "ACL_RULE|"), "|", ":", 1)
		switch {
		case status == "":
			o.must(&o.state, "DEL", stateKey)
			o.must(&o.counters, "HDEL", "ACL_COUNTER_RULE_MAP", name)
		default:
			if !o.mute {
				o.must(&o.state, "HSET", stateKey, "status", status)
			}
			if status == aclActive {
				oid := fmt.Sprintf("oid:0x9%012x", n)
				o.must(&o.counters, "HSET", "ACL_COUNTER_RULE_MAP", name, oid)
				o.must(&o.counters, "HSET", "COUNTERS:"+oid, "SAI_ACL_COUNTER_ATTR_PACKETS", "7", "SAI_ACL_COUNTER_ATTR_BYTES", "700")
				o.must(&o.asic, "HSET", "ASIC_STATE:SAI_OBJECT_TYPE_ACL_COUNTER:"+oid, "SAI_ACL_COUNTER_ATTR_TABLE_ID", "oid:0x7"+table)
			}
		}
		o.mu.Lock()
		free, after := o.room-o.used(table), o.after
		o.mu.Unlock()
		o.must(&o.counters, "HSET", "CRM:ACL_TABLE_STATS:0x7"+table, "crm_stats_acl_entry_used", strconv.Itoa(o.room-free), "crm_stats_acl_entry_available", strconv.Itoa(free))
		if after != nil {
			after()
		}
	}
	for _, k := range tables {
		o.mu.Lock()
		name := strings.TrimPrefix(k, "ACL_TABLE|")
		changed := o.ports[name] != rows[k]["ports@"]
		o.ports[name] = rows[k]["ports@"]
		after := o.after
		o.mu.Unlock()
		if !o.mute {
			o.must(&o.state, "HSET", "ACL_TABLE_TABLE|"+name, "status", aclActive)
		}
		if changed && after != nil {
			after()
		}
	}
	var gone []string
	defer func() {
		for _, name := range gone {
			o.must(&o.state, "DEL", "ACL_TABLE_TABLE|"+name)
		}
	}()
	o.mu.Lock()
	for name := range o.ports {
		if !slices.Contains(tables, "ACL_TABLE|"+name) {
			delete(o.ports, name)
			gone = append(gone, name)
		}
	}
	o.mu.Unlock()
}

func (o *orchagent) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ops
}

// forwards is what the ASIC does with a TCP frame: the rule of the largest priority that it
// matches.
func (o *orchagent) forwards(port string, src, dst netip.Addr, dport uint16) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	table, suffix := aclTable4, ""
	if src.Is6() {
		table, suffix = aclTable6, "V6"
	}
	point := port
	if lag := o.lag[port]; lag != "" { // a member that is bound itself is refused
		point = lag
	}
	if !slices.Contains(strings.Split(o.ports[table], ","), point) {
		return true
	}
	best, action := -1, "FORWARD"
	for k, f := range o.rules {
		if !strings.HasPrefix(k, "ACL_RULE|"+table+"|") {
			continue
		}
		in := func(field string, a netip.Addr) bool {
			text, there := f[field]
			return !there || netip.MustParsePrefix(text).Contains(a)
		}
		is := func(field string, n int) bool { return f[field] == "" || f[field] == strconv.Itoa(n) }
		match := in("SRC_IP"+suffix, src) && in("DST_IP"+suffix, dst) && is("IP_PROTOCOL", 6) && is("NEXT_HEADER", 6) && is("L4_DST_PORT", int(dport)) && is("L4_SRC_PORT", 50000) &&
			f["ICMPV6_TYPE"] == "" && (f["L4_DST_PORT_RANGE"] == "" || dport >= 32768) && (f["IN_PORTS"] == "" || slices.Contains(strings.Split(f["IN_PORTS"], ","), port))
		if p, _ := strconv.Atoi(f["PRIORITY"]); match && p > best {
			best, action = p, f["PACKET_ACTION"]
		}
	}
	return action == "FORWARD"
}

// settled waits until the ASIC has what the database says.
func (o *orchagent) settled(t interface{ Fatal(...any) }) {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(3 * time.Millisecond) {
		keys, err := o.config.scan("ACL_RULE|*")
		if err != nil {
			t.Fatal(err)
		}
		o.turn.Lock() // what a step does last has been done
		o.mu.Lock()
		same := len(keys) == len(o.rules) || o.used(aclTable4) == o.room
		for k := range o.rules {
			same = same && slices.Contains(keys, k)
		}
		o.mu.Unlock()
		o.turn.Unlock()
		if same {
			return
		}
	}
	t.Fatal("the rules do not come into the ASIC")
}
