package inof

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// inquirer is a client of two reflectors, of which the first says a host and the second
// one nothing.
type inquirer struct {
	*testing.T
	*Client
	first, second netip.Addr
	host          zone.Host
	seq           map[netip.Addr]uint64
}

func newInquirer(t *testing.T, answers bool) *inquirer {
	q := &inquirer{T: t, Client: NewClient(devID(1), 7), host: hostAt(hostIP(0), devID(0), "Ethernet1"),
		first: netip.MustParseAddr("192.0.2.250"), second: netip.MustParseAddr("192.0.2.251"), seq: map[netip.Addr]uint64{}}
	q.SetReflectors(2, AgreeIdentical, 10*time.Second)
	for _, r := range []netip.Addr{q.first, q.second} {
		q.SetAnswers(r, answers)
		q.Up(r, t0)
	}
	return q
}

// joins says that auto-join is on at both reflectors, and ends their syncs.
func (q *inquirer) joins(on bool) {
	for _, r := range []netip.Addr{q.first, q.second} {
		q.say(r, &Update{Settings: &Settings{AutoJoin: on}})
		q.end(r)
	}
	q.Synced()
}

func (q *inquirer) receive(r netip.Addr, m Message, now time.Time) Applied {
	q.Helper()
	a, err := q.Receive(r, m, now)
	if err != nil {
		q.Fatal(err)
	}
	return a
}

func (q *inquirer) say(r netip.Addr, u *Update) Applied {
	q.Helper()
	q.seq[r]++
	u.Origin, u.Epoch, u.Seq = r, 3, q.seq[r]
	return q.receive(r, u, t0)
}

func (q *inquirer) end(r netip.Addr) Applied {
	q.Helper()
	return q.receive(r, &EndOfSync{Epoch: 3, Seq: q.seq[r]}, t0)
}

func (q *inquirer) put(r netip.Addr) Applied {
	q.Helper()
	return q.say(r, &Update{Hosts: []HostRecord{{Op: Put, Host: q.host}}})
}

func (q *inquirer) withdraw(r netip.Addr, why snsd.Reason) Applied {
	q.Helper()
	return q.say(r, &Update{Hosts: []HostRecord{{Op: Withdraw, Why: why, Host: zone.Host{HostKey: q.host.HostKey}}}})
}

func (q *inquirer) answer(r netip.Addr, s Standing) Applied {
	q.Helper()
	return q.say(r, &Update{Standings: []StandingRecord{{Op: Put, Host: q.host.HostKey, State: s}}})
}

// want checks whether the host may be in the default zone: Stale keeps it out, Owed has it
// stay where it is.
func (q *inquirer) want(when string, stale, owed bool) {
	q.Helper()
	if k := q.host.HostKey; q.Stale(k) != stale || q.Owed(k) != owed {
		q.Errorf("%s: stale %v and owed %v, want %v and %v", when, q.Stale(k), q.Owed(k), stale, owed)
	}
}

// frees has a reflector answer that the host is in no zone, which places it.
func (q *inquirer) frees(reflector netip.Addr) {
	q.Helper()
	if a := q.answer(reflector, StandingFree); !slices.Contains(a.Placed, q.host.HostKey) {
		q.Errorf("not placed: %+v", a)
	}
}

// denies has a reflector answer that the host is in a zone elsewhere.
func (q *inquirer) denies(reflector netip.Addr) {
	q.Helper()
	if a := q.answer(reflector, StandingZoned); !slices.Contains(a.Denied, q.host.HostKey) {
		q.Errorf("not denied: %+v", a)
	}
}

// asks checks that what is sent is a question about the host, or its end, to these reflectors.
func (q *inquirer) asks(ds []Delivery, op Op, to ...netip.Addr) {
	q.Helper()
	var at []netip.Addr
	for _, d := range ds {
		u, ok := d.Msg.(*Update)
		if !ok || len(u.Standings) == 0 {
			continue
		}
		if s := u.Standings[0]; len(u.Standings) != 1 || s.Op != op || s.Host != q.host.HostKey || op == Put && (s.State != StandingAsked || s.NQN != q.host.Service.NQN) {
			q.Errorf("asked %+v, want %v of %v", u.Standings, op, q.host.HostKey)
		}
		at = append(at, d.To...)
	}
	if slices.SortFunc(at, netip.Addr.Compare); !slices.Equal(at, to) {
		q.Errorf("asked at %v, want %v", at, to)
	}
}

