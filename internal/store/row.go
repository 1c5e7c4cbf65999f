package store

import (
	"bytes"
	"cmp"
)

// Table names a kind of rows.
type Table string

// Row is what is true of a key. A nil Value says that nothing is.
type Row struct {
	Table Table
	Key   []byte
	Value []byte
}

// Sink takes rows. None of its methods waits for a disk; the bytes are copied.
type Sink interface {
	Put(t Table, key, value []byte)
	Delete(t Table, key []byte)
	Flush() // what was put may be written
}

// Limits of one row, in bytes.
const (
	MaxTable = 32
	MaxKey   = 1 << 12
	MaxValue = 1 << 20
)

// Compare orders rows by table and key.
func Compare(a, b Row) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), bytes.Compare(a.Key, b.Key))
}

// id names a key of a table in a map.
type id struct {
	table Table
	key   string
}

func (r *Row) id() id { return id{r.Table, string(r.Key)} }

// size is what a row takes in a file, in bytes.
func (r *Row) size() int64 { return int64(rowHead + len(r.Table) + len(r.Key) + len(r.Value)) }
