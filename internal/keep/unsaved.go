package keep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// unsaved are two files that hold the rows which the database does not have yet. One
// takes new rows while those of the other are being committed. They lie where the process does not
// wait for a disk, and nothing is ever flushed: they are there for a process that is killed,
// not for a machine that loses its power.
//
//	file:   magic(8) incarnation(8) generation(8) checksum(4), then rows
//	row:    length of the rest(4) checksum of the rest(4) table length(1) key length(2) there is a value(1) table key value
type unsaved struct {
	files [2]*os.File
	sizes [2]int64
	gens  [2]uint64
	at    int // the one that takes rows
	id    uint64
	buf   []byte
	// full: rows are missing, which the file itself says. gone: nothing can be written.
	full, gone bool
	bytes      uint64 // ever written
}

const (
	unsavedMagic  = "inofrow1"
	unsavedHeader = 28
	rowHeader     = 12
	// maxUnsaved bounds one file, in bytes: more than is told within the time of a transaction.
	maxUnsaved = 8 << 20
)

func unsavedPath(prefix string, i int) string { return fmt.Sprintf("%s.%d", prefix, i) }

// openUnsaved makes both files empty.
func openUnsaved(prefix string, id, gen uint64) (*unsaved, error) {
	u := &unsaved{id: id, gens: [2]uint64{gen, gen + 1}, at: 1}
	for i := range u.files {
		f, err := os.OpenFile(unsavedPath(prefix, i), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err == nil {
			u.files[i] = f
			err = u.reset(i, u.gens[i])
		}
		if err != nil {
			u.giveUp(prefix)
			return nil, err
		}
	}
	return u, nil
}

// resumeUnsaved goes on with files that hold rows which are not in the database yet.
func resumeUnsaved(prefix string, id uint64) (*unsaved, error) {
	u := &unsaved{id: id}
	for i := range u.files {
		path := unsavedPath(prefix, i)
		rows, g, err := readUnsavedFile(path, id)
		if err != nil {
			u.close()
			return nil, err
		}
		if u.files[i], err = os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0); err != nil {
			u.close()
			return nil, err
		}
		u.gens[i], u.sizes[i] = g, unsavedHeader
		for j := range rows {
			u.sizes[i] += int64(rowHeader + len(rows[j].Table) + len(rows[j].Key) + len(rows[j].Value))
		}
		if err := u.files[i].Truncate(u.sizes[i]); err != nil { // a row that was cut short
			u.close()
			return nil, err
		}
	}
	if u.gens[0] < u.gens[1] {
		u.at = 1
	}
	return u, nil
}

// reset empties a file. Its beginning stays until another one takes its place in one write: the
// process may be killed in between.
func (u *unsaved) reset(i int, gen uint64) error {
	if err := u.files[i].Truncate(unsavedHeader); err != nil {
		return err
	}
	b := append(make([]byte, 0, unsavedHeader), unsavedMagic...)
	b = binary.BigEndian.AppendUint64(b, u.id)
	b = binary.BigEndian.AppendUint64(b, gen)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	u.gens[i], u.sizes[i] = gen, unsavedHeader
	_, err := u.files[i].WriteAt(b, 0)
	return err
}

// missingRow says in a file that rows have no room in it.
var missingRow = []byte{0, 0, 0, 4, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0} // crc32c of four zero bytes

// add writes rows. After an error the files are worth nothing and are given up.
func (u *unsaved) add(rows []Row) error {
	if u.gone || u.full {
		return nil
	}
	b := u.buf[:0]
	for i := range rows {
		b = appendRow(b, &rows[i])
	}
	u.buf = b
	if cap(b) > maxUnsaved/4 {
		u.buf = nil
	}
	if u.sizes[u.at]+int64(len(b)) > maxUnsaved {
		u.full = true
		b = missingRow
	}
	_, err := u.files[u.at].WriteAt(b, u.sizes[u.at])
	u.sizes[u.at] += int64(len(b))
	u.bytes += uint64(len(b))
	return err
}

func appendRow(b []byte, r *Row) []byte {
	from := len(b)
	b = append(b, make([]byte, rowHeader)...)
	h := b[from:]
	binary.BigEndian.PutUint32(h, uint32(4+len(r.Table)+len(r.Key)+len(r.Value)))
	h[8] = byte(len(r.Table))
	binary.BigEndian.PutUint16(h[9:], uint16(len(r.Key)))
	if r.Value != nil {
		h[11] = 1
	}
	b = append(append(append(b, r.Table...), r.Key...), r.Value...)
	binary.BigEndian.PutUint32(b[from+4:], crc32.Checksum(b[from+8:], castagnoli))
	return b
}

