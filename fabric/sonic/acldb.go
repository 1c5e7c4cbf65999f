package sonic

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// More of SONiC's databases (database_config.json).
const (
	asicDB   = 1
	configDB = 4
)

// aclDB is what it takes to bring rules into the ASIC.
type aclDB struct {
	config, state, counters, asic *db

	trunks  trunks
	silent  bool // this image does not say which rules it has taken
	changes *ownChanges
}

func newACLDB(address string) aclDB {
	open := func(n int) *db { return &db{address: address, number: n} }
	return aclDB{config: open(configDB), state: open(stateDB), counters: open(countersDB), asic: open(asicDB), changes: &ownChanges{}}
}

// Close implements hardzone.Dataplane and fence.Dataplane: what is in the database stays in force.
func (a *aclDB) Close() error {
	for _, d := range []*db{a.config, a.state, a.counters, a.asic} {
		d.close()
	}
	return nil
}

// aclTable is a table and its type, which have one name.
type aclTable struct {
	name, matches, stage, desc string
	ports                      []string
}

// putTables writes types and tables that are not as they should be.
func (a *aclDB) putTables(list []aclTable) error {
	var keys []string
	for _, t := range list {
		keys = append(keys, "ACL_TABLE_TYPE|"+t.name, "ACL_TABLE|"+t.name)
	}
	have, err := a.config.hashes(keys)
	if err != nil {
		return err
	}
	var commands [][]string
	need := func(key string, fields ...string) {
		for i := 0; i < len(fields); i += 2 {
			if have[key][fields[i]] != fields[i+1] {
				a.changes.expect("hset", key)
				commands = append(commands, append([]string{"HSET", key}, fields...))
				return
			}
		}
	}
	for _, t := range list {
		need("ACL_TABLE_TYPE|"+t.name, "MATCHES@", t.matches, "ACTIONS@", "PACKET_ACTION", "BIND_POINTS@", "PORT,PORTCHANNEL")
		need("ACL_TABLE|"+t.name, "type", t.name, "stage", t.stage, "policy_desc", t.desc, "ports@", strings.Join(t.ports, ","))
	}
	_, err = a.config.all(commands)
	return err
}

// dropTables takes tables of ours out of the database, with all their rules: ports first, so that
// nothing is dropped meanwhile.
func (a *aclDB) dropTables(names ...string) error {
	for _, table := range names {
		have, err := a.config.hashes([]string{"ACL_TABLE|" + table})
		if err != nil {
			return err
		}
		rows, err := a.config.rowsOf(table)
		if err != nil {
			return err
		}
		if len(have["ACL_TABLE|"+table])+len(rows) == 0 {
			continue
		}
		if len(have["ACL_TABLE|"+table]) > 0 {
			a.changes.expect("hset", "ACL_TABLE|"+table)
			if _, err := a.config.all([][]string{{"HSET", "ACL_TABLE|" + table, "ports@", ""}}); err != nil {
				return err
			}
		}
		if err := a.del(append(slices.Collect(maps.Keys(rows)), "ACL_TABLE|"+table, "ACL_TABLE_TYPE|"+table)); err != nil {
			return err
		}
		// A table that is made again before orchagent has dropped it may lose its new rules.
		for until := time.Now().Add(aclWait); ; time.Sleep(aclPause) {
			left, err := a.state.hashes([]string{"ACL_TABLE_TABLE|" + table})
			if err != nil || len(left["ACL_TABLE_TABLE|"+table]) == 0 || time.Now().After(until) {
				break
			}
		}
	}
	return nil
}

// aclChunk is how many commands go to the server at once.
const aclChunk = 256

// errRefused is a command that the server answered with an error.
var errRefused = errors.New("the database refuses")

// all does many commands, some at a time; each must be answered.
func (d *db) all(commands [][]string) ([][]value, error) {
	out := make([][]value, 0, len(commands))
	for len(commands) > 0 {
		n := min(aclChunk, len(commands))
		answers, err := d.do(commands[:n]...)
		if err != nil {
			return out, err
		}
		for i, a := range answers {
			if a == nil {
				return out, fmt.Errorf("%w: %.200s", errRefused, strings.Join(commands[i], " "))
			}
		}
		out, commands = append(out, answers...), commands[n:]
	}
	return out, nil
}

