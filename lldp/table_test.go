package lldp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

func TestNeighbourLife(t *testing.T) {
	tab := NewTable(Limits{})
	f := registration("swp1", 1, 1, "192.0.2.11", 120)
	wantHosts(t, hear(t, tab, f, at(0), Learned), []string{"192.0.2.11"}, nil, 0)
	ch := hear(t, tab, f, at(30), Refreshed)
	wantHosts(t, ch, nil, nil, 0)
	if n := ch.Neighbour; !n.FirstHeard.Equal(at(0)) || !n.LastHeard.Equal(at(30)) || !n.Expires.Equal(at(150)) {
		t.Errorf("%+v", n)
	}
	if !tab.Next().Equal(at(150)) {
		t.Errorf("next %v", tab.Next())
	}
	if got := tab.Expire(at(150).Add(-1)); len(got) != 0 {
		t.Error("aged out early")
	}
	got := tab.Expire(at(150))
	if len(got) != 1 || got[0].Kind != Removed {
		t.Fatalf("%+v", got)
	}
	wantHosts(t, got[0], nil, []string{"192.0.2.11"}, snsd.ReasonAgedOut)
	if !tab.Next().IsZero() || tab.Len() != 0 || tab.Weight() != 0 || len(tab.ports) != 0 {
		t.Errorf("something is left: %+v", tab)
	}
	if c := tab.Counters(); c.FramesIn != 2 || c.Inserts != 1 || c.Refreshed != 1 || c.Ageouts != 1 || c.Deletes != 1 {
		t.Errorf("%+v", c)
	}
}