// A host that one reflector says and another one does not is in the default zone when the
// second has answered that it has it in no zone; each later answer is followed.
func TestAHostIsInTheDefaultZoneWhenBothReflectorsSaySo(t *testing.T) {
	q := newInquirer(t, true)
	q.joins(true)
	q.put(q.first)
	q.want("said by one", true, false)
	q.asks(q.Flush(t0), Put)
	if due := q.Next(); !due.Equal(t0.Add(askDelay)) {
		t.Errorf("the question is due at %v", due)
	}
	q.asks(q.Flush(q.Next()), Put, q.first, q.second)
	q.want("asked", true, false)
	q.frees(q.second)
	q.want("free", false, false)
	q.denies(q.second)
	q.want("zoned", true, false)
	q.Down(q.second, t0)
	q.want("zoned, and silent", true, false)
	q.Up(q.second, t0)
	q.answer(q.second, StandingFree)
	q.want("free again", false, false)
	q.put(q.second)
	q.asks(q.Flush(t0), Withdraw, q.first, q.second)
	q.want("said by both", false, false)
}

// What a reflector does not say that answers no questions it does not forbid.
func TestAReflectorThatDoesNotAnswerIsNotAsked(t *testing.T) {
	q := newInquirer(t, false)
	q.joins(true)
	q.put(q.first)
	q.want("said by one", false, false)
	q.asks(q.Flush(t0.Add(time.Hour)), Put)
	if a := q.withdraw(q.second, snsd.ReasonAgedOut); len(a.Doubted) > 0 {
		t.Errorf("in doubt: %v", a.Doubted)
	}
	q = newInquirer(t, true)
	q.Down(q.second, t0)
	q.SetAnswers(q.second, false)
	q.Up(q.second, t0)
	q.joins(true)
	q.put(q.first)
	q.want("the other one answers", false, false)
	q.asks(q.Flush(t0.Add(time.Hour)), Put)
}

// The first sync is complete when the questions of that time are answered, or the wait is over.
func TestTheFirstSyncWaitsForAnswers(t *testing.T) {
	for _, answered := range []bool{true, false} {
		q := newInquirer(t, true)
		q.put(q.first)
		q.joins(true)
		q.asks(q.Flush(t0), Put, q.first, q.second) // behind an End-of-Sync at once
		if q.Synced() {
			t.Fatal("synced before the answer")
		}
		if answered {
			q.answer(q.second, StandingFree)
		} else {
			q.Tick(q.Next())
		}
		if !q.Synced() {
			t.Fatalf("not synced, answered %v", answered)
		}
		q.want("synced", !answered, false)
	}
}

// An answer holds in the next session too, until there is another one.
func TestAnAnswerOutlivesItsSession(t *testing.T) {
	q := newInquirer(t, true)
	q.joins(true)
	q.put(q.first)
	q.Flush(t0.Add(askDelay))
	q.answer(q.second, StandingFree)
	q.Down(q.second, t0)
	q.asks(q.Up(q.second, t0), Put, q.second)
	q.want("in the next session", false, false)
	q.end(q.second)
	q.want("synced", false, false)
}

// Who has not answered yet when its session begins anew, or withdraws a host because it knows
// it no more, ends nothing that hosts were told, but a host that is not in the default zone
// does not come there before the answer.
func TestAWordThatIsMissingIsPresumed(t *testing.T) {
	begin := func() *inquirer {
		q := newInquirer(t, true)
		q.put(q.first)
		q.put(q.second)
		q.joins(true)
		if !q.Synced() {
			t.Fatal("not synced")
		}
		return q
	}
	end := func(q *inquirer, a Applied) {
		t.Helper()
		if !slices.Contains(a.Doubted, q.host.HostKey) {
			t.Errorf("not in doubt: %+v", a)
		}
		q.want("in doubt", false, true)
		q.answer(q.second, StandingFree)
		q.want("answered", false, false)
	}
	q := begin()
	end(q, q.withdraw(q.second, snsd.ReasonAgedOut))
	q = begin()
	q.Down(q.second, t0)
	q.Up(q.second, t0)
	end(q, q.end(q.second)) // it was not said again
	q = begin()
	if q.withdraw(q.second, snsd.ReasonZoneChanged); !q.Stale(q.host.HostKey) {
		t.Error("a host that has come into a zone elsewhere is in the default zone")
	}
}

