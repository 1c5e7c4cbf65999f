package keep

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"github.com/openinof/inof/internal/wholefile"
)

const (
	// FileName is the database in its directory.
	FileName = "state.db"
	// badName is what a database that is set aside is called; an earlier one is replaced.
	badName = FileName + ".bad"
	newName = FileName + ".new"
	// maxFile bounds what is read back, in bytes.
	maxFile = 4 << 30
)

// contents is what a file holds.
type contents struct {
	rows []Row
	bad  []Row   // rows that are damaged, without a value
	errs []error // of these, the first maxFaults
	file error   // the file must not be opened by bbolt
	old  bool    // there is a file
}

// readFile reads a database without opening it. The error is that of the file system.
func readFile(path string) (c contents, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	if c.old = true; info.Size() > maxFile {
		c.file = damaged("%d bytes are above the limit of %d", info.Size(), int64(maxFile))
		return c, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	c.file = read(b, func(t Table, key, sealed []byte) {
		row, err := open(t, key, sealed)
		if err == nil {
			c.rows = append(c.rows, row)
			return
		}
		c.bad = append(c.bad, Row{Table: t, Key: bytes.Clone(key)})
		if len(c.errs) < maxFaults {
			c.errs = append(c.errs, fmt.Errorf("row %.40q of table %q: %w", key, t, err))
		}
	})
	return c, nil
}

// setAside gives a file another name.
func setAside(dir string) (string, error) {
	to := filepath.Join(dir, badName)
	return to, os.Rename(filepath.Join(dir, FileName), to)
}

// database is an open bbolt file. bbolt panics, or the kernel sends SIGBUS, where its
// file is not what it was: a page that cannot be read, a file that was cut short.
// Every call turns that into an error.
type database struct {
	db   *bbolt.DB
	file os.FileInfo // of what is open, wherever it is now
}

// errBroken says that bbolt could not go on with its file.
var errBroken = errors.New("the database cannot be used any more")

// guarded runs what calls bbolt.
func guarded(do func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errBroken, p)
		}
	}()
	return do()
}

func boltOptions() *bbolt.Options {
	return &bbolt.Options{Timeout: 2 * time.Second, FreelistType: bbolt.FreelistMapType}
}

// openDatabase opens a file that readFile found sound.
func openDatabase(dir string) (d *database, err error) {
	path := filepath.Join(dir, FileName)
	err = guarded(func() error {
		d, err = openBolt(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func openBolt(path string) (*database, error) {
	db, err := bbolt.Open(path, 0o600, boltOptions())
	if err != nil {
		return nil, err
	}
	d := &database{db: db}
	if d.file, err = os.Stat(path); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// createDatabase makes a file with these rows. A crash leaves the whole file or none.
func createDatabase(dir string, rows []Row) (d *database, n int64, err error) {
	path := filepath.Join(dir, newName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	err = guarded(func() error {
		if d, err = openBolt(path); err != nil {
			return err
		}
		if n, err = d.write(rows); err == nil {
			err = os.Rename(path, filepath.Join(dir, FileName))
		}
		if err == nil {
			err = wholefile.SyncDir(dir)
		}
		return err
	})
	if err != nil && d != nil {
		d.close()
	}
	if err != nil {
		_ = os.Remove(path) // it holds nothing that is not known here
		return nil, 0, err
	}
	return d, n, nil
}

// commit puts rows in with one transaction, and gives the bytes written.
func (d *database) commit(rows []Row) (n int64, err error) {
	err = guarded(func() error {
		n, err = d.write(rows)
		return err
	})
	return n, err
}

func (d *database) write(rows []Row) (int64, error) {
	tx, err := d.db.Begin(true)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to take back
	for i := range rows {
		r := &rows[i]
		b, err := tx.CreateBucketIfNotExists([]byte(r.Table))
		if err != nil {
			return 0, fmt.Errorf("table %q: %w", r.Table, err)
		}
		if r.Value == nil {
			err = b.Delete(r.Key)
		} else {
			err = b.Put(r.Key, seal(r))
		}
		if err != nil {
			return 0, fmt.Errorf("row %.40q of table %q: %w", r.Key, r.Table, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	stats := tx.Stats()
	return stats.GetPageAlloc() + int64(d.db.Info().PageSize), nil
}

// all reads every sound row.
func (d *database) all() (rows []Row, err error) {
	err = guarded(func() error {
		return d.db.View(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
				return b.ForEach(func(key, sealed []byte) error {
					if row, err := open(Table(name), key, sealed); err == nil {
						rows = append(rows, row)
					}
					return nil
				})
			})
		})
	})
	return rows, err
}

func (d *database) close() {
	_ = guarded(d.db.Close) // all that was to be kept is on the disk
}
