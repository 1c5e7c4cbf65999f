package truth

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/testbed/agentlog"
)

// Finding is a mistake of the fabric.
type Finding struct {
	Kind    string     `json:"kind"` // unexpected, missing, or broken
	Time    time.Time  `json:"time"`
	Host    netip.Addr `json:"host,omitzero"`
	Subject netip.Addr `json:"subject,omitzero"`
	Text    string     `json:"text"`
}

// The kinds of findings.
const (
	Unexpected = "unexpected"
	Missing    = "missing"
	Broken     = "broken" // something else is not as it must be
)

func (f Finding) String() string {
	return fmt.Sprintf("%s %s: %s", f.Time.Format("15:04:05.000000"), f.Kind, f.Text)
}

// Tally counts notices.
type Tally struct {
	Expected   int `json:"expected"`   // least number that had to come: last words that had to change
	Received   int `json:"received"`   // that said something new
	Answers    int `json:"answers"`    // that repeated what is true, as they may
	Resent     int `json:"resent"`     // frames repeated because no ack came
	Unexpected int `json:"unexpected"` // wrong ones
	Missing    int `json:"missing"`
	// Words are the received ones by what they said.
	Words     map[string]int `json:"words"`
	Forgotten int            `json:"lost_queries"` // pairs of agents that asked while their switch had no daemon
}

// told is what a host was told of a subject.
type told struct {
	Said
	at    int       // index in the truth's stretches of this round that it was matched with
	spent int       // repetitions used up in this round
	last  time.Time // of the word, retransmissions included
	fresh bool      // told since the agent forgot
	trip  int       // the last fault of the subject's port that it was told of
	final Word      // at the last quiet moment
	was   bool      // it was told at all then
}

// Judge compares what hosts are told with the History. It is no goroutine's own: the caller
// sees to it that calls of Judge and History do not overlap.
type Judge struct {
	truth    *History
	begin    time.Time // of the round
	pairs    map[Pair]*told
	granted  map[netip.Addr]int       // repetitions that a host may hear in this round
	asked    map[netip.Addr]time.Time // last zone query
	forgot   map[netip.Addr]time.Time // when the agent forgot last
	Tally    Tally
	Findings []Finding
	// Restarted reports whether the switch of a host had no daemon for a while since
	// the last quiet moment (nil: none had). One that was restarted cannot tell that an
	// address has left from that it shares no zone any more, and may call it either.
	Restarted func(host netip.Addr) bool
	// Paused reports whether the switch of a subject was stopped for a while since the last
	// quiet moment (nil: none was). One that goes on finds frames and carrier events of
	// the meantime in an order that is not that in which they happened.
	Paused func(subject netip.Addr) bool
	// Lost reports whether a zone query that a host sent then was lost because its
	// switch had no daemon (nil: none ever is).
	Lost func(host netip.Addr, asked time.Time) bool
	// News hears of each new Word and since when it was true (zero: not exactly known).
	News func(n Notice, since, at time.Time)
}

// NewJudge begins at a moment when nobody was told anything.
func NewJudge(t *History, at time.Time) *Judge {
	j := &Judge{truth: t, begin: at, pairs: map[Pair]*told{}, granted: map[netip.Addr]int{},
		asked: map[netip.Addr]time.Time{}, forgot: map[netip.Addr]time.Time{}, Tally: Tally{Words: map[string]int{}}}
	for _, p := range t.pairs {
		j.pairs[p] = &told{at: -1}
	}
	return j
}

// Begin is when the round began.
func (j *Judge) Begin() time.Time { return j.begin }

// Grant lets a host be told once more of what is active, for a reason that is not in its
// agent's own output.
func (j *Judge) Grant(host netip.Addr) { j.granted[host]++ }

// lost reports whether the last query of a host's agent was lost.
func (j *Judge) lost(host netip.Addr) bool { return j.Lost != nil && j.Lost(host, j.asked[host]) }

// Hear takes a line of an agent that owns the addresses. An agent like the existing one
// remembers what it was told when its link goes.
func (j *Judge) Hear(owns []netip.Addr, l agentlog.Line) {
	switch l.Event {
	case "query":
		for _, a := range owns {
			j.granted[a]++
			j.asked[a] = l.Time
			j.forget(a, l.Time)
		}
	case "link":
		for _, a := range owns {
			if p, _ := j.truth.Place(a); !p.Like {
				j.forget(a, l.Time)
			}
		}
	case "withdrawn":
		for _, a := range owns {
			j.granted[a]++
		}
	case "notice", "duplicate":
		j.notice(l)
	case "refused", "deaf", "no-room", "error":
		j.Find(Finding{Kind: Broken, Time: l.Time, Host: l.Host, Subject: l.Subject, Text: fmt.Sprintf("agent of %v: %s", owns, l.Raw)})
	}
}

// forget is what an agent does when its link changes or it is started.
func (j *Judge) forget(host netip.Addr, at time.Time) {
	j.forgot[host] = at
	for p, x := range j.pairs {
		if p.Host == host {
			x.fresh = false
		}
	}
}