func TestWhatAMachineRegisteredLastComesFirst(t *testing.T) {
	tab := NewTable(Limits{})
	for n := range 3 {
		hear(t, tab, registration("swp1", 1, n+1, fmt.Sprintf("192.0.2.1%d", n), 120), at(float64(n)), Learned)
	}
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.10", 120), at(2), Refreshed)
	var got []string
	for _, h := range tab.Registered("swp1", registration("swp1", 1, 1, "192.0.2.10", 120).Src) {
		got = append(got, h.Addr.String())
	}
	if want := []string{"192.0.2.10", "192.0.2.12", "192.0.2.11"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestShutdownRemoves(t *testing.T) {
	tab := NewTable(Limits{})
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.11", 120), at(0), Learned)
	hear(t, tab, registration("swp1", 1, 2, "192.0.2.12", 120), at(0), Learned)
	ch := hear(t, tab, registration("swp1", 1, 1, "192.0.2.11", 0), at(1), Removed)
	wantHosts(t, ch, nil, []string{"192.0.2.11"}, snsd.ReasonAgedOut)
	// of somebody unknown
	if ch, err := tab.Receive(registration("swp2", 1, 1, "192.0.2.11", 0), at(1)); len(ch) != 0 || err != nil {
		t.Errorf("%+v, %v", ch, err)
	}
	if tab.Len() != 1 || tab.Counters().Shutdowns != 2 {
		t.Errorf("%d neighbours, %+v", tab.Len(), tab.Counters())
	}
}

// What ends and begins again within a few ms, under its own name or another one, is one change.
func TestAWithdrawalAndANewRegistrationAreOneChange(t *testing.T) {
	ms := func(n int) time.Time { return at(1).Add(time.Duration(n) * time.Millisecond) }
	tab := NewTable(Limits{})
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.11", 120), at(0), Learned)
	for _, f := range []fabric.Frame{registration("swp1", 1, 1, "192.0.2.11", 0), registration("swp1", 1, 1, "192.0.2.11", 0)} {
		if ch, err := tab.Receive(f, ms(0)); len(ch) != 0 || err != nil {
			t.Errorf("%+v, %v", ch, err)
		}
	}
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.11", 120), ms(5), Refreshed)
	if ch := tab.Expire(ms(100)); len(ch) != 0 {
		t.Errorf("it was heard again, and is taken out: %+v", ch)
	}
	if _, err := tab.Receive(registration("swp1", 1, 1, "192.0.2.11", 0), ms(200)); err != nil {
		t.Error(err)
	}
	wantHosts(t, hear(t, tab, registration("swp1", 1, 2, "192.0.2.11", 120), ms(205), Learned), []string{"192.0.2.11"}, nil, 0)
	ch := tab.Expire(ms(220))
	if len(ch) != 1 || tab.Len() != 1 {
		t.Fatalf("%+v, %d neighbours", ch, tab.Len())
	}
	wantHosts(t, ch[0], []string{"192.0.2.11"}, nil, snsd.ReasonAgedOut)
	if c := tab.Counters(); c.Ageouts != 0 || c.Deletes != 1 || c.Shutdowns != 3 {
		t.Errorf("%+v", c)
	}
}

func TestChangedAddressIsUpdated(t *testing.T) {
	tab := NewTable(Limits{})
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.11", 120), at(0), Learned)
	ch := hear(t, tab, registration("swp1", 1, 1, "192.0.2.12", 120), at(5), Updated)
	wantHosts(t, ch, []string{"192.0.2.12"}, []string{"192.0.2.11"}, snsd.ReasonIPChanged)
	if !ch.Put[0].Since.Equal(at(5)) || !ch.Neighbour.FirstHeard.Equal(at(0)) {
		t.Errorf("the new address must not inherit the age of the old one: %+v", ch.Put[0])
	}
	if a := ch.Old.Hosts(); len(a) != 1 || a[0].Addr != netip.MustParseAddr("192.0.2.11") {
		t.Errorf("old: %+v", a)
	}
	// only the TTL changes: still the same host
	ch = hear(t, tab, registration("swp1", 1, 1, "192.0.2.12", 60), at(6), Updated)
	wantHosts(t, ch, []string{"192.0.2.12"}, nil, 0)
	if !ch.Put[0].Since.Equal(at(5)) || !tab.Next().Equal(at(66)) {
		t.Errorf("since %v, next %v", ch.Put[0].Since, tab.Next())
	}
}

func TestPortDownNeedsNewEvidence(t *testing.T) {
	tab := NewTable(Limits{})
	a, b := registration("swp1", 1, 1, "192.0.2.11", 120), registration("swp1", 1, 2, "192.0.2.12", 120)
	hear(t, tab, a, at(0), Learned)
	hear(t, tab, b, at(0), Learned)
	tab.PortDown("swp1", at(1))
	tab.PortDown("swp9", at(1))
	for _, n := range tab.Neighbours("swp1") {
		if n.Confirmed {
			t.Errorf("%s is confirmed behind a dead link", n.PortID)
		}
	}
	wantHosts(t, hear(t, tab, a, at(2), Confirmed), []string{"192.0.2.11"}, nil, 0)
	hear(t, tab, a, at(3), Refreshed)
	// heard again with another address: evidence too
	ch := hear(t, tab, registration("swp1", 1, 2, "192.0.2.13", 120), at(3), Updated)
	if !ch.Neighbour.Confirmed {
		t.Error("heard, but not confirmed")
	}
	tab.PortDown("swp1", at(4))
	if got := tab.Expire(at(123)); len(got) != 2 {
		t.Errorf("%d aged out while the port was down, want 2", len(got))
	}
}

func TestPortRemovedForgetsInOrder(t *testing.T) {
	tab := NewTable(Limits{})
	for n := 3; n > 0; n-- {
		hear(t, tab, registration("swp1", 1, n, fmt.Sprintf("192.0.2.%d", n), 120), at(0), Learned)
	}
	hear(t, tab, registration("swp2", 2, 1, "192.0.2.9", 120), at(0), Learned)
	got := tab.PortRemoved("swp1", at(1))
	if len(got) != 3 || tab.Len() != 1 {
		t.Fatalf("%d changes, %d left", len(got), tab.Len())
	}
	for i, ch := range got {
		wantHosts(t, ch, nil, []string{fmt.Sprintf("192.0.2.%d", i+1)}, snsd.ReasonLinkDown)
	}
}

// Two neighbours of one port that announce one address must not take it from each
// other.
func TestAddressAnnouncedTwiceOnAPort(t *testing.T) {
	tab := NewTable(Limits{})
	lldpd := plain("swp1", 1, nil, "192.0.2.11")
	first, second := registration("swp1", 1, 1, "192.0.2.11", 120), registration("swp1", 1, 2, "192.0.2.11", 120)
	hear(t, tab, lldpd, at(0), Learned)
	ch := hear(t, tab, first, at(1), Learned)
	if ch.Put[0].Role != snsd.RoleTarget || !ch.Put[0].Since.Equal(at(0)) {
		t.Errorf("the registration must describe the host, known since plain LLDP told it: %+v", ch.Put)
	}
	ch = hear(t, tab, lldpd, at(2), Refreshed)
	wantHosts(t, ch, nil, nil, 0)
	hear(t, tab, second, at(3), Learned)
	ch = hear(t, tab, registration("swp1", 1, 1, "192.0.2.11", 0), at(4), Removed)
	wantHosts(t, ch, []string{"192.0.2.11"}, nil, snsd.ReasonAgedOut)
	ch = hear(t, tab, registration("swp1", 1, 2, "192.0.2.12", 120), at(5), Updated)
	wantHosts(t, ch, []string{"192.0.2.12", "192.0.2.11"}, nil, 0)
	if ch.Put[1].Role != snsd.RoleUnknown {
		t.Errorf("only plain LLDP is left, but %+v", ch.Put[1])
	}
	got := tab.Expire(at(122))
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	wantHosts(t, got[0], nil, []string{"192.0.2.11"}, snsd.ReasonAgedOut)
}

// Somebody else behind the same port who claims the address later does not inherit
// its age when the first one leaves.
func TestAgeOfAnAddressBelongsToItsMAC(t *testing.T) {
	tab := NewTable(Limits{})
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.11", 120), at(0), Learned)
	ch := hear(t, tab, registration("swp1", 2, 1, "192.0.2.11", 120), at(5), Learned)
	if h := ch.Put[0]; h.MAC[5] != 1 || !h.Since.Equal(at(0)) {
		t.Errorf("the earlier claim must win: %+v", h)
	}
	ch = hear(t, tab, registration("swp1", 1, 1, "192.0.2.11", 0), at(6), Removed)
	if h := ch.Put[0]; h.MAC[5] != 2 || !h.Since.Equal(at(5)) {
		t.Errorf("%+v", h)
	}
	// plain LLDP of host 3, then a registration of host 2: no common age either
	tab = NewTable(Limits{})
	hear(t, tab, plain("swp1", 3, nil, "192.0.2.11"), at(0), Learned)
	ch = hear(t, tab, registration("swp1", 2, 1, "192.0.2.11", 120), at(5), Learned)
	if h := ch.Put[0]; h.MAC[5] != 2 || !h.Since.Equal(at(5)) {
		t.Errorf("%+v", h)
	}
}

func TestCutAddressesComeInWhenThereIsRoom(t *testing.T) {
	tab := NewTable(Limits{Device: 2})
	two := plain("swp2", 2, nil, "192.0.2.2", "192.0.2.3")
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.1", 120), at(0), Learned)
	wantHosts(t, hear(t, tab, two, at(0), Learned), []string{"192.0.2.2"}, nil, 0)
	hear(t, tab, two, at(1), Refreshed)
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.1", 0), at(2), Removed)
	wantHosts(t, hear(t, tab, two, at(3), Updated), []string{"192.0.2.2", "192.0.2.3"}, nil, 0)
	hear(t, tab, two, at(4), Refreshed)
}

// Whatever is heard and removed in between, neighbours age out in the order of their
// expiry, each exactly at its own.
func TestAgeingOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := NewTable(Limits{})
		expires, farewell := map[string]time.Time{}, map[string]bool{}
		now := t0
		for range rapid.IntRange(1, 200).Draw(t, "frames") {
			now = now.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "ms")) * time.Millisecond)
			for _, ch := range tab.Expire(now) {
				delete(expires, ch.Neighbour.PortID)
			}
			n, ttl := rapid.IntRange(1, 64).Draw(t, "n"), rapid.IntRange(0, 100).Draw(t, "ttl")
			if _, err := tab.Receive(registration("swp1", 1, n, "192.0.2.1", uint16(ttl)), now); err != nil {
				t.Fatal(err)
			}
			name := snsd.AgentPortID("eth0", n)
			end, known := expires[name]
			if ttl > 0 {
				expires[name], farewell[name] = now.Add(time.Duration(ttl)*time.Second), false
			} else if known && !farewell[name] && now.Add(Farewell).Before(end) {
				expires[name], farewell[name] = now.Add(Farewell), true
			}
		}
		for len(expires) > 0 {
			var first time.Time
			for _, e := range expires {
				if first.IsZero() || e.Before(first) {
					first = e
				}
			}
			if !tab.Next().Equal(first) || len(tab.Expire(first.Add(-1))) > 0 {
				t.Fatalf("next %v, want %v", tab.Next(), first)
			}
			for _, ch := range tab.Expire(first) {
				if !expires[ch.Neighbour.PortID].Equal(first) {
					t.Fatalf("%s aged out at %v, want %v", ch.Neighbour.PortID, first, expires[ch.Neighbour.PortID])
				}
				delete(expires, ch.Neighbour.PortID)
			}
			if tab.Len() != len(expires) {
				t.Fatalf("%d left, want %d", tab.Len(), len(expires))
			}
		}
	})
}