// A full sync that leaves out a host, and says others of the same device as of its last
// state, says that the host is in a zone elsewhere: at once, not when it is asked.
func TestAFullSyncTellsWhatIsInAZoneElsewhere(t *testing.T) {
	other := hostAt(hostIP(1), devID(0), "Ethernet1")
	for _, later := range []bool{true, false} {
		q := newInquirer(t, true)
		put := func(r netip.Addr, seq uint64, hosts ...zone.Host) {
			u := &Update{Devices: []DeviceStamp{{devID(0), Stamp{Epoch: 5, Seq: seq}}}}
			for _, h := range hosts {
				u.Hosts = append(u.Hosts, HostRecord{Op: Put, Host: h})
			}
			q.say(r, u)
		}
		put(q.second, 1, other)
		put(q.first, 2, q.host, other)
		put(q.second, 2, q.host)
		q.joins(true)
		q.Down(q.second, t0)
		if !later {
			put(q.first, 3, q.host)
		}
		q.Up(q.second, t0)
		put(q.second, 2, other)
		a := q.end(q.second)
		if denied := slices.Contains(a.Denied, q.host.HostKey); denied != later {
			t.Errorf("denied %v, but the state it says is the last one: %v", denied, later)
		}
		q.want("left out", later, !later)
	}
}

// While nobody was told anything nothing is presumed.
func TestNothingIsPresumedBeforeTheFirstSync(t *testing.T) {
	q := newInquirer(t, true)
	q.put(q.first)
	q.say(q.first, &Update{Settings: &Settings{AutoJoin: true}})
	q.end(q.first)
	q.Down(q.second, t0)
	q.want("the other one is down", false, false)
	q.Up(q.second, t0)
	q.want("it is back", true, true)
	q.asks(q.Flush(t0.Add(bulkQuiet)), Put, q.first, q.second) // though its End-of-Sync is held back
	q.answer(q.second, StandingFree)
	q.want("it has answered", false, false)
}

// When auto-join comes into force nobody is in the default zone: no host comes there before
// all have answered.
func TestAutoJoinComesIntoForceWithQuestions(t *testing.T) {
	q := newInquirer(t, true)
	q.joins(false)
	q.put(q.first)
	q.put(q.second)
	q.withdraw(q.second, snsd.ReasonAgedOut)
	q.asks(q.Flush(t0.Add(askDelay)), Put)
	q.say(q.first, &Update{Settings: &Settings{AutoJoin: true}})
	if a := q.say(q.second, &Update{Settings: &Settings{AutoJoin: true}}); !slices.Contains(a.Doubted, q.host.HostKey) {
		t.Errorf("not in doubt: %+v", a)
	}
	q.want("auto-join", true, false)
	q.asks(q.Flush(t0), Put, q.first, q.second)
	q.say(q.first, &Update{Settings: &Settings{}})
	q.asks(q.Flush(t0), Withdraw, q.first, q.second)
}

// A question waits for a full sync that may say the host, and a wait that has become
// void does not put off the next question.
func TestAQuestionWaitsForAFullSyncButNoLonger(t *testing.T) {
	q := newInquirer(t, true)
	q.joins(true)
	q.Down(q.second, t0)
	q.Up(q.second, t0)
	q.put(q.first)
	if due := q.Next(); !due.Equal(t0.Add(bulkQuiet)) {
		t.Errorf("due at %v in the midst of a full sync", due)
	}
	q.asks(q.Flush(t0.Add(askDelay)), Put)
	q.put(q.second)
	q.end(q.second)
	if due := q.Next(); !due.IsZero() {
		t.Errorf("due at %v, but both say the host", due)
	}
	q.withdraw(q.second, snsd.ReasonAgedOut)
	if due := q.Next(); !due.Equal(t0.Add(askDelay)) {
		t.Errorf("due at %v", due)
	}
}

