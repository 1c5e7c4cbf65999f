package keep

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/openinof/inof/internal/store"
)

// Rows, tables and what takes them are those of the store into which all this moves.
type (
	Table   = store.Table
	Row     = store.Row
	Sink    = store.Sink
	Problem = store.Problem
)

// Limits of one row, in bytes.
const (
	MaxTable = store.MaxTable
	MaxKey   = store.MaxKey
	MaxValue = store.MaxValue
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumLen is the length of the checksum before each value, in bytes.
const sumLen = 4

// Sentinels of what is wrong with a row.
var (
	ErrChecksum = errors.New("the checksum is wrong")
	ErrShort    = errors.New("too short to be a row")
)

// sum is the checksum of a row: of its table, key and value, with the lengths between them.
func sum(seed uint32, t Table, key, value []byte) uint32 {
	var n [4]byte
	binary.BigEndian.PutUint16(n[:], uint16(len(t)))
	binary.BigEndian.PutUint16(n[2:], uint16(len(key)))
	s := crc32.Update(seed, castagnoli, n[:])
	s = crc32.Update(s, castagnoli, []byte(t))
	s = crc32.Update(s, castagnoli, key)
	return crc32.Update(s, castagnoli, value)
}

// seal gives a value with its checksum, as the database has it.
func seal(r *Row) []byte {
	b := make([]byte, sumLen, sumLen+len(r.Value))
	binary.BigEndian.PutUint32(b, sum(0, r.Table, r.Key, r.Value))
	return append(b, r.Value...)
}

// open is the inverse of seal.
func open(t Table, key, sealed []byte) (Row, error) {
	if len(sealed) < sumLen {
		return Row{}, fmt.Errorf("%d bytes: %w", len(sealed), ErrShort)
	}
	value := sealed[sumLen:]
	if got, want := sum(0, t, key, value), binary.BigEndian.Uint32(sealed); got != want {
		return Row{}, fmt.Errorf("%08x is not %08x: %w", got, want, ErrChecksum)
	}
	return Row{Table: t, Key: bytes.Clone(key), Value: append([]byte{}, value...)}, nil
}

// latest gives the last row of each key, sorted by table and key.
func latest(rows []Row) []Row {
	slices.SortStableFunc(rows, compare)
	out := rows[:0]
	for i := range rows {
		if i+1 == len(rows) || compare(rows[i], rows[i+1]) != 0 {
			out = append(out, rows[i])
		}
	}
	clear(rows[len(out):])
	return out
}

func compare(a, b Row) int {
	if a.Table != b.Table {
		if a.Table < b.Table {
			return -1
		}
		return 1
	}
	return bytes.Compare(a.Key, b.Key)
}
