package zonefilter

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/openinof/inof/hardzone"
)

// Filter is the enforcement of one network namespace: that of the thread that calls SetPorts.
type Filter struct {
	dir    string // of the pins; empty: there are none
	spec   *ebpf.CollectionSpec
	tables map[string]*ebpf.Map
	attach hardzone.Attach

	hosts map[addrKey]hostValue // as they should be
	pairs map[pairKey]uint32
	extra map[string]any // rows of permits, prefixes and bounds, by table
	ports map[string]*portFilter
	names []string // of ports by number

	adopted   []hardzone.Host
	keys      []hardzone.PairKey
	suspended bool
	cfg       hardzone.Config
}

var _ hardzone.Dataplane = (*Filter)(nil)

// Open takes over the tables that are pinned, or makes them; nothing is filtered before
// SetPorts. An error that wraps ErrNoPins comes with a Filter that works and will not outlive
// the process.
func Open(cfg hardzone.Config) (*Filter, error) {
	_ = rlimit.RemoveMemlock() // needed before Linux 5.11 only; what it prevents says itself
	spec, err := load(cfg.MaxPairs)
	if err != nil {
		return nil, err
	}
	f := &Filter{dir: cfg.Pins, spec: spec, attach: cfg.Attach, cfg: cfg, tables: make(map[string]*ebpf.Map),
		hosts: make(map[addrKey]hostValue), pairs: make(map[pairKey]uint32), extra: make(map[string]any),
		ports: make(map[string]*portFilter), names: make([]string, 1, 16)}
	var pinErr error
	if f.dir != "" {
		if err := makePins(f.dir); err != nil {
			pinErr = fmt.Errorf("%w: %w", ErrNoPins, err)
			f.dir = ""
		}
	}
	if err := f.open(); err != nil {
		f.Close()
		return nil, err
	}
	return f, pinErr
}

// ErrNoPins says that the filter ends with its process.
var ErrNoPins = errors.New("the filter will not outlive the daemon")

// open takes over pinned tables if all are as this program has them, else it makes new ones with
// the rows of the old.
func (f *Filter) open() error {
	whole := f.dir != ""
	for name, spec := range f.spec.Maps {
		if !pinned(name) {
			continue
		}
		if m := f.pinnedTable(name); m != nil {
			if err := spec.Compatible(m); err != nil {
				whole = false
			}
			f.tables[name] = m
		} else {
			whole = false
		}
	}
	f.adopt()
	if whole {
		return f.makeTables(f.tables)
	}
	old := f.tables
	f.tables = make(map[string]*ebpf.Map)
	err := f.makeTables(nil)
	for _, m := range old {
		m.Close()
	}
	if err != nil {
		return err
	}
	return f.refill()
}

// pinned reports whether a table outlives the process; those of the compiler do not.
func pinned(name string) bool { return name[0] != '.' }

func (f *Filter) pinnedTable(name string) *ebpf.Map {
	if f.dir == "" {
		return nil
	}
	m, err := ebpf.LoadPinnedMap(filepath.Join(f.dir, name), nil)
	if err != nil {
		return nil
	}
	return m
}

// adopt reads the rows of before, if they are of this layout.
func (f *Filter) adopt() {
	var set settingsValue
	if m := f.tables[tableSettings]; m == nil || m.Lookup(uint32(0), &set) != nil || set.Version != layout {
		return
	}
	hosts, pairs, ports := f.tables[tableHosts], f.tables[tablePairs], f.tables[tablePorts]
	if hosts == nil || pairs == nil || ports == nil || ports.MaxEntries() != maxPorts+1 {
		return
	}
	f.suspended = set.Mode == modeOff
	for n := uint32(1); n <= maxPorts; n++ {
		var v portValue
		if ports.Lookup(n, &v) != nil || v.Name[0] == 0 {
			continue
		}
		for len(f.names) <= int(n) {
			f.names = append(f.names, "")
		}
		f.names[n] = v.name()
	}
	var a addrKey
	var h hostValue
	for it := hosts.Iterate(); it.Next(&a, &h); {
		f.hosts[a] = h
		f.adopted = append(f.adopted, hardzone.Host{Addr: addrOf(a), Number: h.Number, Zone: h.Zone, Ports: f.portNames(h.Ports[:])})
	}
	var k pairKey
	var zone uint32
	for it := pairs.Iterate(); it.Next(&k, &zone); {
		f.pairs[k] = zone
		f.keys = append(f.keys, hardzone.PairKey(k))
	}
}

