package sim

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/cluster"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// This file shows that the judge finds each fault that it is there for.

// trial is a fabric at rest of two switches, in which h1 to h3, a target, an initiator and one
// that is both, share a zone, h4 is in one of its own, and h5 is an initiator beside h2.
func trial(t *testing.T) *world {
	w := newWorld(Config{Seed: 1, Devices: 2, Reflectors: 1, Hosts: 5})
	w.build()
	member := func(n int) zone.Member { return zone.Member{Kind: zone.MemberAddr, First: w.hosts[n-1].addrs[0]} }
	w.zones = history{zone.Set{Zones: []zone.Zone{
		{Name: "a", Members: []zone.Member{member(1), member(2), member(3), member(5)}}, {Name: "b", Members: []zone.Member{member(4)}}}}.Canonical()}
	for _, h := range w.hosts {
		h.addrs = h.addrs[:1]
	}
	for _, d := range w.all {
		d.start()
	}
	for _, h := range w.hosts {
		h.boot()
	}
	if w.run(time.Minute); !w.checked() {
		t.Fatalf("the trial: %v", w.fails)
	}
	return w
}

// says has the switch of a host tell it of another one, with a number of its own.
func (w *world) says(host, subject int, n snsd.Notice) {
	h, s := w.hosts[host-1], w.hosts[subject-1]
	n.Host, n.Subject = h.addrs[0], s.addrs[0]
	last := w.wire[pairKey{h.link.dev.id, n.Host, n.Subject}]
	if n.Seq == 0 && last != nil {
		n.Seq = last.Seq
	}
	n.Seq++
	w.spokeOf(h.link.dev, h.link, n)
}

// turns has all become of a host's address that may make it inactive, but for what the switches do
// about it.
func (w *world) turns(subject int) {
	*w.fate(w.hosts[subject-1].addrs[0]) = fate{w.now, w.now, w.now}
}

// crashed has the switch of h1 crash so long after a zone query of h1, and start again.
func (w *world) crashed(after time.Duration) {
	h := w.hosts[0]
	w.run(time.Minute)
	h.asked[h.addrs[0]] = w.now - after
	h.link.dev.stop(false)
	w.run(20 * time.Second)
	h.link.dev.start()
}

func (w *world) active(subject int) snsd.Notice {
	return snsd.Notice{State: snsd.Active, Service: w.hosts[subject-1].svc}
}

func gone(why snsd.Reason) snsd.Notice { return snsd.Notice{State: snsd.Inactive, Reason: why} }

// last is what a host was told last of another one.
func (w *world) last(host, subject int) (heardKey, heardOf) {
	k := heardKey{w.hosts[host-1].addrs[0], w.hosts[subject-1].addrs[0]}
	return k, w.hosts[host-1].heard[k]
}

