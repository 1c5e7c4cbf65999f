package sonic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/hardzone"
)

// ACL enforces the rows of hard zoning in a switch's ASIC: as rules of two ACL tables in
// CONFIG_DB, which SONiC's orchagent brings there. Rows of others are left alone.
type ACL struct {
	aclDB

	cfg       hardzone.Config
	bounds    []hardzone.Bound
	ports     []string // that are to be filtered
	bound     []string // that are, or the PortChannels that the last process bound
	suspended bool

	hosts map[uint32]*aclHost
	base  []aclRule
	want  map[aclRule]bool   // all rules
	there map[aclRule]bool   // those in the database
	kept  map[string]aclRule // wanted no longer, until what replaces them is in the ASIC; by key
	room  map[string]int     // rules of each table in the ASIC, where that is known

	adopted []hardzone.Host
	keys    []hardzone.PairKey
}

// aclHost is a host or, as long as its address is not known, the number of one.
type aclHost struct {
	hardzone.Host
	partners map[uint32]uint32 // by number, with the zone
	rules    []aclRule
	dirty    bool
}

var _ hardzone.Dataplane = (*ACL)(nil)

const (
	// aclWait is how long is waited for orchagent.
	aclWait  = 2 * time.Second
	aclPause = 5 * time.Millisecond
	// What ACL_TABLE says for people, and for the next process.
	aclPolicy    = "iNOF hard zoning"
	aclSuspended = "iNOF hard zoning, suspended by an operator"
)

