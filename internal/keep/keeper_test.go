package keep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/netnstest"
)

const told, ports Table = "told", "port"

// rig is a Keeper in a directory of its own.
type rig struct {
	t    *testing.T
	cfg  Config
	k    *Keeper
	done chan error
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, cfg: Config{Dir: t.TempDir(), Device: "10.0.0.1", Boot: "b1", Interval: time.Millisecond, Retry: time.Millisecond}}
	return r
}

func (r *rig) start() Found {
	r.t.Helper()
	k, f, err := Open(r.cfg)
	if err == nil {
		err = k.Begin()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.k = k
	return f
}

func (r *rig) run() {
	r.done = make(chan error, 1)
	go func() { r.done <- r.k.Run(context.Background()) }()
}

func (r *rig) stop() {
	r.k.Close(true)
	if r.done == nil {
		r.run()
	}
	if err := <-r.done; err != nil {
		r.t.Error(err)
	}
	r.done = nil
}

// kill leaves everything as it is.
func (r *rig) kill() {
	if r.k.db != nil {
		r.k.db.close() // what the kernel does: nothing is written by it
	}
	if r.k.log != nil {
		r.k.log.close()
	}
}

func (r *rig) look() Found {
	r.t.Helper()
	f, err := Look(r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

func text(rows []Row) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s/%s=%s ", r.Table, r.Key, r.Value)
	}
	return b.String()
}

func put(s Sink, t Table, key, value string) {
	s.Put(t, []byte(key), []byte(value))
	s.Flush()
}

func (r *rig) want(f Found, rows string, whole, clean bool) {
	r.t.Helper()
	if got := text(f.Rows); got != rows || f.Whole != whole || f.Clean != clean {
		r.t.Errorf("found %q whole %v clean %v %v, want %q %v %v", got, f.Whole, f.Clean, f.Problems, rows, whole, clean)
	}
}

func TestAKilledProcessLosesNothing(t *testing.T) {
	r := newRig(t)
	if f := r.start(); !f.None || f.Whole {
		t.Errorf("a new directory: %+v", f)
	}
	put(r.k, told, "a", "1")
	put(r.k, ports, "eth1", "up")
	r.want(r.look(), "port/eth1=up told/a=1 ", true, false)
	if err := r.k.save(); err != nil {
		t.Fatal(err)
	}
	put(r.k, told, "a", "2")
	r.k.Delete(ports, []byte("eth1"))
	r.k.Flush()
	put(r.k, told, "b", "")
	r.want(r.look(), "told/a=2 told/b= ", true, false)
	r.kill()
	r.want(r.start(), "told/a=2 told/b= ", true, false)
	r.kill()
	r.want(r.start(), "told/a=2 told/b= ", true, false)
	r.stop()
	r.want(r.start(), "told/a=2 told/b= ", true, true)
	r.kill()
	r.want(r.start(), "told/a=2 told/b= ", true, false)
}

func TestAPowerCutLeavesTheLastTransaction(t *testing.T) {
	r := newRig(t)
	r.start()
	put(r.k, told, "a", "1")
	if err := r.k.save(); err != nil {
		t.Fatal(err)
	}
	put(r.k, told, "a", "2")
	r.kill()
	for i := range 2 {
		remove(t, unsavedPath(r.cfg.unsaved(), i))
	}
	r.want(r.look(), "told/a=1 ", false, false) // the same boot: somebody removed them
	r.cfg.Boot = "b2"
	r.want(r.start(), "told/a=1 ", true, false)
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// The pages of a transaction reach the disk in any order before its meta page does.
func TestATornTransactionIsNone(t *testing.T) {
	r := newRig(t)
	r.start()
	for i := range 2000 {
		put(r.k, told, fmt.Sprintf("key %04d", i), strings.Repeat("x", i%50))
	}
	if err := r.k.save(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.cfg.Dir, FileName)
	before, want := file(t, path), text(r.look().Rows)
	for i := range 300 {
		put(r.k, told, fmt.Sprintf("key %04d", i*7), "changed")
	}
	if err := r.k.save(); err != nil {
		t.Fatal(err)
	}
	after := file(t, path)
	r.kill()
	size := os.Getpagesize()
	rng := random(1)
	for range 200 {
		torn := append([]byte(nil), after...)
		copy(torn, before[:2*size])
		for at := 2 * size; at+size <= len(before); at += size {
			if rng.IntN(2) == 0 {
				copy(torn[at:at+size], before[at:])
			}
		}
		if rng.IntN(2) == 0 { // of the meta page itself a part arrived
			from := int(lastMeta(after)) * size
			copy(torn[from:from+rng.IntN(pageHeader+metaSize-8)], after[from:])
		}
		var rows []Row
		err := read(torn, func(t Table, key, sealed []byte) {
			if row, err := open(t, key, sealed); err == nil && row.Table != own {
				rows = append(rows, row)
			} else if err != nil {
				rows = append(rows, Row{Key: []byte(err.Error())})
			}
		})
		if got := text(latest(rows)); err != nil || got != want {
			t.Fatalf("%v, %d rows", err, len(rows))
		}
	}
}

func lastMeta(b []byte) uint64 { m, _ := newest(b); return m.txid % 2 }

func TestAForeignFileIsSetAside(t *testing.T) {
	for name, change := range map[string]func(r *rig){
		"another format": func(r *rig) { put(r.k, own, string(keyFormat), "\x00\x00\x00\x02") },
		"another device": func(r *rig) { put(r.k, own, string(keyDevice), "10.0.0.2") },
		"no format":      func(r *rig) { r.k.Delete(own, keyFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.start()
			put(r.k, told, "a", "1")
			change(r)
			r.stop()
			f := r.start()
			r.want(f, "", false, false)
			if len(f.Problems) != 1 || !strings.Contains(f.Problems[0].Error(), "set aside as "+badName) {
				t.Errorf("%v", f.Problems)
			}
			if _, err := os.Stat(filepath.Join(r.cfg.Dir, badName)); err != nil || r.k.Counters().SetAside != 1 {
				t.Errorf("%v, %+v", err, r.k.Counters())
			}
			put(r.k, told, "b", "2")
			r.stop()
			r.want(r.start(), "told/b=2 ", true, true)
		})
	}
}

func TestADirectoryThatCannotBeWrittenIsKnownAtTheStart(t *testing.T) {
	r := newRig(t)
	blocked := filepath.Join(r.cfg.Dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.cfg.Dir = blocked
	k, f, err := Open(r.cfg)
	if err == nil || f.Whole || len(f.Problems) != 1 {
		t.Errorf("%v %+v", err, f)
	}
	if k.Begin() == nil || k.Warning() == "" {
		t.Error("nobody is told")
	}
}

// A file system that takes no more: nothing is lost but what a kill takes, and that is known.
func TestAFullDiskIsToldAndGoneOnAfter(t *testing.T) {
	r := newRig(t)
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=128k"); err != nil {
		netnstest.Require(t, "mounting a small file system (CAP_SYS_ADMIN)", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	r.cfg.Unsaved = filepath.Join(r.cfg.Dir, "unsaved")
	r.cfg.Dir = disk
	var said []string
	r.cfg.Tell = func(err error) { said = append(said, fmt.Sprint(err)) }
	r.start()
	put(r.k, told, "a", "1")
	if err := r.k.save(); err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		put(r.k, told, fmt.Sprintf("big %d", i), strings.Repeat("x", 200))
	}
	if err := r.k.save(); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	put(r.k, told, "a", "2")
	_ = r.k.save()
	if f := r.look(); len(f.Rows) != 3001 || !f.Whole || string(f.Rows[0].Value) != "2" {
		t.Errorf("%d rows, whole %v %v", len(f.Rows), f.Whole, f.Problems)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if err := r.k.save(); err != nil || r.k.Warning() != "" || len(said) != 2 {
		t.Errorf("%v %q %q", err, r.k.Warning(), said)
	}
	r.stop()
	if f := r.look(); len(f.Rows) != 3001 || !f.Clean {
		t.Errorf("%d rows %+v", len(f.Rows), f.Problems)
	}
}

// The last process could read but not write: what it did is known by the unsaved files.
func TestAProcessThatCouldNotWriteIsNotTakenForOneThatHasNotBeen(t *testing.T) {
	r := newRig(t)
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		netnstest.Require(t, "mounting a small file system (CAP_SYS_ADMIN)", err)
	}
	defer unix.Unmount(disk, unix.MNT_DETACH)
	r.cfg.Unsaved = filepath.Join(r.cfg.Dir, "unsaved")
	r.cfg.Dir = disk
	r.start()
	put(r.k, told, "a", "1")
	r.stop()
	if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		k, f, err := Open(r.cfg)
		if err != nil || len(f.Rows) != 1 || f.Clean != (i == 0) || !f.Whole {
			t.Fatalf("start %d: %v %+v", i, err, f)
		}
		if k.Begin() == nil {
			t.Fatal("nobody is told")
		}
		put(k, told, "a", fmt.Sprint(i))
		r.k = k
		r.kill()
		r.want(r.look(), fmt.Sprintf("told/a=%d ", i), true, false)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	r.want(r.start(), "told/a=2 ", true, false)
	r.stop()
	r.want(r.start(), "told/a=2 ", true, true)
}

func TestTheWriterWritesBehind(t *testing.T) {
	r := newRig(t)
	r.start()
	r.run()
	for i := range 5000 {
		put(r.k, told, fmt.Sprint(i%50), fmt.Sprint(i))
	}
	r.k.Later(func() Row { return Row{Table: ports, Key: []byte("x"), Value: []byte("later")} })
	r.stop()
	f := r.look()
	if len(f.Rows) != 51 || !f.Clean || !f.Whole {
		t.Errorf("%d rows, %+v", len(f.Rows), f)
	}
	if c := r.k.Counters(); c.Written >= 5000 || c.Commits == 0 || c.Bytes == 0 {
		t.Errorf("%+v", c)
	}
}

func TestRowsThatHaveNoRoomAreKnownToBeMissing(t *testing.T) {
	r := newRig(t)
	r.start()
	big := strings.Repeat("x", 1<<19)
	for i := range 20 {
		put(r.k, told, fmt.Sprint(i), big)
	}
	if f := r.look(); f.Whole || len(f.Problems) != 1 || !errors.Is(f.Problems[0].Err, errRowsMissing) {
		t.Errorf("whole %v %v", f.Whole, f.Problems)
	}
	if err := r.k.save(); err != nil {
		t.Fatal(err)
	}
	put(r.k, told, "after", "1")
	if f := r.look(); !f.Whole || len(f.Rows) != 21 {
		t.Errorf("whole %v %d rows %v", f.Whole, len(f.Rows), f.Problems)
	}
}

func TestWhoWaitsIsToldWhenItsRowsAreOnTheDisk(t *testing.T) {
	r := newRig(t)
	r.start()
	done := make(chan error, 1)
	go func() { done <- r.k.Run(t.Context()) }()
	put(r.k, told, "a", "1")
	r.k.Flush()
	if err := r.k.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := readFile(filepath.Join(r.cfg.Dir, FileName))
	if err != nil || !strings.Contains(text(c.rows), "told/a=1") {
		t.Errorf("on the disk is %q, %v", text(c.rows), err)
	}
	if err := r.k.Wait(t.Context()); err != nil { // nothing is to be written
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.k.Wait(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.k.Close(true)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