func TestPlainHostsAndSwitches(t *testing.T) {
	v4, v6 := "192.0.2.20", "2001:db8::20"
	cases := []struct {
		name string
		caps *Capabilities
		mgmt []string
		want []string
	}{
		{"no capabilities", nil, []string{v4, v6}, []string{v4, v6}},
		{"station", &Capabilities{CapStation, CapStation}, []string{v4}, []string{v4}},
		{"could route but does not", &Capabilities{CapBridge | CapRouter | CapStation, 0}, []string{v4}, []string{v4}},
		{"bridge", &Capabilities{CapBridge, CapBridge}, []string{v4}, nil},
		{"router", &Capabilities{CapRouter, CapRouter}, []string{v4}, nil},
		{"C-VLAN component", &Capabilities{CapCVLAN, CapCVLAN}, []string{v4}, nil},
		{"bridge and station", &Capabilities{CapBridge, CapBridge | CapStation}, []string{v4}, []string{v4}},
		{"no address", nil, nil, nil},
		{"no usable address", nil, []string{"127.0.0.1", "fe80::1", "::1", "169.254.0.1"}, nil},
		{"one usable address, twice", nil, []string{"fe80::1", v6, v6}, []string{v6}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tab := NewTable(Limits{})
			ch := hear(t, tab, plain("swp1", 7, c.caps, c.mgmt...), at(0), Learned)
			wantHosts(t, ch, c.want, nil, 0)
			if n := tab.Neighbours("swp1"); len(n) != 1 || n[0].SysName != "host-7" {
				t.Errorf("not in the table: %+v", n)
			}
			for _, h := range ch.Put {
				if h.Role != snsd.RoleUnknown || h.Subscribes || h.MAC != (fabric.MAC{2, 0, 0, 0, 0, 7}) {
					t.Errorf("%+v", h)
				}
			}
		})
	}
}

