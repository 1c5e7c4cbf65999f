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

	"github.com/openinof/inof/fabric/linux/bpfpins"
	"github.com/openinof/inof/hardzone"
)

// Filter is the enforcement of one network namespace: that of the thread that calls SetPorts.
type Filter struct {
	dir    string // of the pins; empty: there are none
	spec   *ebpf.CollectionSpec
	tables map[string]*ebpf.Map
	attach hardzone.Attach

	rows  rows // as they should be
	ports map[string]*portFilter
	names []string // of ports by number

	adopted   []hardzone.Host
	keys      []hardzone.PairKey
	suspended bool
	edition   uint32 // of the tables
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
		rows: newRows(), ports: make(map[string]*portFilter), names: make([]string, 1, 16)}
	var pinErr error
	if f.dir != "" {
		if err := bpfpins.Make(f.dir); err != nil {
			pinErr = fmt.Errorf("%w: %w", ErrNoPins, err)
			f.dir = ""
		}
	}
	if err := f.open(); err != nil {
		f.Close()
		if errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("this process may not load eBPF programs; it needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN (docs/operations.md, hard zoning): %w", err)
		}
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
	ports := f.tables[tablePorts]
	for _, name := range []string{tablePlaces4, tablePlaces6, tableBlocks4, tableBlocks6, tableTiles, tableZones} {
		if f.tables[name] == nil {
			return
		}
	}
	if ports == nil || ports.MaxEntries() != maxPorts+1 {
		return
	}
	f.suspended, f.edition = set.Mode == modeOff, set.Edition
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
	_ = f.rows.adopt(f.tables) // what cannot be read an audit puts right
	for h, place := range f.rows.all() {
		h.Zone, h.Ports = place.Zone, f.portNames(place.Ports[:])
		f.adopted = append(f.adopted, h)
	}
	for k, v := range f.rows.tiles.want {
		pairsOf(k, v, func(p pairKey) { f.keys = append(f.keys, hardzone.PairKey(p)) })
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
	errs := []error{f.renewEdition()}
	for n, name := range f.names {
		if name != "" {
			errs = append(errs, f.namePort(uint32(n), hardzone.Port{Name: name}))
		}
	}
	f.rows.again()
	errs = append(errs, f.rows.flush(f.tables), f.renewEdition())
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
	errs = append(errs, replace(f.tables[tablePermits], permits), replace(f.tables[tablePrefixes], prefixes), replace(f.tables[tableBounds], bound), f.renewEdition())
	return errors.Join(errs...)
}

// renewEdition writes the settings, with another edition: what the program remembers of rows
// that were there before is good no longer. It follows each change of rows.
func (f *Filter) renewEdition() error {
	f.edition++
	set := settingsOf(f.cfg, !f.suspended)
	set.Edition = f.edition
	if err := f.tables[tableSettings].Put(uint32(0), &set); err != nil {
		return fmt.Errorf("settings of the filter: %w", err)
	}
	return nil
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

// apply makes steps of one kind.
func (f *Filter) apply(steps []hardzone.Step) error {
	var errs []error
	for i := range steps {
		if err := f.step(&steps[i]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", steps[i].Op, err))
		}
	}
	if err := errors.Join(f.rows.flush(f.tables), f.renewEdition()); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", steps[0].Op, err))
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

// step changes what should be; flush brings it into the kernel.
func (f *Filter) step(s *hardzone.Step) error {
	switch s.Op {
	case hardzone.ClearZone:
		zeros := make([]zoneCountsValue, ebpf.MustPossibleCPU())
		return f.tables[tableZoneCounts].Put(s.Pair.Zone, zeros)
	case hardzone.PutPair:
		f.rows.putPair(pairKey(s.Pair.Key), f.counter(s.Pair.Zone))
	case hardzone.DeletePair:
		f.rows.deletePair(pairKey(s.Pair.Key))
	case hardzone.PutHost:
		v := placeValue{Number: s.Host.Number, Zone: f.counter(s.Host.Zone)}
		for i, name := range s.Host.Ports[:min(len(s.Host.Ports), len(v.Ports))] {
			n, err := f.number(name)
			if err != nil {
				return err
			}
			v.Ports[i] = n
		}
		f.rows.setNumber(s.Host.Addr, v.Number)
		f.rows.setPlace(s.Host.Addr, v)
	case hardzone.DeleteHost:
		f.rows.setPlace(s.Host.Addr, placeValue{})
		f.rows.setNumber(s.Host.Addr, 0)
	default:
		return fmt.Errorf("unknown step %d", s.Op)
	}
	return nil
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
	return f.renewEdition()
}

// Look implements hardzone.Dataplane.
func (f *Filter) Look(a, b netip.Addr) (s hardzone.Seen, err error) {
	var set settingsValue
	if err := f.tables[tableSettings].Lookup(uint32(0), &set); err != nil {
		return s, err
	}
	s.Suspended = set.Mode == modeOff
	for _, end := range [...]struct {
		addr   netip.Addr
		number *uint32
		ports  *[]string
	}{{a, &s.A, &s.APorts}, {b, &s.B, &s.BPorts}} {
		number, place, err := f.host(end.addr.Unmap())
		if err != nil {
			return s, err
		}
		*end.number, *end.ports = number, f.portNames(place.Ports[:])
	}
	if s.A == 0 || s.B == 0 {
		return s, nil
	}
	var tile tileValue
	k, word, bit := tileOf(pairKey(hardzone.KeyOf(s.A, s.B)))
	if err := gone(f.tables[tableTiles].Lookup(k, &tile)); err != nil {
		return s, err
	}
	s.Open = tile.Bits[word]&bit != 0
	return s, nil
}

// host reads the rows of an address.
func (f *Filter) host(a netip.Addr) (number uint32, place placeValue, err error) {
	var block blockValue
	var at int
	if a.Is4() {
		var k addr4Key
		k, at = block4(a)
		err = errors.Join(gone(f.tables[tableBlocks4].Lookup(k, &block)), gone(f.tables[tablePlaces4].Lookup(addr4Key(a.As4()), &place)))
	} else {
		var k addrKey
		k, at = block6(a)
		err = errors.Join(gone(f.tables[tableBlocks6].Lookup(k, &block)), gone(f.tables[tablePlaces6].Lookup(addrKey(a.As16()), &place)))
	}
	return block.Numbers[at], place, err
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
		errs = append(errs, bpfpins.Remove(f.dir))
	}
	return errors.Join(append(errs, f.Close())...)
}