func (j *Judge) notice(l agentlog.Line) {
	p := Pair{l.Host, l.Subject}
	x := j.pairs[p]
	if x == nil {
		j.wrong(p, l, "there is no such pair of addresses")
		return
	}
	w := Word{Active: l.State == Active}
	if !w.Active {
		w.Reason = l.Reason
	}
	fresh := x.fresh
	x.last, x.fresh = l.Time, true
	is, why := x.Hear(l.Seq, w)
	switch {
	case is == Resent:
		j.Tally.Resent++
	case is == Wrong:
		j.wrong(p, l, why)
	case is == Behind:
		j.Tally.Resent++
		// A switch that was killed right after it told something may know the word before
		// only, and repeats that if it is true.
		if j.Restarted == nil || !j.Restarted(p.Host) {
			j.wrong(p, l, why)
			return
		}
		x.Take(l.Seq, w)
		j.news(p, x, l)
	case is == Again && (fresh || w.Active && (x.spent < j.granted[p.Host] || !j.returned(p, l.Time))):
		j.repeat(p, x, l)
	default:
		// An agent that was away has missed what came between: to it an inactive one is news,
		// and so is one that is active again, if this is not the answer to its query.
		j.Tally.Received++
		j.Tally.Words[w.String()]++
		j.news(p, x, l)
	}
}

// returned reports whether a subject has become active since the last quiet moment.
func (j *Judge) returned(p Pair, at time.Time) bool {
	line := j.truth.since(p, j.begin)
	for i := 1; i < len(line) && !line[i].from.After(at); i++ {
		if a := (Word{Active: true}); line[i].says(a) && !line[i-1].says(a) {
			return true
		}
	}
	return false
}

// repeat looks at a word that is the last one again.
func (j *Judge) repeat(p Pair, x *told, l agentlog.Line) {
	if x.Word.Active && x.spent < j.granted[p.Host] {
		x.spent++
		j.Tally.Answers++
		if !slices.ContainsFunc(j.truth.since(p, j.begin), func(s stretch) bool { return s.says(Word{Active: true}) && !s.from.After(l.Time) }) {
			j.wrong(p, l, "an answer that is not true")
		}
		return
	}
	j.Tally.Received++
	j.wrong(p, l, fmt.Sprintf("it was told so before, and there were %d reasons to tell it again", j.granted[p.Host]))
}

// news looks at a word that differs from the last one.
func (j *Judge) news(p Pair, x *told, l agentlog.Line) {
	line := j.truth.since(p, j.begin)
	w := x.Word
	if w.Reason == AgedOut && j.Restarted != nil && j.Restarted(p.Host) && slices.ContainsFunc(line, func(s stretch) bool { return s.cond[byZone] && !s.from.After(l.Time) }) {
		w.Reason = ZoneGone
	}
	if mixed(line, j.Paused != nil && j.Paused(p.Subject)) {
		if possible(line, w, l.Time) {
			j.tell(p, x.Word, time.Time{}, l.Time)
		} else {
			j.wrong(p, l, "not true since the last quiet moment, for any order of the changes")
		}
		return
	}
	for i := max(x.at, 0); i < len(line); i++ {
		if line[i].says(w) && !line[i].from.After(l.Time) && !x.knows(line[i], w) {
			x.at = i
			if w.Reason == Damaged {
				x.trip = max(x.trip, line[i].trip)
			}
			since := line[i].from
			again := slices.ContainsFunc(line[i+1:], func(s stretch) bool { return s.says(w) && !s.from.After(l.Time) })
			if i == 0 || again || line[i-1].cond[byPort] { // it flaps: nobody knows which time was meant; or it is being opened
				since = time.Time{}
			}
			j.tell(p, x.Word, since, l.Time)
			return
		}
	}
	j.wrong(p, l, "not true since the last quiet moment, or only before what it was told last")
}

// knows reports whether a host was told already that the switch has found the damaged
// frames of which it is in doubt: then it has, and nobody is active there any more.
func (x *told) knows(s stretch, w Word) bool { return w.Active && s.trip > 0 && s.trip <= x.trip }

func (j *Judge) tell(p Pair, w Word, since, at time.Time) {
	if j.News != nil {
		j.News(w.about(p), since, at)
	}
}

// mixed reports whether causes of different origins changed: zones are known from reflectors,
// cables and registrations from the access switch, paths are seen from both ends. Damaged frames
// are found by the switch that has the cable. A switch that was paused knows cables and
// registrations from different sockets.
func mixed(line []stretch, paused bool) bool {
	origin := [causes]int{byZone: 0, byLink: 1, byAgent: 1, byPath: 2, byPort: 1}
	if paused {
		origin[byAgent] = 3
	}
	var changed [4]bool
	for i := 1; i < len(line); i++ {
		for x := range causes {
			if line[i].cond[x] != line[i-1].cond[x] || line[i].doubt[x] != line[i-1].doubt[x] {
				changed[origin[x]] = true
			}
		}
	}
	n := 0
	for _, c := range changed {
		if c {
			n++
		}
	}
	return n > 1
}