// What a switch tells is found wrong when it is told, each law by itself; what is nearly the same
// and right is not.
func TestTheJudgeFindsWhatIsWronglyTold(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*world)
		wrong string // empty: it is right
	}{
		"a fault":                     {func(w *world) { w.turns(2); w.says(1, 2, gone(snsd.ReasonLinkDown)) }, ""},
		"of its own address":          {func(w *world) { w.says(1, 1, w.active(1)) }, "about its own address"},
		"of one of another zone":      {func(w *world) { w.says(1, 4, w.active(4)) }, "put them together"},
		"of one of its own role":      {func(w *world) { w.says(2, 5, w.active(5)) }, "which has its own role"},
		"of one it was never told of": {func(w *world) { w.says(1, 4, gone(snsd.ReasonAgedOut)) }, "it was never told of it before"},
		"a fault that there is not":   {func(w *world) { w.says(1, 2, gone(snsd.ReasonBFDDown)) }, "which nothing has caused"},
		"active twice":                {func(w *world) { w.says(1, 2, w.active(2)) }, "twice: "},
		"inactive twice": {func(w *world) {
			w.turns(2)
			w.says(1, 2, gone(snsd.ReasonLinkDown))
			w.says(1, 2, gone(snsd.ReasonLinkDown))
		}, "twice: "},
		"for another reason": {func(w *world) {
			w.turns(2)
			w.says(1, 2, gone(snsd.ReasonLinkDown))
			w.says(1, 2, gone(snsd.ReasonAgedOut))
		}, ""},
		"active twice, to one in doubt":                 {func(w *world) { w.hosts[0].stir(); w.says(1, 2, w.active(2)) }, ""},
		"active twice, after a crash":                   {func(w *world) { w.crashed(2 * putOff); w.says(1, 2, w.active(2)) }, "twice: "},
		"active twice, after a crash before the answer": {func(w *world) { w.crashed(putOff / 2); w.says(1, 2, w.active(2)) }, ""},
		"active twice again, after such a crash": {func(w *world) {
			w.crashed(putOff / 2)
			w.says(1, 2, w.active(2))
			w.says(1, 2, w.active(2))
		}, "twice: "},
		"a new service at once": {func(w *world) {
			n := w.active(3)
			n.Service.NQN += "-1"
			w.says(1, 3, n)
		}, "before the old one was taken back"},
		"a new service after the old one": {func(w *world) {
			n := w.active(3)
			n.Service.NQN += "-1"
			w.turns(3)
			w.says(1, 3, gone(snsd.ReasonAgedOut))
			w.says(1, 3, n)
		}, ""},
		"a frame again": {func(w *world) {
			n := w.active(2)
			n.Seq = w.wire[pairKey{w.hosts[0].link.dev.id, w.hosts[0].addrs[0], w.hosts[1].addrs[0]}].Seq - 1
			w.says(1, 2, n)
		}, ""},
		"a frame again with other contents": {func(w *world) {
			n := gone(snsd.ReasonLinkDown)
			n.Seq = w.wire[pairKey{w.hosts[0].link.dev.id, w.hosts[0].addrs[0], w.hosts[1].addrs[0]}].Seq - 1
			w.says(1, 2, n)
		}, "said active before"},
		"an old frame": {func(w *world) {
			n := w.active(2)
			n.Seq = w.wire[pairKey{w.hosts[0].link.dev.id, w.hosts[0].addrs[0], w.hosts[1].addrs[0]}].Seq - 1
			w.turns(2)
			w.says(1, 2, gone(snsd.ReasonLinkDown))
			w.says(1, 2, n)
		}, "it is repeated after number"},
		"after what nobody may notice": {func(w *world) { w.turns(2); w.hush = "a restart"; w.says(1, 2, gone(snsd.ReasonLinkDown)) }, "but there was only a restart"},
	} {
		t.Run(name, func(t *testing.T) {
			w := trial(t)
			c.do(w)
			w.mustFind(t, c.wrong)
		})
	}
}

