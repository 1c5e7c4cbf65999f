package daemon

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/snsd"
)

var journalDevice = netip.MustParseAddr("192.0.2.1")

func down(port string) []JournalEntry { return []JournalEntry{{Down: port}} }

// written runs a journal's writer over batches: "" begins the next file.
func written(t *testing.T, dir string, batches ...string) *journal {
	t.Helper()
	j := newJournal(dir)
	if err := j.open(1); err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if b == "" {
			j.begin()
		} else {
			j.put(down(b))
		}
	}
	j.close()
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return j
}

func saved(t *testing.T, dir string, number uint64) {
	t.Helper()
	if err := SaveState(dir, State{Version: stateVersion, Device: journalDevice, Journal: number}); err != nil {
		t.Fatal(err)
	}
}

func TestAStateAndItsJournalsAreWhole(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, "eth1", "", "eth2", "", "eth3")
	for number, want := range map[uint64]bool{1: true, 2: true, 3: true, 4: false} {
		saved(t, dir, number)
		st, next, err := LoadState(dir, journalDevice)
		if next != max(4, number+1) || (err == nil) != want || st.Incomplete == want {
			t.Errorf("with the state of journal %d: next %d, incomplete %v, %v", number, next, st.Incomplete, err)
		}
	}
}

// A stop as asked is one only until another process has begun.
func TestACleanStateIsCleanUntilTheNextStart(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, "eth1", "")
	for _, c := range []struct {
		journal uint64
		clean   bool
	}{{1, false}, {2, true}} {
		if err := SaveState(dir, State{Version: stateVersion, Device: journalDevice, Journal: c.journal, Clean: true}); err != nil {
			t.Fatal(err)
		}
		if st, _, err := LoadState(dir, journalDevice); err != nil || st.Clean != c.clean {
			t.Errorf("with the state of journal %d: clean %v, %v", c.journal, st.Clean, err)
		}
	}
	if err := newJournal(dir).open(3); err != nil { // the next process, which is killed
		t.Fatal(err)
	}
	if st, _, err := LoadState(dir, journalDevice); err != nil || st.Clean {
		t.Errorf("after another start: clean %v, %v", st.Clean, err)
	}
}

func TestAJournalThatIsNotWholeIsTold(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"missing in between": func(t *testing.T, dir string) { remove(t, journalName(dir, 2)) },
		"missing":            func(t *testing.T, dir string) { remove(t, journalName(dir, 1)) },
		"no JSON":            func(t *testing.T, dir string) { overwrite(t, journalName(dir, 2), "{\"down\":\"eth2\"}\nrubbish\n") },
		"endless line": func(t *testing.T, dir string) {
			overwrite(t, journalName(dir, 3), strings.Repeat("x", 2*maxJournalLine)+"\n")
		},
		"wrong type":      func(t *testing.T, dir string) { overwrite(t, journalName(dir, 3), "{\"down\":7}\n") },
		"no state at all": func(t *testing.T, dir string) { remove(t, filepath.Join(dir, stateName)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			written(t, dir, "eth1", "", "eth2", "", "eth3")
			saved(t, dir, 1)
			damage(t, dir)
			st, next, err := LoadState(dir, journalDevice)
			if !st.Incomplete || next != 4 {
				t.Errorf("incomplete %v, next %d, %v", st.Incomplete, next, err)
			}
			if err == nil && name != "no state at all" {
				t.Error("nobody is told")
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A process that is killed within a write leaves half a line.
func TestALastLineThatIsCutShortIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, "eth1")
	saved(t, dir, 1)
	overwrite(t, journalName(dir, 1), "{\"down\":\"eth1\"}\n{\"down\":\"et")
	if st, _, err := LoadState(dir, journalDevice); err != nil || st.Incomplete {
		t.Errorf("incomplete %v, %v", st.Incomplete, err)
	}
}

func TestWhatAKilledProcessHadHalfWrittenIsRemoved(t *testing.T) {
	dir := t.TempDir()
	saved(t, dir, 0)
	half := filepath.Join(dir, stateName+".2718281828")
	overwrite(t, half, "{")
	bad := filepath.Join(dir, stateName+".bad")
	overwrite(t, bad, "{")
	if _, _, err := LoadState(dir, journalDevice); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(half); err == nil {
		t.Error("it is still there")
	}
	if _, err := os.Stat(bad); err != nil {
		t.Error("what was kept for an operator is gone")
	}
}

func TestAJournalThatLacksAnEntryIsNotTakenForWhole(t *testing.T) {
	dir := t.TempDir()
	j := newJournal(dir)
	if err := j.open(1); err != nil {
		t.Fatal(err)
	}
	for range journalQueue + 1 { // nobody writes yet
		j.put(down("eth1"))
	}
	j.close()
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	saved(t, dir, 1)
	if st, _, _ := LoadState(dir, journalDevice); !st.Incomplete {
		t.Error("it is taken for whole")
	}
	if n := j.Counters(); n.Dropped == 0 || n.Errors == 0 {
		t.Errorf("not counted: %+v", n)
	}
}

func TestADirectoryThatCannotBeWrittenIsKnownAtTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	overwrite(t, file, "")
	if err := newJournal(file).open(1); err == nil {
		t.Error("no error")
	}
}

// killed gives the state directory of a device as a kill at this moment leaves it.
func killed(t *testing.T, n *node) State {
	t.Helper()
	st, _, err := LoadState(n.cfg.State, n.cfg.Device.ID)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestADeviceKilledRightAfterANoticeKnowsOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1", "eth2")
		settle(5 * time.Second)
		f.host("i1", "tor1", "eth1", i1, snsd.RoleInitiator)
		f.host("t1", "tor1", "eth2", t1, snsd.RoleTarget)
		settle(10 * time.Millisecond) // the state is written later
		st := killed(t, n)
		if st.Incomplete || len(st.Neighbours) != 2 || st.Told == nil || len(st.Told.Hosts) != 2 || len(st.Told.Hosts[0].Told) != 1 {
			t.Fatalf("left: incomplete %v, %d neighbours, told %+v", st.Incomplete, len(st.Neighbours), st.Told)
		}
		n.fake.SetCarrier("eth2", false)
		settle(10 * time.Millisecond)
		st = killed(t, n)
		b := &bareCore{t: t, now: time.Now()}
		b.start(true, st)
		for _, p := range []string{"eth1", "eth2"} {
			b.carrier(p, p == "eth1", fabric.PortAdded)
		}
		if got := st.Told.Hosts; got[0].Told[0].State != snsd.Inactive || got[0].Told[0].Reason != snsd.ReasonLinkDown {
			t.Errorf("last told: %+v", got)
		}
		if unheard := b.table.Unheard("eth2"); len(unheard) != 1 {
			t.Errorf("unheard behind the port that was down: %v", unheard)
		}
	})
}