// A reflector that has said the host before its restart, and whose sync is under way, has
// no word that brings the host into the default zone: it is asked.
func TestAWordOfBeforeARestartBringsNobodyIntoTheDefaultZone(t *testing.T) {
	begin := func() *inquirer {
		q := newInquirer(t, true)
		q.put(q.first)
		q.put(q.second)
		q.joins(true)
		if !q.Synced() {
			t.Fatal("not synced")
		}
		q.Down(q.second, t0)
		q.asks(q.Up(q.second, t0), Put) // what it is about to repeat is not asked
		q.want("its sync begins", false, true)
		return q
	}
	back := func(q *inquirer) {
		t.Helper()
		q.withdraw(q.first, snsd.ReasonZoneChanged)
		if a := q.put(q.first); len(a.Hosts) != 1 {
			t.Errorf("not back: %+v", a)
		}
		q.answer(q.first, StandingFree)
		q.want("back by one", false, true)
		q.asks(q.Flush(t0.Add(askDelay)), Put)
		q.asks(q.Flush(t0.Add(bulkQuiet)), Put, q.first, q.second)
	}
	q := begin()
	back(q)
	q.denies(q.second)
	q.want("answered", true, false)
	q.end(q.second)
	q.want("left out", true, false)
	q = begin()
	back(q)
	q.frees(q.second)
	q.want("free", false, false)
	q = begin()
	back(q)
	if a := q.put(q.second); !slices.Contains(a.Placed, q.host.HostKey) {
		t.Errorf("not placed: %+v", a)
	}
	q.want("repeated", false, false)
	q.asks(q.Flush(t0), Withdraw, q.first, q.second)
	q = begin()
	if a := q.receive(q.second, &EndOfSync{Epoch: 3, Seq: q.seq[q.second], Resumed: true}, t0); !slices.Contains(a.Placed, q.host.HostKey) {
		t.Errorf("not placed: %+v", a)
	}
	q.want("resumed", false, false)
	q = begin()
	if a := q.Down(q.second, t0); !slices.Contains(a.Placed, q.host.HostKey) {
		t.Errorf("not placed: %+v", a)
	}
	q.want("gone again", false, false)
}

// What a reflector without auto-join withdraws for its zones may be in a zone elsewhere or in
// none: a host that leaves its zone so does not come into the default zone of another
// reflector before the answer.
func TestAReflectorWithoutAutoJoinIsAskedWhenItTakesAZoneAway(t *testing.T) {
	q := newInquirer(t, true)
	q.SetReflectors(2, AgreeUnion, 10*time.Second)
	q.put(q.first)
	q.put(q.second)
	q.joins(true)
	q.say(q.second, &Update{Settings: &Settings{}})
	if a := q.withdraw(q.second, snsd.ReasonZoneChanged); !slices.Contains(a.Doubted, q.host.HostKey) {
		t.Errorf("not in doubt: %+v", a)
	}
	q.want("taken away", true, false)
	q.asks(q.Flush(t0.Add(askDelay)), Put, q.first, q.second)
	q.frees(q.second)
	q.want("free", false, false)
}

// An answer from before auto-join was switched off says nothing once it is on again.
func TestAnAnswerIsPresumedWhenItIsNoLongerAsked(t *testing.T) {
	q := newInquirer(t, true)
	q.joins(true)
	q.put(q.first)
	q.asks(q.Flush(t0.Add(askDelay)), Put, q.first, q.second)
	q.answer(q.second, StandingFree)
	q.want("free", false, false)
	q.say(q.second, &Update{Settings: &Settings{}})
	q.asks(q.Flush(t0), Withdraw, q.first, q.second)
	if a := q.say(q.second, &Update{Settings: &Settings{AutoJoin: true}}); !slices.Contains(a.Doubted, q.host.HostKey) {
		t.Errorf("not in doubt: %+v", a)
	}
	q.want("auto-join again", true, false)
	q.asks(q.Flush(t0), Put, q.first, q.second)
}

// A reflector that comes back before the first sync is complete takes no host out of the
// default zone that it has said: hosts may have been told of it before this start.
func TestAWordBeforeTheFirstSyncStands(t *testing.T) {
	q := newInquirer(t, true)
	q.put(q.first)
	q.put(q.second)
	q.say(q.first, &Update{Settings: &Settings{AutoJoin: true}})
	q.say(q.second, &Update{Settings: &Settings{AutoJoin: true}})
	q.Down(q.second, t0)
	q.Up(q.second, t0)
	q.want("its sync begins", false, false)
}
