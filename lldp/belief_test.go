package lldp

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

func beliefs(t *testing.T, source SourcePolicy, list ...Binding) Beliefs {
	t.Helper()
	return Beliefs{Source: source, Bindings: list}
}

func portsOf(t *testing.T, ports ...string) fabric.Names {
	t.Helper()
	n, err := fabric.ParseNames(ports)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// from is a frame as another source sends it.
func from(f fabric.Frame, src byte) fabric.Frame {
	f.Src = fabric.MAC{2, 0, 0, 0, 0, src}
	return f
}

// What the existing agents send comes from its chassis id; what does not is in doubt, unless
// the configuration says that it may be so, and refused where it must be.
func TestAFrameThatDoesNotComeFromItsChassisIsInDoubt(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	mac := fabric.MAC{2, 0, 0, 0, 0, 9}
	bond := Binding{MAC: mac, Ports: portsOf(t, "e1")}
	for _, c := range []struct {
		what           string
		beliefs        Beliefs
		src            byte
		doubt, refused bool
	}{
		{"an agent", beliefs(t, SourceDoubt), 1, false, false},
		{"an agent, required", beliefs(t, SourceRequired), 1, false, false},
		{"another source", beliefs(t, SourceDoubt), 9, true, false},
		{"another source, any", beliefs(t, SourceAny), 9, false, false},
		{"another source, required", beliefs(t, SourceRequired), 9, false, true},
		{"another source that is bound, required", beliefs(t, SourceRequired, bond), 9, false, false},
	} {
		tab := NewTable(Limits{})
		tab.SetBeliefs(c.beliefs, now)
		ch := hear(t, tab, from(registration("e1", 1, 1, "192.0.2.1", 60), c.src), now, Learned)
		if n := ch.Neighbour; len(n.Known) == 0 != c.refused || len(n.Refused) > 0 != c.refused || !c.refused && (ch.Put[0].Doubt != c.doubt || n.InDoubt() != c.doubt) {
			t.Errorf("%s: %+v", c.what, n)
		}
		if k := tab.Counters(); k.SourcesForeign > 0 != c.doubt || k.HostsRefused > 0 != c.refused {
			t.Errorf("%s: counted %+v", c.what, k)
		}
	}
}

// No host has the address of a switch, nor the MAC address of a port of ours, of a group, or none.
func TestWhatIsASwitchsIsNoHosts(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		what string
		f    fabric.Frame
		why  string
	}{
		{"a host", registration("e1", 1, 1, "192.0.2.1", 60), ""},
		{"the device id", registration("e1", 1, 1, "192.0.2.250", 60), "its device id"},
		{"the device id, of a plain host", plain("e1", 1, nil, "192.0.2.250"), "its device id"},
		{"the MAC address of a port", registration("e1", 7, 1, "192.0.2.1", 60), "is that of port e9 of this switch"},
		{"frames of a port", from(registration("e1", 1, 1, "192.0.2.1", 60), 7), "is that of port e9 of this switch"},
		{"frames of a group", func() fabric.Frame {
			f := registration("e1", 1, 1, "192.0.2.1", 60)
			f.Src = fabric.MAC{3, 0, 0, 0, 0, 1}
			return f
		}(), "is that of a group, or zero"},
	} {
		tab := NewTable(Limits{})
		tab.SetOwnAddrs([]netip.Addr{netip.MustParseAddr("192.0.2.250")})
		tab.SetOwnMAC("e8", fabric.MAC{})
		tab.SetOwnMAC("e9", fabric.MAC{2, 0, 0, 0, 0, 7})
		n := hear(t, tab, c.f, now, Learned).Neighbour
		if refused := c.why != ""; len(n.Known) == 0 != refused || tab.Counters().HostsRefused > 0 != refused || refused && !strings.Contains(n.Refused[0].Why, c.why) {
			t.Errorf("%s: %+v, counted %d", c.what, n, tab.Counters().HostsRefused)
		}
	}
}

// Of two neighbours of a port that claim an address the one that is not in doubt has it,
// also when it comes later.
func TestOfOnePortTheClaimWithoutDoubtHasTheAddress(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	tab := NewTable(Limits{})
	hear(t, tab, from(registration("e1", 1, 1, "192.0.2.1", 60), 9), now, Learned)
	hear(t, tab, registration("e1", 2, 1, "192.0.2.1", 60), now.Add(time.Second), Learned)
	if h, _ := tab.owner("e1", netip.MustParseAddr("192.0.2.1")); h.Doubt || h.MAC[5] != 2 {
		t.Errorf("%+v has it", h)
	}
}