func TestADeviceThatForgotItsHostsGoesOnHoldingBackAfterAnotherRestart(t *testing.T) {
	b := newBareCore(t, false)
	b.start(false, State{Incomplete: true})
	until := b.client.HeldBack()
	if until != b.now.Add(holdBack) {
		t.Fatalf("holds back until %v", until)
	}
	b.restart(false)
	if got := b.client.HeldBack(); !got.Equal(until) {
		t.Errorf("after a restart until %v, want %v", got, until)
	}
	b.now = until
	b.Tick(b.now)
	b.restart(false)
	if got := b.client.HeldBack(); !got.IsZero() {
		t.Errorf("in the end until %v", got)
	}
}

func FuzzJournal(f *testing.F) {
	for _, e := range []JournalEntry{{Down: "eth1"}, {Told: nil}} {
		b, _ := json.Marshal(e)
		f.Add(string(b) + "\n")
	}
	f.Add("{\"told\":{\"host\":\"192.0.2.1\",\"mac\":\"02:00:00:00:00:01\",\"told\":{\"subject\":\"192.0.2.2\",\"state\":\"active\"}}}\n")
	f.Add("{\"path\":{\"device\":\"10.0.0.2\"}}\n{\"path_over\":\"10.0.0.2\"}\n")
	f.Add("{\"neighbour\":{\"port\":\"eth1\",\"lldpdu\":\"AgcE\"}}\n{\"gone\":{\"port\":\"eth1\"}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		entries, _ := decodeJournal("journal", strings.NewReader(text))
		st := State{Version: stateVersion}
		st.Replay(entries)
		b := &bareCore{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
		c, err := NewCore(CoreConfig{Self: bareSelf, Access: true, Epoch: 2}, nowhere{}, b.now)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Restore(st, b.now) // whatever it says: no panic, no endless timer
		c.Tick(b.now)
	})
}

// silentPorts never says that all its ports are known.
type silentPorts struct{ *fabric.Fake }

func (silentPorts) Ready() <-chan struct{} { return nil }

func TestADaemonCanBeStoppedBeforeItsPortsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1")
		n.halt()
		env := n.d.env
		env.Dataplane = silentPorts{fabric.NewFake(fabric.FakeConfig{Name: "tor1"})}
		d, err := New(n.cfg, env)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		settle(time.Second)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A process that is killed before the state file is written again must not leave a
// port shut that nobody knows to be in error-down, nor one that was opened as if it were.
func TestADeviceKilledRightAfterItShutAPortKnowsOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFabric(t)
		n := f.add("tor1", "10.0.0.1", "standalone", "eth1", "eth2")
		n.faults(func(e *config.ErrorDown) { e.CRC.Action = config.ActionErrorDown })
		f.host("t1", "tor1", "eth2", t1, snsd.RoleTarget)
		settle(5 * time.Second)
		open := func() bool { return n.fake.Ports()[1].AdminUp }
		until := func(want bool) {
			t.Helper()
			for range 10000 {
				if open() == want {
					return
				}
				settle(time.Millisecond)
			}
			t.Fatalf("open %v, want %v", open(), want)
		}
		kept := func() []errdown.Saved { settle(time.Millisecond); return killed(t, n).Ports }

		n.damage("eth2", 3)
		until(false)
		got := kept()
		if len(got) != 1 || got[0].Port != "eth2" || !got[0].Shut || got[0].Unseen || len(got[0].Latched) != 1 || got[0].Latched[0].Cause != errdown.CRC {
			t.Fatalf("left: %+v", got)
		}
		b := &bareCore{t: t, now: time.Now()}
		b.start(true, State{Ports: got})
		b.Port(fabric.Event{Kind: fabric.PortAdded, At: b.now, Port: fabric.Port{Name: "eth2", Index: 2}}, b.now)
		if cause, faulty := b.faults.Worst("eth2"); !faulty || cause != errdown.CRC {
			t.Errorf("the next process takes the port for %v, faulty %v", cause, faulty)
		}
		if err := n.d.RecoverPort(t.Context(), "eth2"); err != nil {
			t.Fatal(err)
		}
		until(true)
		if got := kept(); len(got) != 0 && (got[0].Shut || got[0].Opening || len(got[0].Latched) > 0) {
			t.Errorf("left of a port that is open again: %+v", got)
		}
	})
}
