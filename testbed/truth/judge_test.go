package truth

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

var (
	addrA, addrB, addrC = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")
	devX, devY          = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
)

// An agent like the existing one remembers what it was told when its link goes, and must
// not be told it twice for that without a reason.
func TestAnAgentLikeTheExistingOneForgetsNothingWithItsLink(t *testing.T) {
	for _, like := range []bool{false, true} {
		c := newCourt(t)
		c.truth.places[0].Like = like
		c.event(addrA, "link")
		if lacks := len(c.judge.Absent()) > 0; lacks == like {
			t.Errorf("like %v: something is absent: %v", like, lacks)
		}
	}
}

func TestHostsOfOneRoleAreNotToldOfEachOther(t *testing.T) {
	c := newCourt(t)
	c.truth.places[0].Role, c.truth.places[1].Role, c.truth.places[2].Role = snsd.RoleInitiator, snsd.RoleInitiator, snsd.RoleTarget
	c.truth.refresh(c.tick())
	if a := c.truth.now(Pair{addrA, addrB}).cond.active(); a {
		t.Error("an initiator must know of another one")
	}
	if a := c.truth.now(Pair{addrA, addrC}).cond.active(); !a {
		t.Error("an initiator need not know of a target")
	}
}

func TestACarrierFaultThatIsTold(t *testing.T) {
	c := newCourt(t)
	var since time.Time
	c.judge.News = func(_ Notice, from, _ time.Time) { since = from }
	c.truth.SetLink(addrB, false, c.tick())
	pulled := c.now
	c.says(addrA, addrB, "inactive", "link-down")
	c.clean("told at the same switch")
	if !since.Equal(pulled) {
		t.Errorf("true since %s, want %s", since, pulled)
	}
	c.truth.SetLink(addrB, true, c.tick())
	c.says(addrC, addrB, "inactive", "link-down") // late, but in order
	c.says(addrC, addrB, "active", "none")
	c.says(addrA, addrB, "active", "none")
	c.quiet()
	c.clean("all told")
	if n := c.judge.Tally; n.Expected != 6 || n.Received != 10 {
		t.Errorf("tally %+v", n) // the six at the beginning; in the end nothing differs from before
	}
}

func TestWhatIsNotToldIsMissing(t *testing.T) {
	c := newCourt(t)
	c.truth.SetLink(addrB, false, c.tick())
	c.says(addrA, addrB, "inactive", "link-down")
	c.quiet()
	c.finds(Missing, "192.0.2.3 about 192.0.2.2", "last told active", "inactive (link-down)")
}

func TestWhatIsNotTrueIsUnexpected(t *testing.T) {
	for name, do := range map[string]func(*court){
		"never true":         func(c *court) { c.says(addrA, addrB, "inactive", "link-down") },
		"another reason":     func(c *court) { c.truth.SetLink(addrB, false, c.tick()); c.says(addrA, addrB, "inactive", "aged-out") },
		"of another subject": func(c *court) { c.truth.SetLink(addrC, false, c.tick()); c.says(addrA, addrB, "inactive", "link-down") },
		"true before the last quiet moment": func(c *court) {
			c.truth.SetLink(addrB, false, c.tick())
			c.truth.SetLink(addrB, true, c.tick())
			c.quiet()
			c.says(addrA, addrB, "inactive", "link-down")
		},
		"more often than it was true": func(c *court) {
			c.truth.SetLink(addrB, false, c.tick())
			c.truth.SetLink(addrB, true, c.tick())
			c.says(addrA, addrB, "inactive", "link-down")
			c.says(addrA, addrB, "active", "none")
			c.says(addrA, addrB, "inactive", "link-down")
		},
		"outside of its zones": func(c *court) {
			c.truth.SetZone("z", []netip.Addr{addrA, addrB}, c.tick())
			c.says(addrA, addrC, "inactive", "zone-changed")
			c.says(addrC, addrA, "inactive", "zone-changed")
			c.says(addrB, addrC, "inactive", "zone-changed")
			c.says(addrC, addrB, "inactive", "zone-changed")
			c.quiet()
			c.clean("zones changed")
			c.says(addrC, addrB, "active", "none")
		},
		"again for no reason":    func(c *court) { c.says(addrA, addrB, "active", "none") },
		"of nobody that is here": func(c *court) { c.says(addrA, netip.MustParseAddr("192.0.2.99"), "active", "none") },
		"a number with another word": func(c *court) {
			c.truth.SetLink(addrB, false, c.tick())
			c.resent(addrA, addrB, "inactive", "link-down", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t)
			do(c)
			c.finds(Unexpected)
		})
	}
}

