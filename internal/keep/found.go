package keep

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
)

// Format is the version of what is kept: of the tables and their rows.
const Format = 1

// own is the table with what this package keeps about itself.
const own Table = "keep"

// Keys of the table own.
var (
	keyFormat      = []byte("format")
	keyDevice      = []byte("device")
	keyIncarnation = []byte("incarnation") // of the database: the unsaved files name it
	keyBoot        = []byte("boot")        // of the machine, when the process began
	keyClean       = []byte("clean")       // the process has ended as it was told to
	keyDoubt       = []byte("doubt")       // rows were lost while it ran
)

// Found is what the last process kept.
type Found struct {
	Rows []Row // one a key, sorted by table and key
	// None: there was no database. Whole: no row can be missing.
	None, Whole bool
	// Clean: the process before had ended as it was told to.
	Clean bool
	// SameBoot: the machine has not been started since. False where it cannot be known.
	SameBoot bool
	Problems []Problem

	incarnation uint64
	generation  uint64
	usable      bool  // the file may be opened by bbolt
	aside       bool  // the file is to be set aside
	bad         []Row // rows to be removed
	unsaved     []Row // those that the database does not have
}

// Look reads what a process keeps in a directory, without changing or locking anything: it may be
// running, and is then seen as a kill at this moment would leave it.
func Look(cfg Config) (Found, error) {
	c, err := readFile(filepath.Join(cfg.Dir, FileName))
	if err != nil {
		return Found{None: true}, err
	}
	f := Found{None: !c.old, Whole: true}
	path := filepath.Join(cfg.Dir, FileName)
	if f.None {
		f.Whole = false
		return f, nil
	}
	meta := map[string][]byte{}
	for i := range c.rows {
		if c.rows[i].Table == own {
			meta[string(c.rows[i].Key)] = c.rows[i].Value
		}
	}
	if err := foreign(cfg, meta, c.file); err != nil {
		f.aside, f.Whole = true, false
		f.problem(path, err, "what was kept is not used", fmt.Sprintf("it is set aside as %s; the version that wrote it can use it under its old name", badName))
		return f, nil
	}
	if c.file != nil {
		f.aside, f.Whole = true, false
		f.problem(path, c.file, fmt.Sprintf("rows are missing; %d sound ones are used", len(c.rows)),
			fmt.Sprintf("it is set aside as %s and a new one is made; look for a failing disk", badName))
	}
	for i, err := range c.errs {
		lost := "what it said is not known"
		if more := len(c.bad) - len(c.errs); i == len(c.errs)-1 && more > 0 {
			lost += fmt.Sprintf(", nor what %d more said", more)
		}
		f.Whole = false
		f.problem(path, err, lost, "it is removed; look for a failing disk")
	}
	f.usable, f.bad = !f.aside, c.bad
	f.Clean, f.SameBoot = meta[string(keyClean)] != nil, cfg.Boot != "" && string(meta[string(keyBoot)]) == cfg.Boot
	if meta[string(keyDoubt)] != nil {
		f.Whole = false
	}
	if v := meta[string(keyIncarnation)]; len(v) == 8 {
		f.incarnation = binary.BigEndian.Uint64(v)
	}
	f.join(cfg, c.rows)
	return f, nil
}

// foreign tells why a file is not one of ours.
func foreign(cfg Config, meta map[string][]byte, file error) error {
	format, device := meta[string(keyFormat)], meta[string(keyDevice)]
	switch {
	case file != nil && (format == nil || device == nil):
		return file
	case len(format) != 4:
		return errors.New("it does not say of which format it is")
	case binary.BigEndian.Uint32(format) != Format:
		return fmt.Errorf("format %d is not %d, which this version of the program reads", binary.BigEndian.Uint32(format), Format)
	case cfg.Device != "" && string(device) != cfg.Device:
		return fmt.Errorf("it belongs to device %s, this is device %s", device, cfg.Device)
	}
	return nil
}

// join puts the rows together: those of the database, and those that came after.
func (f *Found) join(cfg Config, rows []Row) {
	since, gen, err := readUnsaved(cfg.unsaved(), f.incarnation)
	f.generation = gen + 1
	// A process that could not write to the database at all has left these files.
	f.Clean = f.Clean && err != nil
	switch {
	case f.Clean: // all is in the database
		since = nil
	case err == nil:
	case errors.Is(err, fs.ErrNotExist) && !f.SameBoot && cfg.Boot != "":
		// They ended with the machine, and with it every link that rows were about.
	default:
		f.Whole = false
		f.problem(cfg.unsaved(), err, "what happened in the last moment before the process was killed is not known", "nothing, unless it happens again")
	}
	f.unsaved = since
	rows = append(rows, since...)
	for _, r := range latest(rows) {
		if r.Value != nil && r.Table != own {
			f.Rows = append(f.Rows, r)
		}
	}
}

func (f *Found) problem(where string, err error, lost, do string) {
	f.Problems = append(f.Problems, Problem{Where: where, Err: err, Lost: lost, Do: do})
}

// beginning are the rows of own with which a process begins.
func (f *Found) beginning(cfg Config) []Row {
	if f.incarnation == 0 {
		f.incarnation = rand.Uint64() | 1
	}
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], f.incarnation)
	rows := []Row{
		{Table: own, Key: keyFormat, Value: binary.BigEndian.AppendUint32(nil, Format)},
		{Table: own, Key: keyDevice, Value: []byte(cfg.Device)},
		{Table: own, Key: keyIncarnation, Value: id[:]},
		{Table: own, Key: keyBoot, Value: append([]byte{}, cfg.Boot...)},
		{Table: own, Key: keyClean},
		{Table: own, Key: keyDoubt},
	}
	return append(rows, f.bad...)
}