// turn has the other file take rows from now on, if it is empty.
func (u *unsaved) turn() {
	if other := 1 - u.at; !u.gone && u.sizes[other] == unsavedHeader {
		if u.gens[other] < u.gens[u.at] {
			if u.reset(other, u.gens[u.at]+1) != nil {
				return
			}
		}
		u.at, u.full = other, false
	}
}

// committed empties the file that takes no rows: the database has them.
func (u *unsaved) committed() error {
	if u.gone {
		return nil
	}
	return u.reset(1-u.at, u.gens[u.at]+1)
}

// giveUp removes the files: that they are not there says that rows may be missing.
func (u *unsaved) giveUp(prefix string) {
	u.gone = true
	for i, f := range u.files {
		if f != nil {
			f.Close()
		}
		_ = os.Remove(unsavedPath(prefix, i))
	}
}

func (u *unsaved) close() {
	for _, f := range u.files {
		if f != nil {
			f.Close()
		}
	}
}

// Sentinels of what is wrong with the unsaved files.
var (
	errNoUnsaved   = errors.New("there is none")
	errOtherFile   = errors.New("it belongs to another database")
	errRowsMissing = errors.New("it says that rows had no room in it")
)

// readUnsaved gives the rows of both files, in their order, and the last generation. An error says
// that rows are missing.
func readUnsaved(prefix string, id uint64) (rows []Row, gen uint64, err error) {
	type part struct {
		rows []Row
		gen  uint64
	}
	var parts [2]part
	for i := range parts {
		p := &parts[i]
		path := unsavedPath(prefix, i)
		var e error
		if p.rows, p.gen, e = readUnsavedFile(path, id); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", path, e))
		}
	}
	if parts[0].gen > parts[1].gen {
		parts[0], parts[1] = parts[1], parts[0]
	}
	return append(parts[0].rows, parts[1].rows...), parts[1].gen, err
}

func readUnsavedFile(path string, id uint64) (rows []Row, gen uint64, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, 0, errors.Join(errNoUnsaved, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 2*maxUnsaved))
	if err != nil {
		return nil, 0, err
	}
	return parseUnsaved(b, id)
}

// parseUnsaved reads one file. A last row that is cut short was being written when the process
// was killed: nothing that relies on it had been done.
func parseUnsaved(b []byte, id uint64) (rows []Row, gen uint64, err error) {
	if len(b) < unsavedHeader || string(b[:8]) != unsavedMagic || crc32.Checksum(b[:24], castagnoli) != binary.BigEndian.Uint32(b[24:]) {
		return nil, 0, damaged("it has no sound beginning")
	}
	if binary.BigEndian.Uint64(b[8:]) != id {
		return nil, 0, errOtherFile
	}
	gen = binary.BigEndian.Uint64(b[16:])
	for at := unsavedHeader; at < len(b); {
		rest := b[at:]
		if len(rest) < rowHeader || uint64(binary.BigEndian.Uint32(rest))+8 > uint64(len(rest)) {
			if len(rest) >= 4 && binary.BigEndian.Uint32(rest) > MaxTable+MaxKey+MaxValue+4 {
				return rows, gen, damaged("a row of %d bytes at byte %d", binary.BigEndian.Uint32(rest), at)
			}
			return rows, gen, nil
		}
		n := int(binary.BigEndian.Uint32(rest))
		body := rest[8 : 8+n]
		if n < 4 || crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(rest[4:]) {
			return rows, gen, fmt.Errorf("the row at byte %d: %w", at, ErrChecksum)
		}
		t, k := int(body[0]), int(binary.BigEndian.Uint16(body[1:]))
		if t == 0 {
			return rows, gen, errRowsMissing
		}
		if 4+t+k > n {
			return rows, gen, damaged("the row at byte %d", at)
		}
		r := Row{Table: Table(body[4 : 4+t]), Key: body[4+t : 4+t+k : 4+t+k]}
		if body[3] != 0 {
			r.Value = body[4+t+k:]
		}
		rows = append(rows, r)
		at += 8 + n
	}
	return rows, gen, nil
}