// An inactive notice about what was never told is wrong whatever the truth is.
func TestTheFirstWordIsActive(t *testing.T) {
	c := newCourt(t)
	c.judge.pairs[Pair{addrA, addrB}] = &told{at: -1}
	c.truth.SetLink(addrB, false, c.tick())
	c.says(addrA, addrB, "inactive", "link-down")
	c.finds(Unexpected, "never told of it before")
}

// Each zone query is answered once, and no more.
func TestEveryRepetitionNeedsAReason(t *testing.T) {
	c := newCourt(t)
	for range 2 {
		c.event(addrA, "query")
		c.says(addrA, addrB, "active", "none")
		c.says(addrA, addrC, "active", "none")
	}
	c.judge.Grant(addrA) // its own cable was pulled
	c.says(addrA, addrB, "active", "none")
	c.event(addrA, "withdrawn")
	c.says(addrA, addrB, "active", "none")
	c.clean("answers")
	if n := c.judge.Tally.Answers; n != 6 {
		t.Errorf("%d answers, want 6", n)
	}
	c.says(addrA, addrB, "active", "none")
	c.finds(Unexpected, "there were 4 reasons")
}

// A switch that is killed right after it told a fault knows the word before, and repeats it
// with its number once that is true again.
func TestAWordBeforeTheLastIsRepeatedAfterAKillOnly(t *testing.T) {
	for name, do := range map[string]struct {
		killed, over bool
		wrong        string
	}{
		"killed":                    {true, true, ""},
		"killed, but still a fault": {true, false, "not true"},
		"not killed":                {false, true, "it is repeated after number"},
	} {
		c := newCourt(t)
		c.judge.Restarted = func(netip.Addr) bool { return do.killed }
		c.truth.SetLink(addrB, false, c.tick())
		c.says(addrA, addrB, "inactive", "link-down")
		c.says(addrC, addrB, "inactive", "link-down")
		c.truth.SetLink(addrB, true, c.tick())
		seq := c.says(addrA, addrB, "active", "none")
		c.says(addrC, addrB, "active", "none")
		c.truth.SetLink(addrB, false, c.tick())
		c.says(addrA, addrB, "inactive", "link-down")
		if do.over {
			c.truth.SetLink(addrB, true, c.tick())
		}
		c.resent(addrA, addrB, "active", "none", seq)
		if do.wrong != "" {
			c.finds(Unexpected, do.wrong)
			continue
		}
		c.quiet()
		c.clean(name)
	}
}

// A host that was away when its peer left the zone hears in a later round that it is back.
func TestAnAgentThatForgotHearsOfAPeerThatIsBack(t *testing.T) {
	c := newCourt(t)
	c.event(addrA, "query") // its agent was started anew
	c.truth.SetZone("z", []netip.Addr{addrA, addrB}, c.tick())
	c.says(addrB, addrC, "inactive", "zone-changed")
	c.says(addrC, addrB, "inactive", "zone-changed")
	c.says(addrC, addrA, "inactive", "zone-changed")
	c.says(addrA, addrB, "active", "none") // the answer
	c.quiet()
	c.clean("C has left")
	c.truth.SetZone("z", []netip.Addr{addrA, addrB, addrC}, c.tick())
	for _, p := range []Pair{{addrA, addrC}, {addrB, addrC}, {addrC, addrA}, {addrC, addrB}} {
		c.says(p.Host, p.Subject, "active", "none")
	}
	c.quiet()
	c.clean("C is back")
	c.says(addrA, addrC, "active", "none")
	c.finds(Unexpected, "0 reasons to tell it again")
}

func TestReasonsToRepeatEndWithTheRound(t *testing.T) {
	c := newCourt(t)
	c.event(addrA, "query")
	c.says(addrA, addrB, "active", "none")
	c.says(addrA, addrC, "active", "none")
	c.event(addrA, "query")
	c.says(addrA, addrC, "active", "none")
	c.says(addrA, addrB, "active", "none")
	c.event(addrA, "query") // not answered before the round ends: the agent has forgotten
	c.quiet()
	if n := len(c.judge.Findings); n != 2 {
		t.Fatalf("%d findings, want two pairs of which the agent knows nothing: %v", n, c.judge.Findings)
	}
	c.judge.Findings = nil
	c.says(addrA, addrB, "active", "none")
	c.finds(Unexpected, "there were 0 reasons")
}