// OpenACL takes over what is in the database already; nothing is enforced before SetPorts.
func OpenACL(cfg hardzone.Config, address string) (*ACL, error) {
	a := &ACL{aclDB: newACLDB(address), cfg: cfg,
		hosts: make(map[uint32]*aclHost), want: make(map[aclRule]bool), there: make(map[aclRule]bool), room: make(map[string]int)}
	err := a.able("ingress")
	if err == nil {
		err = a.adopt()
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// adopt reads the rules of before as the hosts and pairs that they are of.
func (a *ACL) adopt() error {
	tables, err := a.config.hashes([]string{"ACL_TABLE|" + aclTable4})
	if err != nil {
		return err
	}
	was := tables["ACL_TABLE|"+aclTable4]
	a.suspended = was["policy_desc"] == aclSuspended
	if was["ports@"] != "" {
		a.bound = strings.Split(was["ports@"], ",")
		if a.silent, err = a.mute(); err != nil {
			return err
		}
	}
	number := make(map[netip.Addr]uint32)
	host := func(addr netip.Addr) *aclHost {
		if number[addr] == 0 {
			number[addr] = uint32(len(number) + 1)
			a.host(number[addr]).Addr = addr
		}
		return a.hosts[number[addr]]
	}
	pairs := make(map[hardzone.PairKey]bool)
	for _, table := range []string{aclTable4, aclTable6} {
		rows, err := a.config.rowsOf(table)
		if err != nil {
			return err
		}
		for _, fields := range rows {
			r, ok := parsePair(table, fields)
			if !ok {
				continue
			}
			from := host(r.src.Addr())
			from.Ports, from.dirty = strings.Split(r.ports, ","), true
			from.rules = append(from.rules, r)
			a.want[r], a.there[r] = true, true
			for _, addr := range addrsOf(r.dst) {
				to := host(addr)
				from.partners[to.Number], to.partners[from.Number] = 0, 0
				pairs[hardzone.KeyOf(from.Number, to.Number)] = true
			}
		}
	}
	for _, h := range a.hosts {
		a.adopted = append(a.adopted, h.Host)
	}
	a.keys = slices.Collect(maps.Keys(pairs))
	return nil
}

// host gives the record of a number.
func (a *ACL) host(n uint32) *aclHost {
	if a.hosts[n] == nil {
		a.hosts[n] = &aclHost{Host: hardzone.Host{Number: n}, partners: make(map[uint32]uint32)}
	}
	return a.hosts[n]
}

// Adopted implements hardzone.Dataplane.
func (a *ACL) Adopted() ([]hardzone.Host, []hardzone.PairKey, bool) {
	return a.adopted, a.keys, a.suspended
}

// Configure implements hardzone.Dataplane.
func (a *ACL) Configure(cfg hardzone.Config, bounds []hardzone.Bound) error {
	a.cfg, a.bounds = cfg, bounds
	err := a.flush()
	if cfg.Unlearned != hardzone.UnlearnedDrop || cfg.Discovery != hardzone.DiscoveryPass {
		err = errors.Join(err, fmt.Errorf("an ASIC has no rules for hard-zoning.unlearned %s with discovery %s: unlearned addresses are dropped, and discovery passes", cfg.Unlearned, cfg.Discovery))
	}
	return err
}

// Apply implements hardzone.Dataplane.
func (a *ACL) Apply(steps []hardzone.Step) error {
	for i := range steps {
		s := &steps[i]
		switch s.Op {
		case hardzone.PutPair:
			x, y := a.host(s.Pair.Key.Low), a.host(s.Pair.Key.High)
			x.partners[y.Number], y.partners[x.Number] = s.Pair.Zone, s.Pair.Zone
			x.dirty, y.dirty = true, true
		case hardzone.DeletePair:
			x, y := a.host(s.Pair.Key.Low), a.host(s.Pair.Key.High)
			delete(x.partners, y.Number)
			delete(y.partners, x.Number)
			x.dirty, y.dirty = true, true
		case hardzone.PutHost:
			h := a.host(s.Host.Number)
			if h.Addr != s.Host.Addr {
				a.mark(h)
			}
			h.Host, h.dirty = s.Host, true
		case hardzone.DeleteHost:
			h := a.host(s.Host.Number)
			a.mark(h)
			h.Host, h.dirty = hardzone.Host{Number: h.Number}, true
		}
	}
	return a.flush()
}

// mark has the rules of a host's partners looked at.
func (a *ACL) mark(h *aclHost) {
	for n := range h.partners {
		a.host(n).dirty = true
	}
}

// compile gives the rules of a host.
func (a *ACL) compile(h *aclHost) []aclRule {
	if len(h.Ports) == 0 {
		return nil
	}
	var partners []netip.Addr
	for n := range h.partners {
		if o := a.hosts[n]; o != nil && o.Addr.IsValid() {
			partners = append(partners, o.Addr)
		}
	}
	return pairRules(h.Addr, h.Ports, partners)
}

// flush brings what has changed into the database: rules that are new, then, once the ASIC has
// them, those that they replace go.
func (a *ACL) flush() error {
	base := baseRules(a.cfg, a.bounds, a.ports)
	a.replace(a.base, base)
	a.base = base
	for n, h := range a.hosts {
		if !h.dirty {
			continue
		}
		rules := a.compile(h)
		a.replace(h.rules, rules)
		h.rules, h.dirty = rules, false
		if len(h.partners) == 0 && !h.Addr.IsValid() {
			delete(a.hosts, n)
		}
	}
	return a.sync()
}

func (a *ACL) replace(old, rules []aclRule) {
	for _, r := range old {
		delete(a.want, r)
	}
	for _, r := range rules {
		a.want[r] = true
	}
}

// sync makes the database's rules those that are wanted, as far as there is room for them.
func (a *ACL) sync() error {
	if err := a.define(); err != nil {
		return err
	}
	used := make(map[string]int)
	var gone []aclRule
	for r := range a.there {
		if a.want[r] {
			used[r.table]++
		} else {
			gone = append(gone, r)
		}
	}
	var fresh []aclRule
	for r := range a.want {
		if !a.there[r] {
			fresh = append(fresh, r)
		}
	}
	// What is not of pairs has room before all; the rest has an order, so that it is the same each
	// time.
	slices.SortFunc(fresh, func(x, y aclRule) int {
		if x.priority != y.priority {
			return x.priority - y.priority
		}
		return strings.Compare(x.key(), y.key())
	})
	fresh = slices.DeleteFunc(fresh, func(r aclRule) bool {
		room, known := a.room[r.table]
		if known && used[r.table] >= room {
			return true
		}
		used[r.table]++
		return false
	})
	if err := a.put(fresh); err != nil {
		return err
	}
	for _, r := range fresh {
		a.there[r] = true
	}
	kept, err := a.drop(gone)
	return errors.Join(err, kept, a.crowded())
}

// drop deletes rules that are wanted no longer, each once the ASIC has the rules that take its place
// (kept is the error of those that it has not). Where there is no room for both the old one goes first.
func (a *ACL) drop(gone []aclRule) (kept, err error) {
	var after []aclRule
	for r := range a.want {
		if a.there[r] && slices.ContainsFunc(gone, r.overlaps) {
			after = append(after, r)
		}
	}
	var open []aclRule
	if len(after) > 0 && len(a.bound) > 0 {
		st, err := a.await(after, aclWait)
		if err != nil {
			return nil, err
		}
		open = append(st.unseen, st.refused...)
	}
	full := make(map[string]bool)
	for table, room := range a.room {
		full[table] = a.count(table) > room
	}
	var keys []string
	a.kept = make(map[string]aclRule)
	for _, r := range gone {
		if !full[r.table] && slices.ContainsFunc(open, r.overlaps) {
			kept = fmt.Errorf("SONiC's orchagent has not taken %d rules yet: those that they replace stay in force", len(open))
			a.kept[r.key()] = r
			continue
		}
		keys = append(keys, r.key())
		delete(a.there, r)
	}
	return kept, a.del(keys)
}

func (a *ACL) count(table string) (n int) {
	for r := range a.there {
		if r.table == table {
			n++
		}
	}
	return n
}

// crowded is the error of rules that have no room.
func (a *ACL) crowded() error {
	var errs []error
	for _, table := range []string{aclTable4, aclTable6} {
		wanted, there := 0, 0
		for r := range a.want {
			if r.table != table {
				continue
			}
			if wanted++; a.there[r] {
				there++
			}
		}
		if wanted > there {
			errs = append(errs, fmt.Errorf("the ASIC has room for %d rules of table %s, %d are needed: pairs of %d rules may talk and are dropped", a.room[table], table, wanted, wanted-there))
		}
	}
	return errors.Join(errs...)
}

// define writes types and tables that are not as they should be; it binds no port.
func (a *ACL) define() error {
	desc := aclPolicy
	if a.suspended {
		desc = aclSuspended
	}
	var defs []aclTable
	for _, t := range []string{aclTable4, aclTable6} {
		defs = append(defs, aclTable{name: t, matches: aclMatches[t], stage: "ingress", desc: desc, ports: a.trunks.points(a.bound)})
	}
	return a.putTables(defs)
}

// SetPorts implements hardzone.Dataplane. Ports are bound when the ASIC has the rules.
func (a *ACL) SetPorts(ports []hardzone.Port) []hardzone.PortState {
	all, states := make([]string, len(ports)), make([]hardzone.PortState, len(ports))
	for i, p := range ports {
		all[i] = p.Name
	}
	err := a.readTrunks()
	names := make([]string, 0, len(ports))
	for i, p := range all {
		if states[i].Err = a.trunks.mixed(p, all); states[i].Err == nil {
			names = append(names, p)
		}
	}
	slices.Sort(names)
	a.ports = names
	err = errors.Join(err, a.flush())
	if !a.suspended && !slices.Equal(names, a.bound) {
		err = errors.Join(err, a.bind(names))
	}
	for i, p := range ports {
		states[i].Port, states[i].Err = p.Name, errors.Join(states[i].Err, err)
		if slices.Contains(a.bound, p.Name) {
			states[i].Attach = hardzone.AttachASIC
		}
	}
	return states
}

// bind has the tables judge what comes in at these ports, once orchagent has looked at all rules.
func (a *ACL) bind(ports []string) error {
	rules := slices.Collect(maps.Keys(a.there))
	st, err := a.await(rules, aclWait)
	if err == nil && len(st.unseen) > 0 {
		a.silent, err = a.mute()
	}
	if err != nil {
		return err
	}
	if len(st.unseen) > 0 && !a.silent {
		return fmt.Errorf("SONiC's orchagent has not looked at %d of %d rules yet: ports are not filtered before it has", len(st.unseen), len(rules))
	}
	a.bound = ports
	return errors.Join(a.define(), refused(st.why, len(rules)))
}

// refused is the error of rules that orchagent could not bring into the ASIC.
func refused(failed []string, of int) error {
	if len(failed) == 0 {
		return nil
	}
	slices.Sort(failed)
	return fmt.Errorf("the ASIC has not taken %d of %d rules: %s", len(failed), of, failed[0])
}

// Suspend implements hardzone.Dataplane.
func (a *ACL) Suspend(on bool) error {
	a.suspended = on
	if on {
		a.bound = nil
		return a.define()
	}
	return a.bind(a.ports)
}

// Audit implements hardzone.Dataplane.
func (a *ACL) Audit() (out hardzone.Audited, err error) {
	for _, h := range a.hosts {
		out.Hosts += min(1, h.Addr.BitLen())
		out.Pairs += len(h.partners)
	}
	out.Pairs /= 2
	if err := errors.Join(a.readRoom(), a.readTrunks()); err != nil {
		return out, err
	}
	lost, err := a.lostTables()
	if err != nil {
		return out, err
	}
	if lost {
		a.bound = nil
	}
	var wrong []aclRule
	var foreign []string
	a.there = make(map[aclRule]bool)
	for _, table := range []string{aclTable4, aclTable6} {
		rows, err := a.config.rowsOf(table)
		if err != nil {
			return out, err
		}
		wanted := make(map[string]aclRule)
		for r := range a.want {
			if r.table == table {
				wanted[r.key()] = r
			}
		}
		for key, fields := range rows {
			r, ok := wanted[key]
			if !ok {
				r, ok = a.kept[key]
			}
			if !ok {
				foreign = append(foreign, key)
				continue
			}
			a.there[r] = true
			if !same(r.fields(), fields) {
				wrong = append(wrong, r)
			}
		}
	}
	var replaced []string
	for _, r := range wrong {
		replaced = append(replaced, r.key())
		delete(a.there, r)
	}
	if err := a.del(replaced); err != nil {
		return out, err
	}
	before := len(a.there)
	err = a.sync()
	if lost && !a.suspended {
		err = errors.Join(err, a.bind(a.ports))
	}
	out.Wrong, out.Foreign = len(wrong), len(foreign)
	out.Missing = max(len(a.there)-before-len(wrong), 0)
	if delErr := a.del(foreign); delErr != nil {
		return out, errors.Join(err, delErr)
	}
	if len(a.bound) > 0 {
		st, takenErr := a.await(slices.Collect(maps.Keys(a.there)), aclWait)
		err = errors.Join(err, takenErr, refused(st.why, len(a.there)))
		if n := len(st.unseen); n > 0 { // once more: orchagent may have dropped them with their table
			err = errors.Join(err, fmt.Errorf("SONiC's orchagent has not taken %d of %d rules yet", n, len(a.there)), a.put(st.unseen))
		}
	}
	return out, err
}

func same(list []string, fields map[string]string) bool {
	for i := 0; i < len(list); i += 2 {
		if fields[list[i]] != list[i+1] {
			return false
		}
	}
	return len(fields) == len(list)/2
}

// Samples implements hardzone.Dataplane: an ASIC shows no dropped frames.
func (a *ACL) Samples(ctx context.Context, _ func(hardzone.Sample)) error {
	<-ctx.Done()
	return nil
}