// scan gives the keys that match a pattern.
func (d *db) scan(pattern string) (keys []string, err error) {
	for cursor := "0"; ; {
		answers, err := d.do([]string{"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"})
		if err != nil {
			return nil, err
		}
		if len(answers[0]) == 0 {
			return nil, fmt.Errorf("%w: SCAN", errRefused)
		}
		for _, v := range answers[0][1:] {
			keys = append(keys, v.text)
		}
		if cursor = answers[0][0].text; cursor == "0" {
			return keys, nil
		}
	}
}

// hashes reads the fields of many keys.
func (d *db) hashes(keys []string) (map[string]map[string]string, error) {
	commands := make([][]string, len(keys))
	for i, k := range keys {
		commands[i] = []string{"HGETALL", k}
	}
	answers, err := d.all(commands)
	if err != nil {
		return nil, err
	}
	out := make(map[string]map[string]string, len(keys))
	for i, k := range keys {
		fields := make(map[string]string, len(answers[i])/2)
		for j := 0; j+1 < len(answers[i]); j += 2 {
			fields[answers[i][j].text] = answers[i][j+1].text
		}
		out[k] = fields
	}
	return out, nil
}

// rowsOf reads the rules of a table by their keys. A key may be there twice (SCAN), or gone since.
func (d *db) rowsOf(table string) (map[string]map[string]string, error) {
	keys, err := d.scan("ACL_RULE|" + table + "|*")
	if err != nil {
		return nil, err
	}
	rows, err := d.hashes(keys)
	for k, fields := range rows {
		if len(fields) == 0 {
			delete(rows, k)
		}
	}
	return rows, err
}

// put writes rules, after orchagent has forgotten those that were deleted a moment before: it would go
// on to say that they are active, from before it has deleted and made them again
// (TestWhatOthersDeleteIsSeenAndPutBack).
func (a *aclDB) put(rules []aclRule) error {
	if err := a.forgotten(rules); err != nil {
		return err
	}
	commands := make([][]string, len(rules))
	for i, r := range rules {
		commands[i] = append([]string{"HSET", r.key()}, r.fields()...)
		a.changes.expect("hset", r.key())
	}
	_, err := a.config.all(commands)
	return err
}

// forgotten waits until orchagent says nothing of rules that are not in the configuration, or for a time.
func (a *aclDB) forgotten(rules []aclRule) error {
	if a.silent || len(rules) == 0 {
		return nil
	}
	commands := make([][]string, len(rules))
	for i, r := range rules {
		commands[i] = []string{"HMGET", r.key(), "PRIORITY"}
	}
	rows, err := a.config.all(commands)
	if err != nil {
		return err
	}
	var deleted []aclRule
	for i, r := range rules {
		if !at(rows[i], 0).ok {
			deleted = append(deleted, r)
		}
	}
	for until := time.Now().Add(aclWait); ; time.Sleep(aclPause) {
		st, err := a.taken(deleted)
		if err != nil || len(st.unseen) == len(deleted) || time.Now().After(until) {
			return err
		}
	}
}

// del removes rows.
func (a *aclDB) del(keys []string) error {
	commands := make([][]string, len(keys))
	for i, k := range keys {
		commands[i] = []string{"DEL", k}
		a.changes.expect("del", k)
	}
	_, err := a.config.all(commands)
	return err
}

// What orchagent says of a rule (ACL_RULE_TABLE of STATE_DB).
const aclActive = "Active"

// mute reports whether this image's orchagent does not say what it has taken (before SONiC 202305).
func (a *aclDB) mute() (bool, error) {
	keys, err := a.state.scan("ACL_TABLE_TABLE|*")
	return len(keys) == 0, err
}

// ruleStates are the rules that are not in the ASIC: those that orchagent has not looked at yet, and
// those that it could not bring there, and why.
type ruleStates struct {
	unseen, refused []aclRule
	why             []string
}

