package presence

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

var start = time.Unix(1_800_000_000, 0)

func key(n int) Key {
	return Key{Port: fmt.Sprint("Ethernet", n%8), Addr: netip.AddrFrom4([4]byte{198, 51, byte(n >> 8), byte(n)})}
}

// run lets time pass until the given one and gives how often each was asked and who was lost.
func run(a *Asker, until time.Time) (asked map[Key]int, lost []Key, at time.Time) {
	asked = map[Key]int{}
	for next := a.Next(); !next.IsZero() && !next.After(until); next = a.Next() {
		send, gone := a.Due(next)
		for _, k := range send {
			asked[k]++
		}
		if len(gone) > 0 {
			lost, at = append(lost, gone...), next
		}
	}
	return asked, lost, at
}

func TestAHostThatDoesNotAnswerIsLostAfterItsPatience(t *testing.T) {
	a := NewAsker()
	a.Ask(key(1), start)
	asked, lost, at := run(a, start.Add(time.Hour))
	if asked[key(1)] != questions || len(lost) != 1 || !at.Equal(start.Add(Patience)) || !a.Next().IsZero() {
		t.Errorf("asked %d times, lost %v after %v, next %v", asked[key(1)], lost, at.Sub(start), a.Next())
	}
}

func TestAHostThatAnswersKeepsItsAddressAndIsAskedAgain(t *testing.T) {
	a := NewAsker()
	a.Ask(key(1), start)
	a.Due(start)
	if !a.Heard(key(1), start.Add(time.Millisecond)) || a.Heard(key(1), start.Add(2*time.Millisecond)) {
		t.Error("the first answer counts, and only that")
	}
	if want := start.Add(time.Millisecond + FirstAgain); !a.Next().Equal(want) {
		t.Errorf("next %v, want %v", a.Next(), want)
	}
	at := a.Next()
	for range 10 {
		at = a.Next()
		a.Due(at)
		a.Heard(key(1), at)
	}
	if rest := a.Next().Sub(at); rest != MostAgain {
		t.Errorf("after many answers it is asked after %v", rest)
	}
	if _, lost, _ := run(a, start.Add(time.Hour)); len(lost) != 1 {
		t.Error("a host that has left is not noticed")
	}
}

func TestLateTimersAreNoSilence(t *testing.T) {
	a := NewAsker()
	a.Ask(key(1), start)
	a.Due(start)
	late := start.Add(time.Minute) // the process did not run
	if send, lost := a.Due(late); len(lost) > 0 || len(send) != 1 {
		t.Errorf("sends %v, lost %v", send, lost)
	}
	a.Paused(late)
	if a.Asking(key(1)) {
		t.Error("it waits for answers that nobody could hear")
	}
	if _, lost, at := run(a, late.Add(time.Hour)); len(lost) != 1 || at.Before(late.Add(Patience)) {
		t.Errorf("lost %v at %v", lost, at)
	}
}

func TestSoManyAreAskedAtATimeAndNoMore(t *testing.T) {
	a := NewAsker()
	for i := range 3 * MostAsked {
		a.Ask(key(i), start)
	}
	send, _ := a.Due(start)
	if len(send) != MostAsked || !a.Next().After(start) {
		t.Fatalf("%d are asked at once, next %v", len(send), a.Next().Sub(start))
	}
	_, lost, at := run(a, start.Add(time.Hour))
	if len(lost) != 3*MostAsked || at.Sub(start) > 4*Patience {
		t.Errorf("%d are lost after %v", len(lost), at.Sub(start))
	}
	if c := a.Counters(); c.Asked != 3*MostAsked || c.Unanswered != c.Asked || c.Questions != questions*c.Asked {
		t.Errorf("%+v", c)
	}
}

func TestADroppedQuestionMakesRoom(t *testing.T) {
	a := NewAsker()
	for i := range MostAsked + 1 {
		a.Ask(key(i), start)
	}
	a.Due(start)
	a.Drop(key(0))
	a.Drop(key(0))
	if send, _ := a.Due(start); len(send) != 1 {
		t.Errorf("sends %v", send)
	}
}

// An address that may not be there yet is asked for until Drop: soon again at first, at most so far
// apart, and soon again when what is known of it changes.
func TestAWatchedAddressIsAskedForWhetherItIsThereOrNot(t *testing.T) {
	const most = 30 * time.Second
	a := NewAsker()
	a.Watch(key(1), most, start)
	there := false
	var at []time.Duration // when rounds begin
	var lost int
	for next := a.Next(); next.Sub(start) < 4*time.Minute; next = a.Next() {
		there = next.Sub(start) > 90*time.Second && next.Sub(start) < 200*time.Second
		resting := !a.Asking(key(1))
		send, gone := a.Due(next)
		lost += len(gone)
		if resting && len(send) > 0 {
			at = append(at, next.Sub(start).Round(time.Second))
		}
		if there && a.Asking(key(1)) {
			a.Heard(key(1), next)
		}
	}
	want := "[0s 1s 3s 8s 16s 32s 1m2s 1m32s 1m37s 1m47s 2m7s 2m37s 3m7s 3m37s 3m39s 3m41s 3m45s 3m53s]"
	if got := fmt.Sprint(at); got != want || lost != 12 {
		t.Errorf("asked at %s, want %s; %d times without an answer", got, want, lost)
	}
	a.Drop(key(1))
	if !a.Next().IsZero() || a.Len() != 0 {
		t.Error("it is asked for after Drop")
	}
}

// What is asked for most: 16,384 pairs of a port and an address. Each event of a device asks when
// the next question is due.
func BenchmarkNext(b *testing.B) {
	a := NewAsker()
	for i := range 16384 {
		a.Watch(key(i), time.Minute, start)
	}
	for b.Loop() {
		a.Next()
	}
}