// makeTables makes the tables that are not given, and pins them.
func (f *Filter) makeTables(given map[string]*ebpf.Map) error {
	for name, spec := range f.spec.Maps {
		if !pinned(name) || given[name] != nil {
			continue
		}
		m, err := ebpf.NewMap(spec)
		if err != nil {
			return fmt.Errorf("table %s of the filter: %w", name, err)
		}
		f.tables[name] = m
		if f.dir == "" {
			continue
		}
		at := filepath.Join(f.dir, name)
		_ = os.Remove(at)
		if err := m.Pin(at); err != nil {
			return fmt.Errorf("pin table %s of the filter: %w", name, err)
		}
	}
	return nil
}

// refill brings the rows of before into new tables.
func (f *Filter) refill() error {
	set := settingsOf(f.cfg, !f.suspended)
	errs := []error{f.tables[tableSettings].Put(uint32(0), &set)}
	for n, name := range f.names {
		if name != "" {
			errs = append(errs, f.namePort(uint32(n), hardzone.Port{Name: name}))
		}
	}
	for a, v := range f.hosts {
		errs = append(errs, f.tables[tableHosts].Put(a, &v))
	}
	for k, zone := range f.pairs {
		errs = append(errs, f.tables[tablePairs].Put(k, zone))
	}
	return errors.Join(errs...)
}

// Adopted implements hardzone.Dataplane.
func (f *Filter) Adopted() ([]hardzone.Host, []hardzone.PairKey, bool) {
	return f.adopted, f.keys, f.suspended
}

// Configure implements hardzone.Dataplane.
func (f *Filter) Configure(cfg hardzone.Config, bounds []hardzone.Bound) error {
	f.cfg, f.attach = cfg, cfg.Attach
	permits, prefixes, bound := make(map[permitKey]uint32), make(map[prefixKey]uint32), make(map[prefixKey]boundValue)
	for _, p := range cfg.Permit {
		if p.Prefix.IsValid() {
			prefixes[prefixOf(p.Prefix)] = 1
		} else {
			permits[permitOf(p)] = 1
		}
	}
	var errs []error
	for _, b := range bounds {
		var v boundValue
		n := 0
		for _, name := range b.Ports {
			number, err := f.number(name)
			if err == nil && n == len(v.Ports) {
				err = fmt.Errorf("address %s is bound to more than %d ports: the filter takes the first of them", b.Prefix, n)
			}
			if err != nil {
				errs = append(errs, err)
				break
			}
			v.Ports[n] = number
			n++
		}
		bound[prefixOf(b.Prefix)] = v
	}
	set := settingsOf(cfg, !f.suspended)
	errs = append(errs, replace(f.tables[tablePermits], permits), replace(f.tables[tablePrefixes], prefixes), replace(f.tables[tableBounds], bound),
		f.tables[tableSettings].Put(uint32(0), &set))
	return errors.Join(errs...)
}

// replace makes the rows of a small table those of want: what is new before what goes.
func replace[K, V comparable](m *ebpf.Map, want map[K]V) error {
	have := make(map[K]V)
	var k K
	var v V
	it := m.Iterate()
	for it.Next(&k, &v) {
		have[k] = v
	}
	errs := []error{it.Err()}
	for k, v := range want {
		if was, there := have[k]; !there || was != v {
			errs = append(errs, m.Put(&k, &v))
		}
	}
	for k := range have {
		if _, wanted := want[k]; !wanted {
			errs = append(errs, m.Delete(&k))
		}
	}
	return errors.Join(errs...)
}

// Apply implements hardzone.Dataplane.
func (f *Filter) Apply(steps []hardzone.Step) error {
	var errs []error
	for len(steps) > 0 {
		n := 1
		for n < len(steps) && steps[n].Op == steps[0].Op {
			n++
		}
		errs = append(errs, f.apply(steps[:n]))
		steps = steps[n:]
	}
	return errors.Join(errs...)
}

// batch is from how many rows on they are written at once.
const batch = 16

