package zonefilter

import (
	"errors"
	"iter"
	"maps"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/openinof/inof/hardzone"
)

// table is one of the kernel's tables as it should be, and what of it has changed since the
// kernel was told.
type table[K, V comparable] struct {
	want  map[K]V
	dirty map[K]bool
}

func newTable[K, V comparable]() table[K, V] {
	return table[K, V]{want: make(map[K]V), dirty: make(map[K]bool)}
}

func (t *table[K, V]) put(k K, v V) {
	if was, there := t.want[k]; !there || was != v {
		t.want[k], t.dirty[k] = v, true
	}
}

func (t *table[K, V]) remove(k K) {
	if _, there := t.want[k]; there {
		delete(t.want, k)
		t.dirty[k] = true
	}
}

// set puts a row, or removes it.
func (t *table[K, V]) set(k K, v V, there bool) {
	if there {
		t.put(k, v)
	} else {
		t.remove(k)
	}
}

// batch is from how many rows on they are written at once.
const batch = 16

// flushPuts writes what is new or other.
func (t *table[K, V]) flushPuts(m *ebpf.Map) error {
	keys, values := make([]K, 0, len(t.dirty)), make([]V, 0, len(t.dirty))
	for k := range t.dirty {
		if v, there := t.want[k]; there {
			keys, values = append(keys, k), append(values, v)
			delete(t.dirty, k)
		}
	}
	if len(keys) >= batch {
		if _, err := m.BatchUpdate(keys, values, nil); !errors.Is(err, ebpf.ErrNotSupported) {
			return err
		}
	}
	var errs []error
	for i := range keys {
		errs = append(errs, m.Put(&keys[i], &values[i]))
	}
	return errors.Join(errs...)
}

// flushDeletes takes away what is to go.
func (t *table[K, V]) flushDeletes(m *ebpf.Map) error {
	var errs []error
	for k := range t.dirty {
		if _, there := t.want[k]; !there {
			errs = append(errs, gone(m.Delete(&k)))
			delete(t.dirty, k)
		}
	}
	return errors.Join(errs...)
}

// adopt takes the rows of the kernel for what should be.
func (t *table[K, V]) adopt(m *ebpf.Map) error {
	have, err := read[K, V](m, 0)
	t.want = have
	return err
}

// read gives all rows of a table.
func read[K, V comparable](m *ebpf.Map, size int) (map[K]V, error) {
	have := make(map[K]V, size)
	keys, values := make([]K, 4096), make([]V, 4096)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		for i := range n {
			have[keys[i]] = values[i]
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return have, nil
		}
		if err != nil {
			return have, err
		}
	}
}

// rows are the tables of hosts and pairs, as the steps of package hardzone say them.
type rows struct {
	places4 table[addr4Key, placeValue]
	places6 table[addrKey, placeValue]
	blocks4 table[addr4Key, blockValue]
	blocks6 table[addrKey, blockValue]
	tiles   table[tileKey, tileValue]
	zones   table[pairKey, uint32]
	hosts   int
	pairs   int
}

func newRows() rows {
	return rows{places4: newTable[addr4Key, placeValue](), places6: newTable[addrKey, placeValue](), blocks4: newTable[addr4Key, blockValue](),
		blocks6: newTable[addrKey, blockValue](), tiles: newTable[tileKey, tileValue](), zones: newTable[pairKey, uint32]()}
}

// block4 gives the block of an address, and the place in it; block6 too.
func block4(a netip.Addr) (block addr4Key, at int) {
	block = a.As4()
	at = int(block[3] % blockSize)
	block[3] -= byte(at)
	return block, at
}

func block6(a netip.Addr) (block addrKey, at int) {
	block = a.As16()
	at = int(block[15] % blockSize)
	block[15] -= byte(at)
	return block, at
}

// setPlace says from where an address may send; a place without a port: from nowhere here.
func (r *rows) setPlace(a netip.Addr, v placeValue) {
	if a.Is4() {
		r.places4.set(a.As4(), v, v.Ports[0] != 0)
	} else {
		r.places6.set(a.As16(), v, v.Ports[0] != 0)
	}
}

// setNumber gives an address its number; 0: none.
func (r *rows) setNumber(a netip.Addr, number uint32) {
	if a.Is4() {
		k, at := block4(a)
		v := r.blocks4.want[k]
		r.hosts += v.set(at, number)
		r.blocks4.set(k, v, v != blockValue{})
	} else {
		k, at := block6(a)
		v := r.blocks6.want[k]
		r.hosts += v.set(at, number)
		r.blocks6.set(k, v, v != blockValue{})
	}
}

// set gives how many hosts the block has more than before.
func (v *blockValue) set(at int, number uint32) int {
	more := sign(number != 0) - sign(v.Numbers[at] != 0)
	v.Numbers[at] = number
	return more
}

// all gives the hosts of all blocks.
func (r *rows) all() iter.Seq2[hardzone.Host, placeValue] {
	return func(yield func(hardzone.Host, placeValue) bool) {
		for k, v := range r.blocks4.want {
			for i, n := range v.Numbers {
				a := k
				a[3] += byte(i)
				if n != 0 && !yield(hardzone.Host{Addr: netip.AddrFrom4(a), Number: n}, r.places4.want[a]) {
					return
				}
			}
		}
		for k, v := range r.blocks6.want {
			for i, n := range v.Numbers {
				a := k
				a[15] += byte(i)
				if n != 0 && !yield(hardzone.Host{Addr: netip.AddrFrom16(a), Number: n}, r.places6.want[a]) {
					return
				}
			}
		}
	}
}

