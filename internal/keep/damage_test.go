package keep

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func file(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// memoryDir is a directory where a sync costs nothing, if there is one.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "inof-keep-test-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// sample is a sound database with tables of all kinds: of one page, of many, within their entry,
// with long values and with pages that are free.
func sample(t testing.TB) (b []byte, rows map[string]string) {
	t.Helper()
	cfg := Config{Dir: t.TempDir(), Device: "10.0.0.1", Boot: "b1"}
	k, _, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1500 {
		put(k, told, fmt.Sprintf("host %05d", i*37%1500), fmt.Sprint("was told ", i))
	}
	for i := range 20 {
		put(k, ports, fmt.Sprintf("eth%d", i), "up")
	}
	k.Put("long", []byte("one"), make([]byte, 20000))
	if err := k.Begin(); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		k.Delete(told, fmt.Appendf(nil, "host %05d", 400+i))
	}
	if err := k.save(); err != nil {
		t.Fatal(err)
	}
	k.Close(true)
	if err := k.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := Look(cfg)
	if err != nil || len(f.Rows) != 1221 {
		t.Fatalf("%v, %d rows", err, len(f.Rows))
	}
	rows = map[string]string{}
	for _, r := range f.Rows {
		rows[string(r.Table)+"/"+string(r.Key)] = string(r.Value)
	}
	return file(t, filepath.Join(cfg.Dir, FileName)), rows
}

// survives starts a Keeper on a damaged file, has it write and stop, and starts another. Only rows
// that were there may be found; what is missing must have been told, and the file that is
// there afterwards must be sound.
func survives(t *testing.T, dir, what string, b []byte, rows map[string]string) (found int) {
	t.Helper()
	cfg := Config{Dir: dir, Device: "10.0.0.1", Boot: "b1"}
	for _, name := range []string{badName, "unsaved.0", "unsaved.1"} {
		_ = os.Remove(filepath.Join(dir, name))
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), b, 0o600); err != nil {
		t.Fatal(err)
	}
	k, f, err := Open(cfg)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, r := range f.Rows {
		if v, ok := rows[string(r.Table)+"/"+string(r.Key)]; !ok || v != string(r.Value) {
			t.Fatalf("%s: found %s %q %q", what, r.Table, r.Key, r.Value)
		}
	}
	if len(f.Rows) < len(rows) && (f.Whole || len(f.Problems) == 0) {
		t.Fatalf("%s: %d of %d rows are there, and nobody is told", what, len(f.Rows), len(rows))
	}
	put(k, told, "new", "one")
	if err := k.Begin(); err != nil {
		t.Fatalf("%s: cannot be written: %v", what, err)
	}
	for i := range 50 {
		k.Delete(told, fmt.Appendf(nil, "host %05d", i*20))
	}
	k.Close(true)
	if err := k.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := Look(cfg)
	if err != nil || !again.Clean || !again.Whole || len(again.Problems) > 0 {
		t.Fatalf("%s: afterwards %v %+v", what, err, again.Problems)
	}
	return len(f.Rows)
}

func TestAFileThatWasCutShortIsSafe(t *testing.T) {
	b, rows := sample(t)
	dir := memoryDir(t)
	for at := 0; at < len(b); at += os.Getpagesize() {
		for _, n := range []int{at, at + 1, at + os.Getpagesize()/2} {
			survives(t, dir, fmt.Sprintf("%d of %d bytes", n, len(b)), b[:min(n, len(b))], rows)
		}
	}
}

func TestPagesThatWereLostAreSafe(t *testing.T) {
	b, rows := sample(t)
	dir := memoryDir(t)
	rng := random(3)
	size := os.Getpagesize()
	for at := 0; at < len(b); at += size {
		for kind := range 3 {
			c := append([]byte(nil), b...)
			page := c[at:min(at+size, len(c))]
			switch kind {
			case 0:
				clear(page)
			case 1:
				for i := range page {
					page[i] = byte(rng.Uint32())
				}
			case 2: // another page in its place
				copy(page, b[rng.IntN(len(b)/size)*size:])
			}
			survives(t, dir, fmt.Sprintf("page at %d, kind %d", at, kind), c, rows)
		}
	}
}