// apply makes steps of one kind.
func (f *Filter) apply(steps []hardzone.Step) error {
	var errs []error
	if steps[0].Op == hardzone.PutPair && len(steps) >= batch {
		keys, zones := make([]pairKey, len(steps)), make([]uint32, len(steps))
		for i := range steps {
			keys[i], zones[i] = pairKey(steps[i].Pair.Key), f.counter(steps[i].Pair.Zone)
			f.pairs[keys[i]] = zones[i]
		}
		if _, err := f.tables[tablePairs].BatchUpdate(keys, zones, nil); !errors.Is(err, ebpf.ErrNotSupported) {
			return err
		}
	}
	for i := range steps {
		if err := f.step(&steps[i]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", steps[i].Op, err))
		}
	}
	return errors.Join(errs...)
}

// counter is the counter of a zone; too large ones share the first.
func (f *Filter) counter(zone uint32) uint32 {
	if zone > hardzone.ZoneCounters {
		return 0
	}
	return zone
}

func (f *Filter) step(s *hardzone.Step) error {
	switch s.Op {
	case hardzone.ClearZone:
		zeros := make([]zoneCountsValue, ebpf.MustPossibleCPU())
		return f.tables[tableZoneCounts].Put(s.Pair.Zone, zeros)
	case hardzone.PutPair:
		k, zone := pairKey(s.Pair.Key), f.counter(s.Pair.Zone)
		f.pairs[k] = zone
		return f.tables[tablePairs].Put(&k, &zone)
	case hardzone.PutHost:
		k, v := keyOf(s.Host.Addr), hostValue{Number: s.Host.Number, Zone: f.counter(s.Host.Zone)}
		for i, name := range s.Host.Ports[:min(len(s.Host.Ports), len(v.Ports))] {
			n, err := f.number(name)
			if err != nil {
				return err
			}
			v.Ports[i] = n
		}
		f.hosts[k] = v
		return f.tables[tableHosts].Put(&k, &v)
	case hardzone.DeleteHost:
		k := keyOf(s.Host.Addr)
		delete(f.hosts, k)
		return gone(f.tables[tableHosts].Delete(&k))
	case hardzone.DeletePair:
		k := pairKey(s.Pair.Key)
		delete(f.pairs, k)
		return gone(f.tables[tablePairs].Delete(&k))
	}
	return fmt.Errorf("unknown step %d", s.Op)
}

// gone is the error of a deletion: what is not there is deleted.
func gone(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// Suspend implements hardzone.Dataplane.
func (f *Filter) Suspend(on bool) error {
	f.suspended = on
	set := settingsOf(f.cfg, !on)
	return f.tables[tableSettings].Put(uint32(0), &set)
}

// Look implements hardzone.Dataplane.
func (f *Filter) Look(a, b netip.Addr) (s hardzone.Seen, err error) {
	var set settingsValue
	var rows [2]hostValue
	if err := f.tables[tableSettings].Lookup(uint32(0), &set); err != nil {
		return s, err
	}
	s.Suspended = set.Mode == modeOff
	for i, addr := range [...]netip.Addr{a, b} {
		if err := gone(f.tables[tableHosts].Lookup(keyOf(addr), &rows[i])); err != nil {
			return s, err
		}
	}
	s.A, s.B, s.APorts, s.BPorts = rows[0].Number, rows[1].Number, f.portNames(rows[0].Ports[:]), f.portNames(rows[1].Ports[:])
	if s.A == 0 || s.B == 0 {
		return s, nil
	}
	var zone uint32
	switch err := f.tables[tablePairs].Lookup(pairKey(hardzone.KeyOf(s.A, s.B)), &zone); {
	case err == nil:
		s.Open = true
	case gone(err) != nil:
		return s, err
	}
	return s, nil
}

// Close implements hardzone.Dataplane: what is pinned stays in force.
func (f *Filter) Close() error {
	for _, p := range f.ports {
		p.close()
	}
	for _, m := range f.tables {
		m.Close()
	}
	clear(f.ports)
	clear(f.tables)
	return nil
}

// Remove implements hardzone.Dataplane.
func (f *Filter) Remove() error {
	errs := []error{}
	for _, name := range slices.Sorted(maps.Keys(f.ports)) {
		errs = append(errs, f.detach(name))
	}
	if f.dir != "" {
		errs = append(errs, RemovePins(f.dir))
	}
	return errors.Join(append(errs, f.Close())...)
}