func TestAFrameIsRepeatedWhileItIsTheLastWord(t *testing.T) {
	c := newCourt(t)
	c.truth.SetLink(addrB, false, c.tick())
	gone := c.says(addrA, addrB, "inactive", "link-down")
	c.resent(addrA, addrB, "inactive", "link-down", gone)
	c.truth.SetLink(addrB, true, c.tick())
	c.says(addrA, addrB, "active", "none")
	c.clean("in order")
	c.resent(addrA, addrB, "inactive", "link-down", gone)
	c.finds(Unexpected, "is repeated after")
}

// Devices may learn of a zone and of a cable in either order, but of neither before
// it is so.
func TestCausesOfDifferentOrigin(t *testing.T) {
	c := newCourt(t)
	c.truth.SetZone("z", []netip.Addr{addrA, addrB}, c.tick())
	c.truth.SetLink(addrC, false, c.tick())
	c.says(addrA, addrC, "inactive", "link-down") // the cable is known first
	c.says(addrA, addrC, "inactive", "zone-changed")
	c.says(addrB, addrC, "inactive", "zone-changed")
	c.says(addrC, addrA, "inactive", "zone-changed")
	c.says(addrC, addrB, "inactive", "zone-changed")
	c.clean("either order")
	c.says(addrB, addrC, "inactive", "aged-out")
	c.finds(Unexpected, "any order")
}

// A path fault concerns the hosts of the two devices, and no others.
func TestAPathFault(t *testing.T) {
	c := newCourt(t)
	c.truth.SetPath(devY, devX, false, c.tick())
	c.says(addrA, addrC, "inactive", "bfd-down")
	c.says(addrB, addrC, "inactive", "bfd-down")
	c.says(addrC, addrA, "inactive", "bfd-down")
	c.says(addrC, addrB, "inactive", "bfd-down")
	c.quiet()
	c.clean("told at both ends")
	c.says(addrA, addrB, "inactive", "bfd-down")
	c.finds(Unexpected)
}

// A host must be told that it shares no zone any more, even if it knew that the
// subject is unreachable.
func TestAZoneThatEndsWhileTheCableIsPulled(t *testing.T) {
	c := newCourt(t)
	c.truth.SetLink(addrC, false, c.tick())
	c.says(addrA, addrC, "inactive", "link-down")
	c.says(addrB, addrC, "inactive", "link-down")
	c.truth.SetZone("z", []netip.Addr{addrA, addrB}, c.tick())
	c.says(addrA, addrC, "inactive", "zone-changed")
	c.says(addrC, addrA, "inactive", "zone-changed")
	c.says(addrC, addrB, "inactive", "zone-changed")
	c.quiet()
	c.finds(Missing, "192.0.2.2 about 192.0.2.3", "shares no zone any more")
}

// A subject that ages out while it is unreachable is forgotten by the switch, and with
// it what would have to be said at the end of a zone.
func TestAZoneThatEndsAfterAnUnreachableSubjectHasAgedOut(t *testing.T) {
	for _, out := range []bool{false, true} {
		c := newCourt(t)
		c.truth.SetLink(addrC, false, c.tick())
		c.says(addrA, addrC, "inactive", "link-down")
		c.says(addrB, addrC, "inactive", "link-down")
		if out {
			c.truth.SetAgent(addrC, false, c.tick())
			c.truth.SetAgent(addrC, true, c.tick())
		}
		c.truth.SetZone("z", []netip.Addr{addrA, addrB}, c.tick())
		c.says(addrA, addrC, "inactive", "zone-changed")
		c.says(addrC, addrA, "inactive", "zone-changed")
		c.says(addrC, addrB, "inactive", "zone-changed")
		c.quiet()
		if out {
			c.clean("B's switch knew nothing of C any more")
		} else {
			c.finds(Missing, "192.0.2.2 about 192.0.2.3")
		}
	}
}

// An agent that forgot must be told again, unless nobody could hear its query.
func TestAnAgentThatForgot(t *testing.T) {
	c := newCourt(t)
	c.event(addrA, "query")
	c.says(addrA, addrB, "active", "none")
	lost := false
	c.judge.Lost = func(host netip.Addr, _ time.Time) bool { return lost && host == addrA }
	if n := len(c.judge.Absent()); n != 1 {
		t.Errorf("%d pairs are absent, want 1", n)
	}
	lost = true
	c.quiet()
	c.clean("the query was lost")
	if c.judge.Tally.Forgotten != 1 {
		t.Errorf("tally %+v", c.judge.Tally)
	}
}