func TestOwnLLDPDUIsNoHost(t *testing.T) {
	x := NewTransmitter(TxConfig{Local: Local{Chassis: hostMAC, SysName: "tor-1", Mgmt: []netip.Addr{hostAddr},
		Capabilities: Capabilities{CapBridge | CapRouter, CapBridge | CapRouter}}})
	x.PortUp("swp1", "", hostMAC, t0)
	tab := NewTable(Limits{})
	ch := hear(t, tab, received("swp2", x.Due(t0)[0].Frame), at(0), Learned)
	wantHosts(t, ch, nil, nil, 0)
}

func TestRegistrationWithoutPrefixIsHonoured(t *testing.T) {
	tab := NewTable(Limits{})
	p := PDU{Chassis: ID{ChassisLocal, "host"}, Port: ID{PortLocal, "eth0"}, TTL: 120,
		Registration: &snsd.Registration{Addr: hostAddr, Subscribes: true}}
	b, _ := p.Append(nil)
	ch := hear(t, tab, frameOf("swp1", hostMAC, b), at(0), Learned)
	if len(ch.Put) != 1 || ch.Put[0].MAC != hostMAC {
		t.Errorf("%+v", ch.Put)
	}
	if tab.Counters().NoPrefix != 1 {
		t.Errorf("%+v", tab.Counters())
	}
}

// breakAddr makes the registered address of a frame a loopback one.
func breakAddr(f fabric.Frame) fabric.Frame {
	for i := range f.Payload {
		if i > 12 && string(f.Payload[i-12:i-8]) == "\x00\x18\x82\x65" {
			copy(f.Payload[i-4:], []byte{127, 0, 0, 1})
		}
	}
	return f
}