// Why a host is told that another one is inactive has to have been so since the last rest before that:
// what became of others, of the other in another way, or of it before that rest is another reason.
func TestTheJudgeFindsReasonsThatAreNotTrue(t *testing.T) {
	const untrue = "which nothing has caused"
	pulled := func(w *world) {
		l := w.hosts[1].link
		for range 2 {
			l.pulled = !l.pulled
			l.refresh()
			w.run(50 * time.Second) // it is heard again
		}
	}
	zoned := func(w *world) {
		set := w.zones.now().Set
		set.Zones = append(set.Zones[:len(set.Zones):len(set.Zones)], zone.Zone{Name: "c"})
		w.configure(set, nil, cluster.Entry{})
		w.run(time.Second)
	}
	readdressed := func(w *world) {
		h := w.hosts[1]
		was := h.addrs
		h.readdress([]netip.Addr{w.freshAddr(false)})
		w.run(time.Second)
		h.readdress(was)
		w.run(10 * time.Second)
	}
	reasons := []snsd.Reason{snsd.ReasonLinkDown, snsd.ReasonZoneChanged, snsd.ReasonIPChanged, snsd.ReasonAgedOut}
	for name, c := range map[string]struct {
		do   func(*world)
		true []snsd.Reason
	}{
		"nothing":                       {func(*world) {}, nil},
		"its cable was out":             {pulled, reasons[:1]},
		"zones became others":           {zoned, []snsd.Reason{snsd.ReasonZoneChanged, snsd.ReasonAgedOut}},
		"it had another address":        {readdressed, reasons[1:]},
		"all that, before the last one": {func(w *world) { pulled(w); zoned(w); readdressed(w); w.rests = append(w.rests, w.now) }, nil},
	} {
		for _, why := range reasons {
			t.Run(name+"/"+why.String(), func(t *testing.T) {
				w := trial(t)
				c.do(w)
				if len(w.fails) > 0 {
					t.Fatal(w.fails)
				}
				k, _ := w.last(1, 2)
				last := w.wire[pairKey{w.hosts[0].link.dev.id, k.host, k.subject}] // the word that it follows
				last.at, last.active = w.now, w.now
				w.says(1, 2, gone(why))
				if slices.Contains(c.true, why) {
					w.mustFind(t, "")
				} else {
					w.mustFind(t, untrue)
				}
			})
		}
	}
}

func (w *world) mustFind(t *testing.T, wrong string) {
	t.Helper()
	switch {
	case wrong == "" && len(w.fails) > 0:
		t.Error(w.fails)
	case wrong != "" && (len(w.fails) != 1 || !strings.Contains(w.fails[0], wrong)):
		t.Errorf("found %q, want that it says %q", w.fails, wrong)
	}
}

// What hosts know at rest is compared with what they must know.
func TestTheJudgeFindsWhatIsNotTold(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*world)
		wrong string
	}{
		"of one that is there": {func(w *world) {
			k, _ := w.last(1, 2)
			delete(w.hosts[0].heard, k)
		}, "nothing (at 0s); the truth is active"},
		"that one is back": {func(w *world) {
			k, is := w.last(1, 2)
			is.State, is.Reason = snsd.Inactive, snsd.ReasonLinkDown
			w.hosts[0].heard[k] = is
		}, "inactive link-down"},
		"of its new service": {func(w *world) {
			k, is := w.last(1, 2)
			is.Service.NQN = "nqn.of-another"
			w.hosts[0].heard[k] = is
		}, "nqn.of-another"},
		"that its cable is pulled": {func(w *world) {
			k, was := w.last(1, 2)
			w.hosts[1].link.pulled = true
			w.hosts[1].link.refresh()
			w.run(10 * time.Second)
			w.hosts[0].heard[k] = was
		}, "the truth is not active"},
		"that its time to live is over": {func(w *world) {
			k, was := w.last(1, 2)
			w.hosts[1].setSilent(true)
			w.run(200 * time.Second)
			w.hosts[0].heard[k] = was
		}, "the truth is not active"},
		"that their zone has ended": {func(w *world) {
			k, was := w.last(1, 3)
			set := w.zones.now().Set
			set.Zones = set.Zones[1:]
			w.configure(set, nil, cluster.Entry{})
			w.run(10 * time.Second)
			w.hosts[0].heard[k] = was
		}, "the truth is not active"},
		"of one of another zone": {func(w *world) {
			_, is := w.last(1, 2)
			k, _ := w.last(1, 4)
			w.hosts[0].heard[k] = is
		}, "the truth is not active"},
	} {
		t.Run(name, func(t *testing.T) {
			w := trial(t)
			c.do(w)
			w.compare()
			if len(w.fails) == 0 || !strings.Contains(w.fails[0], c.wrong) {
				t.Errorf("found %q, want that it says %q", w.fails, c.wrong)
			}
		})
	}
}