func TestWhatIsBoundIsNowhereElse(t *testing.T) {
	x := beliefs(t, SourceDoubt,
		Binding{Addrs: netip.MustParsePrefix("192.0.2.0/28"), Ports: portsOf(t, "e1", "e2")},
		Binding{Addrs: netip.MustParsePrefix("192.0.2.3/32"), MAC: fabric.MAC{2, 0, 0, 0, 0, 3}, Ports: portsOf(t, "e3")},
		Binding{MAC: fabric.MAC{2, 0, 0, 0, 0, 4}, Ports: portsOf(t, "e4")},
		Binding{NQN: "nqn.2026-01.org.example:*", Ports: portsOf(t, "e5")},
	)
	host := func(addr string, mac byte, nqn string) *HostInfo {
		return &HostInfo{Addr: netip.MustParseAddr(addr), MAC: fabric.MAC{2, 0, 0, 0, 0, mac}, Service: snsd.Service{NQN: nqn}}
	}
	for _, c := range []struct {
		port    string
		h       *HostInfo
		refused string
	}{
		{"e1", host("192.0.2.1", 1, ""), ""}, {"e2", host("192.0.2.1", 1, ""), ""}, {"e3", host("192.0.2.1", 1, ""), "address 192.0.2.1"},
		{"e3", host("192.0.2.3", 3, ""), ""}, {"e3", host("192.0.2.3", 1, ""), "address 192.0.2.3"}, {"e1", host("192.0.2.9", 3, ""), "MAC address 02:00:00:00:00:03"},
		{"e4", host("198.51.100.1", 4, ""), ""}, {"e1", host("198.51.100.1", 4, ""), "MAC address 02:00:00:00:00:04"}, {"e9", host("198.51.100.1", 7, ""), ""},
		{"e5", host("198.51.100.1", 7, "nqn.2026-01.org.example:a"), ""}, {"e1", host("198.51.100.1", 7, "nqn.2026-01.org.example:a"), "NQN nqn.2026-01.org.example:a"},
		{"e1", host("198.51.100.1", 7, "nqn.2026-02.org.example:a"), ""},
		// One binding that accepts it is not enough where another thing of it is bound.
		{"e5", host("192.0.2.1", 7, "nqn.2026-01.org.example:a"), "address 192.0.2.1"},
	} {
		why, doubt := x.judge(c.port, c.h.MAC, c.h)
		if !strings.HasPrefix(why, c.refused) || why != "" && c.refused == "" || doubt {
			t.Errorf("%s %s %s on %s: %q, doubt %t", c.h.Addr, c.h.MAC, c.h.NQN, c.port, why, doubt)
		}
	}
	// A copy of a bound MAC address as the frame's source alone is refused as well.
	if why, _ := x.judge("e1", fabric.MAC{2, 0, 0, 0, 0, 4}, host("192.0.2.1", 1, "")); !strings.Contains(why, "02:00:00:00:00:04") {
		t.Errorf("a bound source elsewhere: %q", why)
	}
}

// Bindings that change count for what is known too: who may not be there is gone, who may
// again is there, and an operator can ask before.
func TestBindingsThatChangeAreForHostsThatAreKnownToo(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	tab := NewTable(Limits{})
	hear(t, tab, registration("e1", 1, 1, "192.0.2.1", 60), now, Learned)
	hear(t, tab, registration("e2", 2, 1, "192.0.2.2", 60), now, Learned)
	x := beliefs(t, SourceDoubt, Binding{Addrs: netip.MustParsePrefix("192.0.2.0/24"), Ports: portsOf(t, "e2")})
	if losing := tab.Losing(x); len(losing) != 1 || !slices.Equal(losing["e1"], []netip.Addr{netip.MustParseAddr("192.0.2.1")}) {
		t.Errorf("an operator is told %v", losing)
	}
	ch := tab.SetBeliefs(x, now.Add(time.Second))
	if len(ch) != 1 || len(ch[0].Gone) != 1 || ch[0].Reason != snsd.ReasonAgedOut || len(tab.Hosts("e1")) != 0 {
		t.Errorf("%+v", ch)
	}
	if again := tab.SetBeliefs(x, now.Add(time.Second)); len(again) != 0 {
		t.Errorf("the same again changes %+v", again)
	}
	ch = tab.SetBeliefs(Beliefs{}, now.Add(2*time.Second))
	if len(ch) != 1 || len(ch[0].Put) != 1 || len(tab.Hosts("e1")) != 1 || len(ch[0].Neighbour.Refused) != 0 {
		t.Errorf("%+v", ch)
	}
	// A restart judges what was kept.
	kept := tab.Neighbours("e1")
	after := NewTable(Limits{})
	after.SetBeliefs(x, now)
	if err := after.Restore(kept, now); err != nil || len(after.Hosts("e1")) != 0 {
		t.Errorf("after a restart %v, %v", after.Hosts("e1"), err)
	}
}