func TestBrokenRegistrationTakesNothing(t *testing.T) {
	tab := NewTable(Limits{})
	good := registration("swp1", 1, 1, "192.0.2.11", 120)
	hear(t, tab, good, at(0), Learned)
	ch, err := tab.Receive(breakAddr(registration("swp1", 1, 1, "192.0.2.11", 120)), at(10))
	var fe *FrameError
	if len(ch) != 0 || !errors.Is(err, ErrRegistration) || !errors.Is(err, snsd.ErrAddress) || !errors.As(err, &fe) || fe.Port != "swp1" {
		t.Fatalf("%+v, %v", ch, err)
	}
	if n := tab.Neighbours("swp1"); n[0].Registration == nil || !n[0].Expires.Equal(at(120)) {
		t.Errorf("%+v", n)
	}
	// of a new neighbour: shown, but no host, not even its management address
	p, _ := Parse(registration("swp1", 2, 1, "192.0.2.12", 120).Payload)
	p.Mgmt = []MgmtAddr{{Addr: netip.MustParseAddr("192.0.2.13")}}
	b, _ := p.Append(nil)
	ch, err = tab.Receive(breakAddr(frameOf("swp1", hostMAC, b)), at(10))
	if len(ch) != 1 || ch[0].Kind != Learned || len(ch[0].Put) != 0 || !errors.Is(err, ErrRegistration) {
		t.Errorf("%+v, %v", ch, err)
	}
	if c := tab.Counters(); c.BadRegistrations != 2 || c.TLVsDiscarded != 2 {
		t.Errorf("%+v", c)
	}
}

// A host whose management addresses are one IPv4 address in two forms has it once, as IPv4.
func TestAManagementAddressInTheFormOfIPv6IsIPv4(t *testing.T) {
	ch := hear(t, NewTable(Limits{}), plain("swp1", 1, nil, "::ffff:192.0.2.50", "192.0.2.50"), t0, Learned)
	if len(ch.Put) != 1 || ch.Put[0].Addr != netip.MustParseAddr("192.0.2.50") {
		t.Errorf("%+v", ch.Put)
	}
}

// A frame that was cut on its way takes nothing away, wherever the cut is; the same
// words in a whole LLDPDU do.
func TestCutFramesTakeNothing(t *testing.T) {
	for name, whole := range map[string]fabric.Frame{
		"registration": registration("swp1", 1, 1, "192.0.2.11", 120),
		"plain":        plain("swp1", 1, nil, "192.0.2.50", "2001:db8::50"),
	} {
		tab := NewTable(Limits{})
		first := hear(t, tab, whole, t0, Learned)
		for n := range len(whole.Payload) {
			cut := whole
			cut.Payload = whole.Payload[:n]
			ch, err := tab.Receive(cut, at(1))
			for _, c := range ch {
				if len(c.Gone) > 0 || !slices.EqualFunc(c.Put, first.Put, func(a, b HostInfo) bool { return a == b }) {
					t.Errorf("%s cut to %d bytes: %+v, %v", name, n, c, err)
				}
			}
			if len(ch) == 0 && err == nil {
				t.Errorf("%s cut to %d bytes: no change and no error", name, n)
			}
		}
		less := whole
		for n := 0; n < 3; n++ { // keep the mandatory TLVs and add an End
			_, _, rest, _ := cutTLV(less.Payload)
			less.Payload = rest
		}
		less.Payload = append(slices.Clone(whole.Payload[:len(whole.Payload)-len(less.Payload)]), 0, 0)
		if ch := hear(t, tab, less, at(2), Updated); len(ch.Gone) != len(first.Put) {
			t.Errorf("%s without its addresses: %+v", name, ch)
		}
	}
}

func TestFramesThatAreNotForUs(t *testing.T) {
	tab := NewTable(Limits{})
	f := registration("swp1", 1, 1, "192.0.2.11", 120)
	other := f
	other.EtherType = fabric.EtherTypeNTS
	scope := f
	scope.Dst = fabric.MAC{0x01, 0x80, 0xc2, 0, 0, 0x03}
	huge := frameOf("swp1", hostMAC, unhex(t, head))
	for range 4 {
		huge.Payload = append(huge.Payload, append([]byte{0xff, 0xff}, make([]byte, 511)...)...)
	}
	for _, c := range []struct {
		f    fabric.Frame
		want error
	}{{other, ErrNotLLDP}, {scope, ErrScope}, {huge, ErrLength}, {frameOf("swp1", hostMAC, nil), ErrTruncated}} {
		if ch, err := tab.Receive(c.f, t0); len(ch) != 0 || !errors.Is(err, c.want) {
			t.Errorf("%+v, %v, want %v", ch, err, c.want)
		}
	}
	if c := tab.Counters(); c.ForeignFrames != 2 || c.FramesDiscarded != 2 || c.FramesIn != 4 || tab.Len() != 0 {
		t.Errorf("%+v", c)
	}
}