func TestBitsThatFlippedAreSafe(t *testing.T) {
	b, rows := sample(t)
	dir := memoryDir(t)
	rng := random(4)
	all, some := 0, 0
	for i := range 1500 {
		c := append([]byte(nil), b...)
		at := rng.IntN(len(c))
		if i%3 == 0 { // the beginnings of pages are what bbolt trusts most
			at = rng.IntN(len(c)/os.Getpagesize())*os.Getpagesize() + rng.IntN(256)
		}
		c[at] ^= 1 << rng.IntN(8)
		if survives(t, dir, fmt.Sprintf("bit at %d", at), c, rows) == len(rows) {
			all++
		} else {
			some++
		}
	}
	t.Logf("%d flips did no harm, %d cost rows, none was believed", all, some)
}

// The file is cut short while it is in use: the kernel sends SIGBUS.
func TestAFileThatIsCutShortInUseIsReplaced(t *testing.T) {
	r := newRig(t)
	r.start()
	for i := range 3000 {
		put(r.k, told, fmt.Sprintf("%05d", i), "x")
	}
	if err := r.k.save(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(r.cfg.Dir, FileName), 3*int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	put(r.k, told, "00000", "y")
	for i := 0; r.k.save() != nil; i++ {
		if i == 3 {
			t.Fatal("it is not replaced")
		}
	}
	put(r.k, told, "z", "z")
	r.kill()
	f := r.start()
	if n := len(f.Rows); f.Whole || n < 2 || string(f.Rows[n-1].Value) != "z" {
		t.Errorf("whole %v, %d rows", f.Whole, n)
	}
	r.kill()
	if f := r.start(); !f.Whole {
		t.Errorf("the next start still doubts it: %v", f.Problems)
	}
}

// The file, or its directory, is taken away while it is in use.
func TestAFileThatIsTakenAwayIsWrittenAnew(t *testing.T) {
	for name, take := range map[string]func(dir string) error{
		"removed":  func(dir string) error { return os.Remove(filepath.Join(dir, FileName)) },
		"replaced": func(dir string) error { return os.WriteFile(filepath.Join(dir, newName), []byte("x"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.start()
			put(r.k, told, "a", "1")
			if err := r.k.save(); err != nil {
				t.Fatal(err)
			}
			err := take(r.cfg.Dir)
			if err == nil && name == "replaced" {
				err = os.Rename(filepath.Join(r.cfg.Dir, newName), filepath.Join(r.cfg.Dir, FileName))
			}
			if err != nil {
				t.Fatal(err)
			}
			put(r.k, told, "b", "2")
			if r.k.save() == nil {
				t.Error("nobody is told")
			}
			if err := r.k.save(); err != nil {
				t.Fatal(err)
			}
			r.stop()
			r.want(r.start(), "told/a=1 told/b=2 ", true, true)
		})
	}
}

func FuzzRead(f *testing.F) {
	b, _ := sample(f)
	f.Add(b[:8*4096], uint16(0), byte(0))
	f.Add(b, uint16(20), byte(3))
	f.Fuzz(func(t *testing.T, b []byte, at uint16, v byte) {
		if int(at) < len(b) {
			b = append([]byte(nil), b...)
			b[at] ^= v
		}
		_ = read(b, func(t Table, key, sealed []byte) { _, _ = open(t, key, sealed) })
	})
}

func FuzzUnsaved(f *testing.F) {
	rows := []Row{{Table: told, Key: []byte("a"), Value: []byte("1")}, {Table: ports, Key: []byte("b")}}
	dir := f.TempDir()
	u, err := openUnsaved(filepath.Join(dir, "u"), 7, 1)
	if err == nil {
		err = u.add(rows)
	}
	if err != nil {
		f.Fatal(err)
	}
	b := file(f, unsavedPath(filepath.Join(dir, "u"), 1))
	if got, gen, err := parseUnsaved(b, 7); err != nil || gen != 2 || text(got) != text(rows) {
		f.Fatalf("%v %v %d", got, err, gen)
	}
	f.Add(b)
	f.Add(append(b[:len(b):len(b)], missingRow...))
	f.Fuzz(func(t *testing.T, b []byte) {
		rows, _, _ := parseUnsaved(b, 7)
		for _, r := range rows {
			if len(r.Table)+len(r.Key)+len(r.Value) > len(b) {
				t.Error("more than there is")
			}
		}
	})
}