// taken returns which of the rules are not in the ASIC.
func (a *aclDB) taken(rules []aclRule) (st ruleStates, err error) {
	if a.silent {
		return st, nil
	}
	commands := make([][]string, len(rules))
	for i, r := range rules {
		commands[i] = []string{"HMGET", "ACL_RULE_TABLE|" + r.table + "|" + r.name(), "status"}
	}
	answers, err := a.state.all(commands)
	if err != nil {
		return st, err
	}
	for i, r := range rules {
		switch v := at(answers[i], 0); {
		case !v.ok:
			st.unseen = append(st.unseen, r)
		case v.text != aclActive:
			st.refused = append(st.refused, r)
			st.why = append(st.why, fmt.Sprintf("%s of table %s is %.40s", r.name(), r.table, v.text))
		}
	}
	return st, nil
}

// await waits until orchagent has looked at rules, or for the time.
func (a *aclDB) await(rules []aclRule, most time.Duration) (st ruleStates, err error) {
	for until := time.Now().Add(most); ; time.Sleep(aclPause) {
		if st, err = a.taken(rules); len(st.unseen) == 0 || err != nil || time.Now().After(until) {
			return st, err
		}
		rules = append(st.unseen, st.refused...)
	}
}

// readRoom finds how many rules the ASIC has room for in each table, as CRM counts it: the counter
// of a rule of ours leads to the table in the ASIC. Tables of which nothing is said have no bound.
func (a *ACL) readRoom() error {
	for _, table := range []string{aclTable4, aclTable6} {
		var names []string
		for r := range a.there {
			if r.table == table && len(names) < 8 {
				names = append(names, table+":"+r.name())
			}
		}
		if len(names) == 0 {
			continue
		}
		oids, err := a.counters.all([][]string{append([]string{"HMGET", "ACL_COUNTER_RULE_MAP"}, names...)})
		if err != nil {
			return err
		}
		for _, oid := range oids[0] {
			if !oid.ok {
				continue
			}
			id, err := a.asic.all([][]string{{"HMGET", "ASIC_STATE:SAI_OBJECT_TYPE_ACL_COUNTER:" + oid.text, "SAI_ACL_COUNTER_ATTR_TABLE_ID"}})
			if err != nil {
				return err
			}
			stats, err := a.counters.all([][]string{{"HMGET", "CRM:ACL_TABLE_STATS:" + strings.TrimPrefix(at(id[0], 0).text, "oid:"),
				"crm_stats_acl_entry_used", "crm_stats_acl_entry_available"}})
			if err != nil {
				return err
			}
			used, ok := number(at(stats[0], 0))
			free, also := number(at(stats[0], 1))
			if ok && also && used+free < 1<<24 {
				a.room[table] = int(used + free)
				break
			}
		}
	}
	return nil
}

// packets reads what rules have counted, by rule.
func (a *aclDB) packets(rules []aclRule) (map[aclRule]uint64, error) {
	commands := make([][]string, len(rules))
	for i, r := range rules {
		commands[i] = []string{"HMGET", "ACL_COUNTER_RULE_MAP", r.table + ":" + r.name()}
	}
	oids, err := a.counters.all(commands)
	if err != nil {
		return nil, err
	}
	for i := range rules {
		commands[i] = []string{"HMGET", "COUNTERS:" + at(oids[i], 0).text, "SAI_ACL_COUNTER_ATTR_PACKETS"}
	}
	values, err := a.counters.all(commands)
	if err != nil {
		return nil, err
	}
	out := make(map[aclRule]uint64, len(rules))
	for i, r := range rules {
		out[r], _ = number(at(values[i], 0))
	}
	return out, nil
}

// able reports whether the ASIC can drop at a stage, ingress or egress, as far as it says what it can.
func (a *aclDB) able(stage string) error {
	key := "ACL_STAGE_CAPABILITY_TABLE|" + strings.ToUpper(stage)
	caps, err := a.state.hashes([]string{key})
	if err != nil {
		return err
	}
	list, said := caps[key]["action_list"]
	for action := range strings.SplitSeq(list, ",") {
		if action == "PACKET_ACTION" {
			return nil
		}
	}
	if said {
		return fmt.Errorf("the ASIC has no PACKET_ACTION at the %s: ACL_STAGE_CAPABILITY_TABLE has %s", stage, strconv.Quote(list))
	}
	return nil
}
