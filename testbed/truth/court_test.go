package truth

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/testbed/agentlog"
)

// court is a Judge of three addresses: a and b behind one switch, c behind another; all
// in zone z, registered and told of each other.
type court struct {
	t     *testing.T
	truth *History
	judge *Judge
	now   time.Time
	seq   uint32
}

func newCourt(t *testing.T) *court {
	c := &court{t: t, now: time.Unix(1_800_000_000, 0)}
	places := []Place{{Addr: addrA, Device: devX}, {Addr: addrB, Device: devX}, {Addr: addrC, Device: devY}}
	c.truth = NewHistory(places, map[string][]netip.Addr{"z": {addrA, addrB, addrC}, "extra": nil}, c.now)
	c.judge = NewJudge(c.truth, c.now)
	for _, p := range places {
		c.truth.SetAgent(p.Addr, true, c.tick())
	}
	for _, p := range c.truth.pairs {
		c.says(p.Host, p.Subject, "active", "none")
	}
	c.quiet()
	c.clean("the beginning")
	return c
}

func (c *court) tick() time.Time {
	c.now = c.now.Add(100 * time.Millisecond)
	return c.now
}

// says lets a host be told something new, with a number of its own.
func (c *court) says(host, subject netip.Addr, state, reason string) uint32 {
	c.seq++
	c.resent(host, subject, state, reason, c.seq)
	return c.seq
}

func (c *court) resent(host, subject netip.Addr, state, reason string, seq uint32) {
	c.judge.Hear([]netip.Addr{host}, agentlog.Line{Time: c.tick(), Event: "notice", Host: host, Subject: subject, State: state, Reason: reason, Seq: seq})
}

func (c *court) event(host netip.Addr, event string) {
	c.judge.Hear([]netip.Addr{host}, agentlog.Line{Time: c.tick(), Event: event})
}

func (c *court) quiet() { c.judge.Quiet(c.tick()) }

func (c *court) clean(when string) {
	c.t.Helper()
	if len(c.judge.Findings) > 0 {
		c.t.Fatalf("%s: %v", when, c.judge.Findings)
	}
}

// finds wants just one finding, with these words.
func (c *court) finds(kind string, words ...string) {
	c.t.Helper()
	if len(c.judge.Findings) != 1 || c.judge.Findings[0].Kind != kind {
		c.t.Fatalf("findings %v, want one that is %s", c.judge.Findings, kind)
	}
	for _, w := range words {
		if !strings.Contains(c.judge.Findings[0].Text, w) {
			c.t.Errorf("finding %v, want %q in it", c.judge.Findings[0], w)
		}
	}
}

// port puts the port of an address into a phase of damaged frames.
func (c *court) port(addr netip.Addr, is Phase) { c.truth.SetPort(addr, is, c.tick()) }
