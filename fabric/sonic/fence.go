package sonic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openinof/inof/fabric/fence"
)

// Fence blocks in the ASIC: a pair of addresses by rules at the egress and the ingress of the
// array's port, a whole port by its administrative state. What is blocked stands in INOF_FENCE of
// CONFIG_DB too, with its end: an ASIC ends no rule by itself, so a block that ended while no
// process ran is lifted by the next one.
type Fence struct {
	aclDB
	appl  *db
	ports portDB
	stop  context.CancelFunc

	mu     sync.Mutex
	blocks map[fence.Key]*fenced
}

var _ fence.Dataplane = (*Fence)(nil)

// fenced is a block, in force or about to be.
type fenced struct {
	fence.Block
	end   *time.Timer
	queue *draining // nil: nobody has asked yet
}

const (
	fencePriority = 9500
	fenceName     = "INOF_" + "FENCE_"
	fenceOut      = fenceName + "OUT"
	fenceIn       = fenceName + "IN"
	fenceRows     = "INOF_FENCE|"
	fencePolicy   = "iNOF fencing"
	// fenceWait is how long is waited for orchagent.
	fenceWait = 2 * time.Second
)

var fenceTables = []string{fenceOut + "4", fenceOut + "6", fenceIn + "4", fenceIn + "6"}