// A host that registers 10,000 addresses gets its port's share, and nobody else notices.
func TestGreedyHostDisturbsNobody(t *testing.T) {
	tab := NewTable(Limits{})
	quiet := registration("swp2", 2, 1, "192.0.2.1", 120)
	hear(t, tab, quiet, at(0), Learned)
	refused := 0
	a := netip.MustParseAddr("10.0.0.1")
	for i := range 10000 {
		f := registration("swp1", 1, 1, a.String(), 120)
		p, _ := Parse(f.Payload)
		p.Port.Value = fmt.Sprintf("snsd_e%d_01", i)
		f.Payload, _ = p.Append(nil)
		_, err := tab.Receive(f, at(1))
		var le *LimitError
		if errors.As(err, &le) {
			refused++
			if le.Limit != DefaultPortRegistrations {
				t.Fatal(le)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		a = a.Next()
	}
	if refused != 10000-DefaultPortRegistrations || tab.Counters().Drops != uint64(refused) {
		t.Errorf("%d refused, %+v", refused, tab.Counters())
	}
	hear(t, tab, plain("swp1", 3, nil, "192.0.2.3"), at(2), Learned) // plain LLDP has its own share
	hear(t, tab, quiet, at(2), Refreshed)
	hear(t, tab, registration("swp2", 2, 2, "192.0.2.2", 120), at(2), Learned)
	if n := len(tab.Neighbours("swp1")); n != DefaultPortRegistrations+1 {
		t.Errorf("%d on the greedy port", n)
	}
}

func TestDeviceLimitKeepsWhatIsKnown(t *testing.T) {
	tab := NewTable(Limits{Device: 3})
	known := registration("swp1", 1, 1, "192.0.2.1", 120)
	hear(t, tab, known, at(0), Learned)
	ch := hear(t, tab, plain("swp2", 2, nil, "192.0.2.2", "192.0.2.3", "192.0.2.4"), at(0), Learned)
	wantHosts(t, ch, []string{"192.0.2.2", "192.0.2.3"}, nil, 0)
	if c := tab.Counters(); c.AddressesCut != 1 || tab.Weight() != 3 {
		t.Errorf("weight %d, %+v", tab.Weight(), c)
	}
	if _, err := tab.Receive(registration("swp3", 3, 1, "192.0.2.5", 120), at(1)); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	hear(t, tab, known, at(1), Refreshed)
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.9", 120), at(1), Updated)
	tab.SetLimits(Limits{Device: 1})
	hear(t, tab, registration("swp1", 1, 1, "192.0.2.10", 120), at(2), Updated)
	hear(t, tab, plain("swp2", 2, nil, "192.0.2.2", "192.0.2.7"), at(2), Updated)
	if tab.Weight() != 3 {
		t.Errorf("weight %d", tab.Weight())
	}
}

func TestRefreshAllocatesNothing(t *testing.T) {
	tab := NewTable(Limits{})
	f := registration("swp1", 1, 1, "192.0.2.11", 120)
	hear(t, tab, f, at(0), Learned)
	now := at(1)
	if n := testing.AllocsPerRun(100, func() {
		now = now.Add(time.Second)
		if _, err := tab.Receive(f, now); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a refresh", n)
	}
}

func TestSourceMACChangeIsUpdated(t *testing.T) {
	tab := NewTable(Limits{})
	f := registration("swp1", 1, 1, "192.0.2.11", 120)
	hear(t, tab, f, at(0), Learned)
	f.Src[5] = 99
	f.At = at(0.5)
	ch := hear(t, tab, f, at(1), Updated)
	wantHosts(t, ch, []string{"192.0.2.11"}, nil, 0)
	if !ch.At.Equal(at(0.5)) || ch.Neighbour.MAC != f.Src || ch.Put[0].MAC[5] != 1 {
		t.Errorf("%+v", ch)
	}
}
