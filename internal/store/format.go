package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Format is the version of the files: of their layout, of the tables and of their rows. A file of
// an older one is read, one of a newer one is refused.
//
//	head: magic(8) format(2) salt(4) length of the owner(1) owner checksum of all this(4)
//	row:  mark(4) checksum of the rest(4) length of the rest(4) table length(1) key length(2) there is a value(1) table key value
const Format = 1

const (
	magic    = "inofstor"
	headLen  = 8 + 2 + 4 + 1 + 4 // without the owner
	maxOwner = 64
	rowHead  = 16
	rowFixed = 4 // of the rest of a row: the lengths, and whether there is a value
)

// mark begins each row. The checksum covers the salt of the file, so that no text within a value
// can pass for a row behind a damaged one.
var mark = []byte{0xd7, 'r', 'o', 'w'}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sentinels of what is wrong with what was kept.
var (
	ErrFormat   = errors.New("written by a newer version of the program")
	ErrOwner    = errors.New("it belongs to another device")
	ErrHead     = errors.New("it does not begin as a file of rows")
	ErrChecksum = errors.New("the checksum is wrong")
	ErrMissing  = errors.New("rows are missing at its end")
)

// endTable is the table of the last row of a snapshot: its key is how many came before.
const endTable = "end"

func appendHead(b []byte, owner string, salt uint32) []byte {
	from := len(b)
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint16(b, Format)
	b = binary.BigEndian.AppendUint32(b, salt)
	b = append(append(b, byte(len(owner))), owner...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[from:], castagnoli))
}

// parseHead returns the salt and the length of a head.
func parseHead(b []byte, owner string) (salt uint32, n int, err error) {
	if len(b) < headLen || string(b[:8]) != magic {
		return 0, 0, ErrHead
	}
	if f := binary.BigEndian.Uint16(b[8:]); f > Format { // its layout behind this is not known
		return 0, 0, fmt.Errorf("%w: its format is %d, this version reads up to %d", ErrFormat, f, Format)
	}
	end := headLen - 4 + int(b[14])
	if end+4 > len(b) || crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return 0, 0, fmt.Errorf("%w: its head: %w", ErrHead, ErrChecksum)
	}
	if is := string(b[15:end]); is != owner {
		return 0, 0, fmt.Errorf("%w: %s, this is %s", ErrOwner, is, owner)
	}
	return binary.BigEndian.Uint32(b[10:]), end + 4, nil
}

func appendRow(b []byte, r *Row, salt uint32) []byte {
	from := len(b)
	b = append(append(b, mark...), make([]byte, rowHead-len(mark))...)
	h := b[from:]
	binary.BigEndian.PutUint32(h[8:], uint32(rowFixed+len(r.Table)+len(r.Key)+len(r.Value)))
	h[12] = byte(len(r.Table))
	binary.BigEndian.PutUint16(h[13:], uint16(len(r.Key)))
	if r.Value != nil {
		h[15] = 1
	}
	b = append(append(append(b, r.Table...), r.Key...), r.Value...)
	binary.BigEndian.PutUint32(b[from+4:], rowSum(b[from+8:], salt))
	return b
}

func rowSum(b []byte, salt uint32) uint32 { return crc32.Update(salt, castagnoli, b) }

// parseRow reads the row at the beginning of b; n is its length, 0: b ends before it does.
func parseRow(b []byte, salt uint32) (r Row, n int, err error) {
	if len(b) < rowHead {
		return r, 0, ErrMissing
	}
	if !bytes.HasPrefix(b, mark) {
		return r, 0, ErrChecksum
	}
	size := binary.BigEndian.Uint32(b[8:])
	t, k := int(b[12]), int(binary.BigEndian.Uint16(b[13:]))
	switch {
	case size > rowFixed+MaxTable+MaxKey+MaxValue || int(size) < rowFixed+t+k:
		return r, 0, ErrChecksum
	case uint64(len(b)) < uint64(rowHead-rowFixed)+uint64(size):
		return r, 0, ErrMissing
	}
	n = rowHead - rowFixed + int(size)
	rest := b[rowHead:n]
	r = Row{Table: Table(rest[:t]), Key: rest[t : t+k : t+k]}
	if b[15] != 0 {
		r.Value = rest[t+k:]
	}
	if rowSum(b[8:n], salt) != binary.BigEndian.Uint32(b[4:]) {
		return r, n, ErrChecksum
	}
	return r, n, nil
}

// contents is what a file holds.
type contents struct {
	rows   []Row // in their order
	faults []fault
	salt   uint32
	end    int  // behind the last sound or damaged row: what follows was being written
	ended  bool // it has the last row of a snapshot
}

// fault is a stretch of bytes that is no row.
type fault struct {
	at  int
	row Row // as far as it can be read
	err error
}

// parse reads a file. Behind what is no row it goes on with the next one that is.
func parse(b []byte, owner string) (c contents, err error) {
	salt, at, err := parseHead(b, owner)
	if err != nil {
		return c, err
	}
	c.salt, c.end = salt, at
	for at < len(b) {
		r, n, err := parseRow(b[at:], salt)
		if err == nil {
			if at += n; r.Table == endTable {
				c.ended = len(r.Key) == 8 && binary.BigEndian.Uint64(r.Key) == uint64(len(c.rows)+len(c.faults))
			} else {
				c.rows = append(c.rows, r)
			}
			c.end = at
			continue
		}
		next := at + 1
		for ; next < len(b); next++ {
			i := bytes.Index(b[next:], mark)
			if i < 0 {
				next = len(b)
				break
			}
			if next += i; rowAt(b[next:], salt) {
				break
			}
		}
		if next == len(b) && n != len(b)-at { // nothing sound follows, and it is no whole row
			return c, nil
		}
		c.faults = append(c.faults, fault{at, r, err})
		at, c.end = next, next
	}
	return c, nil
}

func rowAt(b []byte, salt uint32) bool {
	_, _, err := parseRow(b, salt)
	return err == nil
}
