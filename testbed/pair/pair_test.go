package pair

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/testbed/labtest"
	"github.com/openinof/inof/testbed/truth"
)

// pulled pulls the cable of an address and plugs it again: all its peers are told once
// of each. That it is told anew itself is the answer to its zone query.
func (f *fabric) pulled(step string, n byte) {
	f.t.Helper()
	h, _ := labTruth.Place(ip(n))
	f.cable(h.Switch, h.Port, false)
	f.expect(step+": the cable of "+h.String()+" is pulled", about(h.Addr, truth.Inactive, truth.LinkDown))
	f.cable(h.Switch, h.Port, true)
	f.expect(step+": the cable of "+h.String()+" is plugged", about(h.Addr, truth.Active, ""))
}

// Each reflector is killed in turn and both at once: that alone tells no host anything,
// faults are told all the same by the one that is left, and what happened while both
// were gone is told when they are back, once.
func TestReflectorsAreKilled(t *testing.T) {
	f := newFabric(t, "killed", asShipped)
	f.ready()
	for i, s := range spines {
		f.kill(s)
		f.sessions(s, "down", down)
		f.expect(s + " is killed")
		f.pulled("without "+s, []byte{21, 92}[i])
		f.start(s)
		f.sessions(s, "there again", again)
		f.expect(s + " is back")
	}
	for _, s := range spines {
		f.kill(s)
	}
	for _, s := range spines {
		f.sessions(s, "down", down)
	}
	f.expect("both reflectors are killed")
	f.cable("tor1", "eth2", false)
	f.expect("a fault is told at the same switch", []truth.Notice{truth.NoticeOf(ip(11), ip(21), truth.Inactive, truth.LinkDown), truth.NoticeOf(ip(91), ip(21), truth.Inactive, truth.LinkDown)})
	f.start("spine1")
	f.sessions("spine1", "there again", again)
	f.expect("one is back: the fault is told everywhere else", []truth.Notice{
		truth.NoticeOf(ip(12), ip(21), truth.Inactive, truth.LinkDown), truth.NoticeOf(ip(22), ip(21), truth.Inactive, truth.LinkDown),
		truth.NoticeOf(ip(92), ip(21), truth.Inactive, truth.LinkDown), truth.NoticeOf(ip(13), ip(21), truth.Inactive, truth.LinkDown)})
	f.start("spine2")
	f.sessions("spine2", "there again", again)
	f.expect("the other one is back")
	f.cable("tor1", "eth2", true)
	f.expect("the cable is plugged", about(ip(21), truth.Active, ""))
	f.pulled("with both again", 22)
}

// A switch that was parted from a reflector for a while resumes, and says so; nobody is
// told anything, but of what happened meanwhile, once.
func TestASwitchThatIsCutOffResumes(t *testing.T) {
	f := newFabric(t, "cutoff", asShipped)
	f.ready()
	for i, s := range spines {
		f.part("tor1", s, true)
		f.session("tor1", s, "down", down)
		f.expect("tor1 is parted from " + s)
		f.pulled("parted from "+s, []byte{91, 22}[i])
		f.part("tor1", s, false)
		f.session("tor1", s, "resumed in both directions", resumed)
		var why string
		for _, p := range f.peers("tor1") {
			if strings.HasPrefix(p.Address, idOf[s]+":") {
				why = p.SyncOutWhy
			}
		}
		if !strings.HasPrefix(why, "after change ") {
			t.Errorf("show peer says of %s: %q", s, why)
		}
		f.expect("tor1 is back at " + s)
	}
	f.pulled("with all sessions", 21)
}

// inconsistent lists the zones about which the reflectors differ, as a switch shows them.
func (f *fabric) inconsistent(tor string) (out []api.Zone) {
	f.t.Helper()
	text := f.ctl(tor, "show", "zone", "--inconsistent", "-o", "json")
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		f.t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// differing waits until a switch shows these zones as inconsistent, and no others.
func (f *fabric) differing(tor string, names ...string) {
	f.t.Helper()
	labtest.Eventually(f.t, fmt.Sprintf("%s to find differences in %q", tor, names), func() error {
		var got []string
		for _, z := range f.inconsistent(tor) {
			if !z.Inconsistent || len(z.Words) != 2 {
				return fmt.Errorf("%+v", z)
			}
			got = append(got, z.Name)
		}
		return errorf(strings.Join(got, " ") == strings.Join(names, " "), "it shows %q", got)
	})
}

// A change of zones at one reflector only: what is taken away is in force at once, what
// is added waits for the other one; until then the difference is shown and told once.
func TestZonesChangeAtOneReflectorThenAtBoth(t *testing.T) {
	f := newFabric(t, "zones", asShipped)
	f.ready()
	facts := newTruth()
	all := facts.Members("blue")
	without := slices.DeleteFunc(slices.Clone(all), func(a netip.Addr) bool { return a == ip(22) })
	// blue changes it in the truth at one of the spines, and gives what hosts must be told of it.
	blue := func(members []netip.Addr, at int) []truth.Notice {
		return facts.Change(func() { facts.SetZone("blue", members, at) }).Sorted()
	}
	f.ctl("spine1", "zone", "member", "remove", "blue", ip(22).String())
	f.expect("a member is taken away at one", blue(without, 0))
	f.differing("tor1", "blue")
	f.differing("tor2", "blue")
	f.differing("tor3", "blue") // without a member: every client has all zones
	labtest.Eventually(t, "an event to tell of the difference", func() error {
		n := strings.Count(f.ctl("tor2", "show", "event", "-o", "json"), "the reflectors differ about 1 zone(s), such as blue")
		return errorf(n == 1, "it is told %d times", n)
	})
	f.ctl("spine2", "zone", "member", "remove", "blue", ip(22).String())
	f.differing("tor2")
	f.expect("and at the other one", blue(without, 1))
	f.ctl("spine2", "zone", "member", "add", "blue", ip(22).String())
	f.differing("tor2", "blue")
	f.expect("it is added at one", blue(all, 1))
	f.kill("spine2")
	f.session("tor2", "spine2", "down", down)
	f.expect("the one that has it is killed: its last word stands")
	f.start("spine2")
	f.sessions("spine2", "there again", again)
	f.expect("it is back")
	f.ctl("spine1", "zone", "member", "add", "blue", ip(22).String())
	f.expect("it is added at the other one", blue(all, 0))
	f.differing("tor2")
	if n := strings.Count(f.ctl("tor2", "show", "event", "-o", "json"), "the reflectors agree about all zones again"); n < 1 {
		t.Error("no event tells that the reflectors agree again")
	}
}