// OpenFence takes over blocks that are in force, and lifts those that have ended.
func OpenFence(address string) (*Fence, error) {
	f := &Fence{aclDB: newACLDB(address), appl: &db{address: address, number: applDB}, blocks: make(map[fence.Key]*fenced)}
	f.ports = portDB{config: f.config, appl: f.appl, counters: f.counters, asic: f.asic}
	err := errors.Join(f.able("egress"), f.able("ingress"))
	if err == nil {
		err = f.adopt(time.Now())
	}
	if err != nil {
		f.appl.close()
		f.aclDB.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	go func() { _ = f.watch(ctx, f.repair, "ACL_TABLE|INOF_FENCE*", "ACL_RULE|INOF_FENCE*", fenceRows+"*") }()
	return f, nil
}

// adopt reads the blocks of a process before this one.
func (f *Fence) adopt(now time.Time) error {
	keys, err := f.config.scan(fenceRows + "*")
	if err != nil {
		return err
	}
	rows, err := f.config.hashes(keys)
	if err != nil {
		return err
	}
	for row, fields := range rows {
		key, ok := parseFenceRow(row)
		since, err1 := time.Parse(time.RFC3339Nano, fields["since"])
		until, err2 := time.Parse(time.RFC3339Nano, fields["until"])
		if !ok || err1 != nil || err2 != nil {
			if _, err := f.config.all([][]string{{"DEL", row}}); err != nil {
				return err
			}
			continue
		}
		f.blocks[key] = &fenced{Block: fence.Block{Key: key, Since: since, Until: until}}
		if until.After(now) {
			f.arm(f.blocks[key], now)
		} else if err := f.lift(key); err != nil {
			return err
		}
	}
	return f.removeStrays()
}

// removeStrays deletes rules and shuts of ours that belong to no block.
func (f *Fence) removeStrays() error {
	want := map[string]bool{}
	for key := range f.blocks {
		for _, r := range fenceRules(key) {
			want[r.key()] = true
		}
	}
	var strays []string
	for _, table := range fenceTables {
		rows, err := f.config.rowsOf(table)
		if err != nil {
			return err
		}
		for k := range rows {
			if !want[k] {
				strays = append(strays, k)
			}
		}
	}
	if err := f.del(strays); err != nil {
		return err
	}
	marks, err := f.config.scan(ourPorts + "*")
	if err != nil {
		return err
	}
	for _, m := range marks {
		port := strings.TrimPrefix(m, ourPorts)
		if f.blocks[fence.Key{Port: port}] == nil {
			if err := f.openPort(port); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k fenceKey) row() string {
	if fence.Key(k).WholePort() {
		return fenceRows + k.Port
	}
	return fenceRows + k.Port + "|" + k.Array.String() + "|" + k.Host.String()
}

// fenceKey is a key with the name of its row.
type fenceKey fence.Key

func parseFenceRow(row string) (k fence.Key, ok bool) {
	parts := strings.Split(strings.TrimPrefix(row, fenceRows), "|")
	k.Port = parts[0]
	if len(parts) == 1 {
		return k, k.Port != ""
	}
	if len(parts) != 3 {
		return k, false
	}
	array, err := netip.ParseAddr(parts[1])
	host, err1 := netip.ParseAddr(parts[2])
	k.Array, k.Host = array, host
	return k, err == nil && err1 == nil && array.Is4() == host.Is4()
}

// fenceRules are those of a pair: towards the array, and from it.
func fenceRules(k fence.Key) []aclRule {
	if k.WholePort() {
		return nil
	}
	array, host := netip.PrefixFrom(k.Array, k.Array.BitLen()), netip.PrefixFrom(k.Host, k.Host.BitLen())
	family := "4"
	if k.Array.Is6() {
		family = "6"
	}
	r := aclRule{priority: fencePriority, drop: true, ports: k.Port}
	out, in := r, r
	out.table, out.src, out.dst = fenceOut+family, host, array
	in.table, in.src, in.dst = fenceIn+family, array, host
	return []aclRule{out, in}
}

// Adopted implements fence.Dataplane.
func (f *Fence) Adopted() (list []fence.Block, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.blocks {
		list = append(list, b.Block)
	}
	return list, nil
}

// Block implements fence.Dataplane: it returns once orchagent says that the rules are active and the
// tables are bound to the port, or ASIC_DB that the port is shut. After an error it may be called
// again; what has been done stays.
func (f *Fence) Block(key fence.Key, until time.Time) (fence.Block, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	b := f.blocks[key]
	if b == nil {
		b = &fenced{Block: fence.Block{Key: key, Until: until}}
		f.blocks[key] = b
	}
	if until.After(b.Until) {
		b.Until = until
	}
	f.arm(b, now)
	since := b.Since
	if since.IsZero() {
		since = now
	}
	err := f.write(b, since)
	if err == nil && key.WholePort() {
		err = f.shutPort(key.Port)
	} else if err == nil {
		err = f.blockPair(key)
	}
	if err != nil {
		return fence.Block{}, fmt.Errorf("block of %s: %w", fenceText(key), err)
	}
	if b.Since.IsZero() {
		b.Since = time.Now()
	}
	return b.Block, nil
}

func fenceText(k fence.Key) string {
	if k.WholePort() {
		return "port " + k.Port
	}
	return fmt.Sprintf("%s and %s at port %s", k.Array, k.Host, k.Port)
}

func (f *Fence) write(b *fenced, since time.Time) error {
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
	f.changes.expect("hset", fenceKey(b.Key).row())
	_, err := f.config.all([][]string{{"HSET", fenceKey(b.Key).row(), "since", stamp(since), "until", stamp(b.Until)}})
	return err
}

// arm has a block end at its time.
func (f *Fence) arm(b *fenced, now time.Time) {
	if b.end != nil {
		b.end.Stop()
	}
	b.end = time.AfterFunc(b.Until.Sub(now), func() { f.expire(b.Key) })
}

// expire lifts a block that has ended, and tries again where that cannot be done.
func (f *Fence) expire(key fence.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.blocks[key]
	if b == nil || time.Now().Before(b.Until) {
		return // lifted, or prolonged meanwhile
	}
	if f.lift(key) != nil {
		b.end = time.AfterFunc(redialDelay, func() { f.expire(key) })
	}
}

// define writes the tables, bound to the ports of all blocks.
func (f *Fence) define() error {
	if err := f.readTrunks(); err != nil {
		return err
	}
	var names []string
	for k := range f.blocks {
		if !k.WholePort() {
			names = append(names, k.Port)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil
	}
	points := f.trunks.points(names)
	return f.putTables([]aclTable{
		{fenceOut + "4", "OUT_PORTS,SRC_IP,DST_IP", "egress", fencePolicy, points},
		{fenceOut + "6", "OUT_PORTS,SRC_IPV6,DST_IPV6", "egress", fencePolicy, points},
		{fenceIn + "4", "IN_PORTS,SRC_IP,DST_IP", "ingress", fencePolicy, points},
		{fenceIn + "6", "IN_PORTS,SRC_IPV6,DST_IPV6", "ingress", fencePolicy, points},
	})
}

func (f *Fence) blockPair(key fence.Key) error {
	if err := f.place(); err != nil {
		return err
	}
	rules := fenceRules(key)
	until, again := time.Now().Add(fenceWait), time.Now().Add(fenceWait/4)
	for ; ; time.Sleep(aclPause) {
		st, err := f.taken(rules)
		if err != nil {
			return err
		}
		open := len(st.unseen) + len(st.refused)
		if open == 0 {
			if bound, err := f.inForce(key.Port, rules); err != nil || bound {
				return err
			}
			if time.Now().After(again) { // STATE_DB has them from a table that is gone
				again = until
				if err := f.put(rules); err != nil {
					return err
				}
			}
		}
		if time.Now().After(until) {
			if len(st.why) > 0 {
				return fmt.Errorf("the ASIC has not taken it: %s", st.why[0])
			}
			return fmt.Errorf("SONiC's orchagent has not brought it into the ASIC within %s (%d of %d rules are active)", fenceWait, len(rules)-open, len(rules))
		}
	}
}

// shutPort shuts a port and waits until the ASIC has.
func (f *Fence) shutPort(port string) error {
	for until, asked := time.Now().Add(fenceWait), false; ; time.Sleep(aclPause) {
		rows, err := f.ports.read([]string{port})
		if err != nil {
			return err
		}
		r := rows[port]
		if !r.there {
			return errors.New("it is no port of this switch: CONFIG_DB does not have it")
		}
		if asked && r.is(false) {
			return nil
		}
		if !asked && r.ours[byFence] == "" || r.want != "down" {
			if err := f.ports.shut(port, byFence, &r, time.Now()); err != nil {
				return err
			}
		}
		if asked = true; time.Now().After(until) {
			return fmt.Errorf("SONiC's orchagent has not shut it within %s", fenceWait)
		}
	}
}

// openPort opens a port that we have shut.
func (f *Fence) openPort(port string) error {
	rows, err := f.ports.read([]string{port})
	if err != nil {
		return err
	}
	if r := rows[port]; r.ours[byFence] != "" {
		return f.ports.open(port, byFence, &r)
	}
	return nil
}

// Lift implements fence.Dataplane.
func (f *Fence) Lift(key fence.Key) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lift(key)
}

func (f *Fence) lift(key fence.Key) error {
	var err error
	if key.WholePort() {
		err = f.openPort(key.Port)
	} else {
		var keys []string
		for _, r := range fenceRules(key) {
			keys = append(keys, r.key())
		}
		err = f.del(keys)
	}
	if err == nil {
		err = f.del([]string{fenceKey(key).row()})
	}
	if b := f.blocks[key]; err == nil && b != nil {
		if b.end != nil {
			b.end.Stop()
		}
		delete(f.blocks, key)
	}
	return err
}

// LiftAll implements fence.Dataplane.
func (f *Fence) LiftAll() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, key := range slices.Collect(maps.Keys(f.blocks)) {
		errs = append(errs, f.lift(key))
	}
	rows, err := f.config.scan(fenceRows + "*")
	errs = append(errs, err, f.dropTables(fenceTables...), f.del(rows), f.removeStrays())
	return errors.Join(errs...)
}

// repair puts back what another program has deleted.
func (f *Fence) repair() {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.place()
	for key, b := range f.blocks {
		if err == nil {
			err = f.write(b, b.Since)
		}
		if err == nil && key.WholePort() {
			err = f.shutPort(key.Port)
		}
	}
	// After an error the next change, or the next call, tries again.
}

// place writes the rules of all blocks that are not there. One that is there is not touched, because
// orchagent would take it away first; but with its table it has lost the rule too.
func (f *Fence) place() error {
	var rules []aclRule
	var keys []string
	for key := range f.blocks {
		rules = append(rules, fenceRules(key)...)
	}
	for _, r := range rules {
		keys = append(keys, r.key(), "ACL_TABLE|"+r.table)
	}
	have, err := f.config.hashes(keys)
	if err == nil {
		err = f.define()
	}
	if err != nil {
		return err
	}
	return f.put(slices.DeleteFunc(rules, func(r aclRule) bool {
		return len(have["ACL_TABLE|"+r.table]) > 0 && same(r.fields(), have[r.key()])
	}))
}

// Counts implements fence.Dataplane. What an ASIC drops at a port that is shut it does not count.
func (f *Fence) Counts() (map[fence.Key]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []aclRule
	for key := range f.blocks {
		all = append(all, fenceRules(key)...)
	}
	packets, err := f.packets(all)
	if err != nil {
		return nil, err
	}
	out := make(map[fence.Key]uint64, len(f.blocks))
	for key := range f.blocks {
		out[key] = 0
		for _, r := range fenceRules(key) {
			out[key] += packets[r]
		}
	}
	return out, nil
}

// String implements fence.Dataplane.
func (f *Fence) String() string { return "ASIC" }

// Close implements fence.Dataplane.
func (f *Fence) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop()
	for _, b := range f.blocks {
		if b.end != nil {
			b.end.Stop()
		}
	}
	f.appl.close()
	return f.aclDB.Close()
}
