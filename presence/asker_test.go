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
