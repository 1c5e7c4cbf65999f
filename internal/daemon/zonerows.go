package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/zone/change"
)

// tableZones has the versions of the zones. ID: number of the version and of the part, 8 and 2
// octets; part 0 begins with how many parts there are. Under pendingKey is what waits
// for a confirmation.
const tableZones keep.Table = "zones"

var pendingKey = []byte("pending")

// zonePart is how much of a version one row holds, in bytes.
const zonePart = 256 << 10

// zoneRows keeps the versions of the zones over a restart.
type zoneRows struct {
	keeper *keep.Keeper // nil: nothing is kept, in tests
	parts  map[uint64]int
}

// readZoneRows gives the versions that were kept, oldest first; those that are damaged are left
// out.
func readZoneRows(rows []keep.Row) (versions []change.Version, pending *change.Pending, parts map[uint64]int) {
	texts, wanted := map[uint64]map[uint16][]byte{}, map[uint64]int{}
	parts = map[uint64]int{}
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Table != tableZones:
		case bytes.Equal(r.Key, pendingKey):
			var p change.Pending
			if json.Unmarshal(r.Value, &p) == nil {
				pending = &p
			}
		case len(r.Key) == 10:
			number, part, text := binary.BigEndian.Uint64(r.Key), binary.BigEndian.Uint16(r.Key[8:]), r.Value
			if part == 0 && len(text) >= 2 {
				wanted[number], text = int(binary.BigEndian.Uint16(text)), text[2:]
			}
			if texts[number] == nil {
				texts[number] = map[uint16][]byte{}
			}
			texts[number][part] = text
			parts[number] = max(parts[number], int(part)+1)
		}
	}
	for number, list := range texts {
		var whole []byte
		for part := range list {
			if int(part) >= wanted[number] {
				delete(list, part)
			}
		}
		for i := range len(list) {
			whole = append(whole, list[uint16(i)]...)
		}
		var v change.Version
		if len(list) == wanted[number] && json.Unmarshal(whole, &v) == nil && v.Number == number {
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, func(a, b change.Version) int { return cmp.Compare(a.Number, b.Number) })
	return versions, pending, parts
}

// save writes what differs between two states of the Book and waits for the disk; was may be nil.
func (z *zoneRows) save(ctx context.Context, was, is *change.Book) error {
	if z.keeper == nil {
		return nil
	}
	var before []change.Version
	var waited *change.Pending
	if was != nil {
		before, waited = was.Versions(), was.Pending()
	}
	kept := map[uint64]bool{}
	for _, v := range is.Versions() {
		kept[v.Number] = true
		i := slices.IndexFunc(before, func(o change.Version) bool { return o.Number == v.Number })
		if i < 0 || before[i].Base != v.Base {
			z.put(v)
		}
	}
	z.dropOthers(kept)
	if p := is.Pending(); p != nil {
		b, _ := json.Marshal(p) // nothing in it can fail
		z.keeper.Later(func() keep.Row { return keep.Row{Table: tableZones, Key: pendingKey, Value: b} })
	} else if waited != nil || was == nil {
		z.keeper.Later(func() keep.Row { return keep.Row{Table: tableZones, Key: pendingKey} })
	}
	return z.keeper.Wait(ctx)
}

// forget removes what was kept and is not in the Book, and keeps what is new in it.
func (z *zoneRows) forget(b *change.Book) {
	kept := map[uint64]bool{}
	for _, v := range b.Versions() {
		if kept[v.Number] = true; z.parts[v.Number] == 0 {
			z.put(v)
		}
	}
	z.dropOthers(kept)
	if b.Pending() == nil {
		z.keeper.Later(func() keep.Row { return keep.Row{Table: tableZones, Key: pendingKey} })
	}
}

func zoneKey(number uint64, part int) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(nil, number), uint16(part))
}

func (z *zoneRows) put(v change.Version) {
	text, err := json.Marshal(v)
	if err != nil || len(text) > zonePart*(1<<16-1) {
		return // nothing in it can fail, and no zone file is as long
	}
	n := max(1, (len(text)+zonePart-1)/zonePart)
	z.drop(v.Number, n)
	for i, part := range slices.Collect(slices.Chunk(text, zonePart)) {
		if i == 0 {
			part = append(binary.BigEndian.AppendUint16(nil, uint16(n)), part...)
		}
		z.keeper.Later(func() keep.Row { return keep.Row{Table: tableZones, Key: zoneKey(v.Number, i), Value: part} })
	}
	if z.parts == nil {
		z.parts = map[uint64]int{}
	}
	z.parts[v.Number] = n
}

func (z *zoneRows) dropOthers(kept map[uint64]bool) {
	for number := range z.parts {
		if !kept[number] {
			z.drop(number, 0)
		}
	}
}

// drop removes the parts of a version from one on.
func (z *zoneRows) drop(number uint64, from int) {
	for i := from; i < z.parts[number]; i++ {
		z.keeper.Later(func() keep.Row { return keep.Row{Table: tableZones, Key: zoneKey(number, i)} })
	}
	if from == 0 {
		delete(z.parts, number)
	}
}