func sign(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tileOf gives the tile of a pair, with the word and the bit in it.
func tileOf(k pairKey) (tile tileKey, word int, bit uint32) {
	n := k.Low%tileSize*tileSize + k.High%tileSize
	return tileKey{k.Low / tileSize, k.High / tileSize}, int(n / 32), 1 << (n % 32)
}

// pairsOf calls f with each pair of a tile.
func pairsOf(k tileKey, v tileValue, f func(pairKey)) {
	for n := range uint32(tileSize * tileSize) {
		if v.Bits[n/32]>>(n%32)&1 != 0 {
			f(pairKey{k.Low*tileSize + n/tileSize, k.High*tileSize + n%tileSize})
		}
	}
}

// putPair opens a pair, or has it counted for another zone.
func (r *rows) putPair(p pairKey, zone uint32) {
	k, word, bit := tileOf(p)
	v := r.tiles.want[k]
	others := v
	others.Bits[word] &^= bit
	switch {
	case others.Bits == (tileValue{}).Bits && v.Zone != mixed:
		v.Zone = zone
	case v.Zone != zone && v.Zone != mixed:
		pairsOf(k, others, func(o pairKey) { r.setZone(o, v.Zone) })
		v.Zone = mixed
		fallthrough
	case v.Zone == mixed:
		r.setZone(p, zone)
	}
	r.pairs += 1 - sign(v.Bits[word]&bit != 0)
	v.Bits[word] |= bit
	r.tiles.put(k, v)
}

// setZone gives a pair of a mixed tile its counter; what has no row is counted with all others.
func (r *rows) setZone(p pairKey, zone uint32) {
	_, there := r.zones.want[p]
	r.zones.set(p, zone, zone != 0 && (there || len(r.zones.want) < maxZoneRows))
}

// deletePair closes a pair.
func (r *rows) deletePair(p pairKey) {
	k, word, bit := tileOf(p)
	v := r.tiles.want[k]
	r.pairs -= sign(v.Bits[word]&bit != 0)
	v.Bits[word] &^= bit
	r.zones.remove(p)
	if v.Bits == (tileValue{}).Bits {
		r.tiles.remove(k)
		return
	}
	r.tiles.put(k, v)
}

// flush brings all that has changed into the kernel: what opens a pair before the hosts that
// need it, and what goes the other way round. A pair that stays open is in each version of its
// tile, and tiles are replaced as a whole.
func (r *rows) flush(m map[string]*ebpf.Map) error {
	return errors.Join(
		r.zones.flushPuts(m[tableZones]), r.tiles.flushPuts(m[tableTiles]),
		r.places4.flushPuts(m[tablePlaces4]), r.places6.flushPuts(m[tablePlaces6]), r.blocks4.flushPuts(m[tableBlocks4]), r.blocks6.flushPuts(m[tableBlocks6]),
		r.places4.flushDeletes(m[tablePlaces4]), r.places6.flushDeletes(m[tablePlaces6]), r.blocks4.flushDeletes(m[tableBlocks4]), r.blocks6.flushDeletes(m[tableBlocks6]),
		r.tiles.flushDeletes(m[tableTiles]), r.zones.flushDeletes(m[tableZones]))
}

// adopt takes over what the kernel has.
func (r *rows) adopt(m map[string]*ebpf.Map) error {
	err := errors.Join(r.places4.adopt(m[tablePlaces4]), r.places6.adopt(m[tablePlaces6]), r.blocks4.adopt(m[tableBlocks4]), r.blocks6.adopt(m[tableBlocks6]),
		r.tiles.adopt(m[tableTiles]), r.zones.adopt(m[tableZones]))
	for range r.all() {
		r.hosts++
	}
	for k, v := range r.tiles.want {
		pairsOf(k, v, func(pairKey) { r.pairs++ })
	}
	return err
}

// again has all rows written by the next flush: into new tables.
func (r *rows) again() {
	mark(r.places4)
	mark(r.places6)
	mark(r.blocks4)
	mark(r.blocks6)
	mark(r.tiles)
	mark(r.zones)
}

func mark[K, V comparable](t table[K, V]) {
	for k := range t.want {
		t.dirty[k] = true
	}
}

// lastZone is the largest counter in use.
func (r *rows) lastZone() (last uint32) {
	for _, v := range r.tiles.want {
		if v.Zone != mixed {
			last = max(last, v.Zone)
		}
	}
	for v := range maps.Values(r.zones.want) {
		last = max(last, v)
	}
	for _, v := range r.places4.want {
		last = max(last, v.Zone)
	}
	for _, v := range r.places6.want {
		last = max(last, v.Zone)
	}
	return last
}

// audit compares the kernel's tables with what should be, and repairs them.
func (r *rows) audit(m map[string]*ebpf.Map, out *hardzone.Audited) error {
	out.Hosts, out.Pairs = r.hosts, r.pairs
	return errors.Join(audit(m[tableZones], r.zones.want, out), audit(m[tableTiles], r.tiles.want, out),
		audit(m[tablePlaces4], r.places4.want, out), audit(m[tablePlaces6], r.places6.want, out),
		audit(m[tableBlocks4], r.blocks4.want, out), audit(m[tableBlocks6], r.blocks6.want, out))
}