func TestComplaintsOfAgentsAreFindings(t *testing.T) {
	c := newCourt(t)
	c.event(addrA, "deaf")
	c.finds(Broken)
}

// What an agent does not remember it need not be told to be gone.
func TestAnAgentThatForgotNeedsNoWordOfWhatIsGone(t *testing.T) {
	c := newCourt(t)
	c.event(addrA, "query")
	c.truth.SetLink(addrB, false, c.tick())
	c.says(addrA, addrC, "active", "none")
	c.says(addrC, addrB, "inactive", "link-down")
	c.quiet()
	c.clean("the agent of A forgot B")
}

// Only a switch that was restarted may call the end of a zone by another name.
func TestASwitchThatWasRestartedKnowsNoZones(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		c := newCourt(t)
		c.judge.Restarted = func(netip.Addr) bool { return restarted }
		c.truth.SetZone("z", []netip.Addr{addrA, addrB}, c.tick())
		c.says(addrA, addrC, "inactive", "aged-out")
		if !restarted {
			c.finds(Unexpected)
			continue
		}
		c.clean("restarted")
	}
}

// While it is not known whether a path is good both words may come, as often as they
// like, and no other.
func TestAPathInDoubt(t *testing.T) {
	c := newCourt(t)
	c.truth.DoubtPath(devX, devY, true, c.tick())
	for range 2 {
		c.says(addrA, addrC, "inactive", "bfd-down")
		c.says(addrA, addrC, "active", "none")
	}
	c.says(addrB, addrC, "inactive", "bfd-down")
	c.truth.DoubtPath(devX, devY, false, c.tick())
	c.says(addrB, addrC, "active", "none")
	c.quiet()
	c.clean("in doubt, and good again")
	c.truth.DoubtPath(devX, devY, true, c.tick())
	c.says(addrA, addrB, "inactive", "bfd-down")
	c.finds(Unexpected)
}

// A switch that was stopped reads a registration of before and a cable of after in
// any order; one that was not does not.
func TestASwitchThatWasStopped(t *testing.T) {
	for _, paused := range []bool{false, true} {
		c := newCourt(t)
		c.judge.Paused = func(subject netip.Addr) bool { return paused && subject == addrB }
		c.truth.SetAgent(addrB, false, c.tick())
		c.truth.SetLink(addrB, false, c.tick())
		c.truth.SetLink(addrB, true, c.tick())
		c.says(addrC, addrB, "inactive", "link-down")
		c.says(addrC, addrB, "active", "none")
		if !paused {
			c.finds(Unexpected)
			continue
		}
		c.clean("stopped")
	}
}

// What was told while an agent was away is lost: to it the next word is news, even if
// it is the last one that it had heard.
func TestAWordIsNewsToAnAgentThatMissedTheOneBefore(t *testing.T) {
	for _, away := range []bool{false, true} {
		c := newCourt(t)
		c.truth.SetLink(addrB, false, c.tick())
		c.says(addrA, addrB, "inactive", "link-down")
		c.truth.SetLink(addrB, true, c.tick())
		c.truth.SetLink(addrB, false, c.tick())
		if away {
			c.event(addrA, "query") // it was started again
		}
		c.says(addrA, addrB, "inactive", "link-down")
		if away {
			c.clean("the agent was away")
		} else {
			c.finds(Unexpected, "told so before")
		}
	}
}

func TestAPortThatIsShutMustBeTold(t *testing.T) {
	c := newCourt(t)
	c.port(addrB, PortDamaged)
	c.says(addrA, addrB, "inactive", "packet-error")
	c.port(addrB, PortShut)
	c.quiet()
	c.finds(Missing, "192.0.2.3 about 192.0.2.2", "last told active", "inactive (packet-error)")
}

// The times until a notice are those of pulled cables.
func TestAPortThatOpensIsNoPulledCable(t *testing.T) {
	c := newCourt(t)
	var since []time.Time
	c.judge.News = func(n Notice, from, _ time.Time) {
		if n.Reason == LinkDown {
			since = append(since, from)
		}
	}
	c.port(addrB, PortDamaged)
	c.port(addrB, PortShut)
	c.port(addrB, PortOpening)
	c.says(addrA, addrB, "inactive", "link-down")
	if len(since) != 1 || !since[0].IsZero() {
		t.Errorf("counted from %v", since)
	}
}
