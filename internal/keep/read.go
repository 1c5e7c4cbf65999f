package keep

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
)

// This file reads a bbolt file (its format 2) without trusting it: every number is checked
// before it is used, every page is visited at most once. What it finds sound, bbolt can map
// and follow without harm. The layout is that of bbolt's internal/common:
//
//	page:   id(8) flags(2) count(2) overflow(4), then elements; little endian
//	meta:   magic(4) version(4) pagesize(4) flags(4) root(8) sequence(8) freelist(8) pages(8) txid(8) checksum(8)
//	branch: pos(4) ksize(4) page(8), pos counted from the element's own start
//	leaf:   flags(4) pos(4) ksize(4) vsize(4)

const (
	pageHeader  = 16
	elementSize = 16
	metaSize    = 64
	boltMagic   = 0xED0CDAED
	boltVersion = 2
	noFreelist  = ^uint64(0)

	flagBranch, flagLeaf, flagFreelist = 1, 2, 16

	bucketHeader = 16 // root(8) sequence(8)
	leafBucket   = 1  // flag of a leaf element that is a bucket

	minPage, maxPage = 512, 1 << 16
	maxDepth         = 16 // of a tree: a page has two children at least
)

// ErrDamaged is wrapped by everything that makes a file unfit to be opened.
var ErrDamaged = errors.New("damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// meta is what a meta page says.
type meta struct {
	pageSize             int
	root, freelist, high uint64 // high: the first page that is not used
	txid                 uint64
}

// parseMeta reads the meta page that begins at b.
func parseMeta(b []byte) (m meta, err error) {
	if len(b) < pageHeader+metaSize {
		return m, damaged("a meta page has %d bytes", len(b))
	}
	le, p := binary.LittleEndian, b[pageHeader:]
	if le.Uint32(p) != boltMagic {
		return m, damaged("no magic number in a meta page")
	}
	if v := le.Uint32(p[4:]); v != boltVersion {
		return m, damaged("file format %d, not %d", v, boltVersion)
	}
	h := fnv.New64a()
	_, _ = h.Write(p[:metaSize-8])
	if h.Sum64() != le.Uint64(p[metaSize-8:]) {
		return m, damaged("the checksum of a meta page is wrong")
	}
	m = meta{pageSize: int(le.Uint32(p[8:])), root: le.Uint64(p[16:]), freelist: le.Uint64(p[32:]), high: le.Uint64(p[40:]), txid: le.Uint64(p[48:])}
	if m.pageSize < minPage || m.pageSize > maxPage || m.pageSize&(m.pageSize-1) != 0 {
		return m, damaged("pages of %d bytes", m.pageSize)
	}
	return m, nil
}

// newest gives the meta page that bbolt takes: of the sound ones the later. Where the first is
// not sound, bbolt looks for the second at every size a page can have; what it would find
// at a place that is not its own is taken for damage here.
func newest(b []byte) (meta, error) {
	first, err := parseMeta(b)
	if err == nil {
		if len(b) < 2*first.pageSize {
			return first, damaged("%d bytes are less than two pages", len(b))
		}
		second, err2 := parseMeta(b[first.pageSize:])
		switch {
		case err2 != nil || second.txid <= first.txid:
			return first, nil
		case second.pageSize != first.pageSize:
			return second, damaged("pages of %d and of %d bytes", first.pageSize, second.pageSize)
		}
		return second, nil
	}
	for size := 1024; size <= 1024<<14 && size < len(b)-1024; size *= 2 {
		second, err2 := parseMeta(b[size:])
		switch {
		case err2 != nil:
		case second.pageSize != size:
			return second, damaged("pages of %d bytes begin at byte %d", second.pageSize, size)
		default:
			return second, nil
		}
	}
	return first, err
}

// reader walks one file.
type reader struct {
	b      []byte
	m      meta
	seen   []bool // pages that were visited
	row    func(t Table, key, sealed []byte)
	faults []error // what is wrong with the file; the first maxFaults
	count  int     // of all
}

const maxFaults = 4

func (r *reader) fault(err error) {
	if r.count++; len(r.faults) < maxFaults {
		r.faults = append(r.faults, err)
	}
}

// read calls row for every row of a file, sound or not. An error says that the file must not
// be opened by bbolt; the rows given are those that could be found nevertheless. The bytes
// given to row are those of b.
func read(b []byte, row func(t Table, key, sealed []byte)) error {
	m, err := newest(b)
	if err != nil {
		return err
	}
	if m.high < 2 || m.root < 2 {
		return damaged("a file of %d pages with its root at page %d", m.high, m.root)
	}
	if m.high > uint64(len(b)/m.pageSize) {
		err = damaged("%d bytes are not the %d pages of %d bytes that it should have", len(b), m.high, m.pageSize)
		m.high = uint64(len(b) / m.pageSize)
	}
	r := &reader{b: b, m: m, seen: make([]bool, m.high), row: row}
	if err != nil {
		r.fault(err)
	}
	r.tree(m.root, "", nil, nil, maxDepth)
	r.freelist()
	if r.count > len(r.faults) {
		r.fault(damaged("%d more faults", r.count-len(r.faults)))
	}
	return errors.Join(r.faults...)
}

// page gives the bytes of a page with its overflow, checked and marked as visited.
func (r *reader) page(id uint64) (p []byte, flags uint16, count int, ok bool) {
	if id < 2 || id >= r.m.high {
		r.fault(damaged("page %d of %d is referred to", id, r.m.high))
		return nil, 0, 0, false
	}
	p = r.b[id*uint64(r.m.pageSize):]
	le := binary.LittleEndian
	if self := le.Uint64(p); self != id {
		r.fault(damaged("page %d says that it is page %d", id, self))
		return nil, 0, 0, false
	}
	flags, count = le.Uint16(p[8:]), int(le.Uint16(p[10:]))
	pages := uint64(le.Uint32(p[12:])) + 1
	if id+pages > r.m.high {
		r.fault(damaged("page %d claims to go on for %d pages", id, pages))
		return nil, 0, 0, false
	}
	for i := id; i < id+pages; i++ {
		if r.seen[i] {
			r.fault(damaged("page %d is referred to twice", i))
			return nil, 0, 0, false
		}
		r.seen[i] = true
	}
	return p[:pages*uint64(r.m.pageSize)], flags, count, true
}

// tree walks the pages below one; keys must lie from low on and below high (nil: any).
func (r *reader) tree(id uint64, t Table, low, high []byte, depth int) {
	p, flags, count, ok := r.page(id)
	switch {
	case !ok:
	case depth == 0:
		r.fault(damaged("page %d lies deeper than any can", id))
	case flags == flagLeaf:
		r.leaf(p, fmt.Sprintf("page %d", id), count, t, low, high, depth)
	case flags == flagBranch:
		r.branch(p, id, count, t, low, high, depth)
	default:
		r.fault(damaged("page %d has flags %#x", id, flags))
	}
}

// part gives the bytes at pos from the element at e.
func part(p []byte, e int, pos, n uint32) ([]byte, bool) {
	from := uint64(e) + uint64(pos)
	to := from + uint64(n)
	if to > uint64(len(p)) {
		return nil, false
	}
	return p[from:to], true
}

// order checks that keys ascend and lie within the range of their page. The first key of a page is
// the one by which the page above refers to it: bbolt finds the entry there again by it.
func order(key, before, low, high []byte, first bool) bool {
	if first {
		return len(key) > 0 && (low == nil || bytes.Equal(low, key)) && (high == nil || bytes.Compare(key, high) < 0)
	}
	return bytes.Compare(before, key) < 0 && (high == nil || bytes.Compare(key, high) < 0)
}

type child struct {
	key []byte
	id  uint64
}

func (r *reader) branch(p []byte, id uint64, count int, t Table, low, high []byte, depth int) {
	if count == 0 || pageHeader+count*elementSize > len(p) {
		r.fault(damaged("branch page %d has %d entries", id, count))
		return
	}
	children := make([]child, 0, count)
	for i := range count {
		e := pageHeader + i*elementSize
		le := binary.LittleEndian
		key, ok := part(p, e, le.Uint32(p[e:]), le.Uint32(p[e+4:]))
		var before []byte
		if len(children) > 0 {
			before = children[len(children)-1].key
		}
		if !ok || !order(key, before, low, high, len(children) == 0) {
			r.fault(damaged("entry %d of branch page %d is out of order or out of the page", i, id))
			continue
		}
		children = append(children, child{key, le.Uint64(p[e+8:])})
	}
	for i, c := range children {
		end := high
		if i+1 < len(children) {
			end = children[i+1].key
		}
		r.tree(c.id, t, c.key, end, depth-1)
	}
}

func (r *reader) leaf(p []byte, where string, count int, t Table, low, high []byte, depth int) {
	if pageHeader+count*elementSize > len(p) || count == 0 && low != nil {
		r.fault(damaged("leaf %s has %d entries", where, count))
		return
	}
	var before []byte
	for i := range count {
		e := pageHeader + i*elementSize
		le := binary.LittleEndian
		flags, pos, ksize, vsize := le.Uint32(p[e:]), le.Uint32(p[e+4:]), le.Uint32(p[e+8:]), le.Uint32(p[e+12:])
		key, ok1 := part(p, e, pos, ksize)
		value, ok2 := part(p, e, pos+ksize, vsize)
		if !ok1 || !ok2 || pos+ksize < pos || !order(key, before, low, high, before == nil) {
			r.fault(damaged("entry %d of leaf %s is out of order or out of the page", i, where))
			continue
		}
		before = key
		switch {
		case flags == leafBucket && t == "":
			r.bucket(Table(key), value, depth)
		case flags != 0 || t == "":
			r.fault(damaged("entry %d of leaf %s has flags %#x", i, where, flags))
		default:
			r.row(t, key, value)
		}
	}
}

// bucket walks a table, which may lie within the leaf entry itself.
func (r *reader) bucket(t Table, value []byte, depth int) {
	if len(value) < bucketHeader || t == "" || len(t) > MaxTable {
		r.fault(damaged("table %.32q has %d bytes", t, len(value)))
		return
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		r.tree(root, t, nil, nil, depth-1)
		return
	}
	p := value[bucketHeader:]
	if len(p) < pageHeader || binary.LittleEndian.Uint16(p[8:]) != flagLeaf {
		r.fault(damaged("table %q has no page", t))
		return
	}
	r.leaf(p, fmt.Sprintf("of table %q", t), int(binary.LittleEndian.Uint16(p[10:])), t, nil, nil, depth-1)
}

// freelist checks the list of free pages, if there is one: none of them may be in use.
func (r *reader) freelist() {
	if r.m.freelist == noFreelist {
		return
	}
	p, flags, count, ok := r.page(r.m.freelist)
	if !ok {
		return
	}
	if flags != flagFreelist || count == 0xffff || pageHeader+8*count > len(p) {
		r.fault(damaged("the list of free pages has flags %#x and %d entries", flags, count))
		return
	}
	ids := make([]uint64, count)
	for i := range ids {
		ids[i] = binary.LittleEndian.Uint64(p[pageHeader+8*i:])
		if ids[i] < 2 || ids[i] >= r.m.high || r.seen[ids[i]] {
			r.fault(damaged("page %d is listed as free", ids[i]))
			return
		}
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != count {
		r.fault(damaged("a page is listed as free twice"))
	}
}