// possible reports whether a word could be true if the causes had changed in another order.
func possible(line []stretch, w Word, at time.Time) bool {
	var good, bad cond
	for _, s := range line {
		if s.from.After(at) {
			break
		}
		for x, b := range s.cond {
			good[x] = good[x] || !b
			bad[x] = bad[x] || b
			if s.doubt[x] {
				good[x], bad[x] = true, true
			}
		}
	}
	if !w.Active {
		return bad.says(w)
	}
	return !slices.Contains(good[:], false)
}

func (j *Judge) wrong(p Pair, l agentlog.Line, why string) {
	j.Tally.Unexpected++
	j.Find(Finding{Kind: Unexpected, Time: l.Time, Host: p.Host, Subject: p.Subject,
		Text: fmt.Sprintf("%s was told that %s is %s %s, number %d: %s; the truth was %s",
			p.Host, p.Subject, l.State, l.Reason, l.Seq, why, describe(j.truth.since(p, j.begin)))})
}

// maxFindings bounds what is kept; all are counted.
const maxFindings = 1000

// Find adds a finding.
func (j *Judge) Find(f Finding) {
	if len(j.Findings) < maxFindings {
		j.Findings = append(j.Findings, f)
	}
}

// maxTold is how much of a pair's story is told.
const maxTold = 12

// describe tells a pair's story, or how it ended.
func describe(line []stretch) string {
	var b strings.Builder
	if n := len(line) - maxTold; n > 0 {
		fmt.Fprintf(&b, "(%d times before) ", n)
		line = line[n:]
	}
	for i, s := range line {
		if i > 0 {
			b.WriteString(", ")
		}
		state := "active"
		if !s.cond.active() {
			var why []string
			for x, bad := range s.cond {
				if bad {
					why = append(why, reasonOf[x])
				}
			}
			state = "inactive (" + strings.Join(why, " ") + ")"
		}
		for x, doubt := range s.doubt {
			if doubt {
				state += " or perhaps " + reasonOf[x]
			}
		}
		fmt.Fprintf(&b, "%s from %s", state, s.from.Format("15:04:05.000000"))
	}
	return b.String()
}

// Absent lists what hosts do not know that they must now. While the fabric is
// healing that is only a matter of time.
func (j *Judge) Absent() []Finding {
	var out []Finding
	for _, p := range j.truth.pairs {
		x, s := j.pairs[p], j.truth.now(p)
		miss := func(format string, args ...any) {
			out = append(out, Finding{Kind: Missing, Time: time.Now(), Host: p.Host, Subject: p.Subject,
				Text: fmt.Sprintf("%s about %s: ", p.Host, p.Subject) + fmt.Sprintf(format, args...) + "; the truth is " + describe([]stretch{s})})
		}
		switch {
		case s.cond.active() && !x.Any:
			miss("it was told nothing")
		case s.cond.active() && !x.Word.Active:
			miss("it was last told %s at %s, number %d", x.Word, x.last.Format("15:04:05.000000"), x.Seq)
		case s.cond.active() && !x.fresh && !j.lost(p.Host):
			miss("its agent forgot at %s and was told nothing since", j.forgot[p.Host].Format("15:04:05.000000"))
		case !x.fresh: // its agent does not remember that it was told of it
		case !s.cond.active() && x.Any && x.Word.Active:
			miss("it was last told active at %s, number %d", x.last.Format("15:04:05.000000"), x.Seq)
		case s.cond[byZone] && x.Any && x.Word.Reason != ZoneGone && x.Word.Reason != AgedOut && !j.agedOut(p):
			miss("it was last told %s and not that it shares no zone any more", x.Word)
		}
	}
	return out
}

// agedOut reports whether a subject was not registered for a while in this round. A switch that had
// told of it that it was unreachable has nothing to add then and forgets the pair (package
// hostnotify, What a host is told): when the subject is back, and leaves the zone before it is
// reachable again, nothing is left to be taken back.
func (j *Judge) agedOut(p Pair) bool {
	return slices.ContainsFunc(j.truth.since(p, j.begin), func(s stretch) bool { return s.cond[byAgent] })
}

// Quiet ends a round: what is absent is missing. A new round begins.
func (j *Judge) Quiet(at time.Time) {
	absent := j.Absent()
	j.Tally.Missing += len(absent)
	j.Tally.Expected += len(absent)
	for _, f := range absent {
		j.Find(f)
	}
	for _, p := range j.truth.pairs {
		x := j.pairs[p]
		if x.Any && (!x.was || x.final != x.Word) {
			j.Tally.Expected++
		}
		if j.truth.now(p).cond.active() && !x.fresh && j.lost(p.Host) {
			j.Tally.Forgotten++
			x.fresh = true
		}
		x.final, x.was = x.Word, x.Any
		x.at, x.spent = -1, 0
	}
	clear(j.granted)
	j.begin = at
	j.truth.trim(at)
}
