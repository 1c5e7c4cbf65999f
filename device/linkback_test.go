package device

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

func TestAnAckOfBeforeTheLossOfCarrierIsNoEvidence(t *testing.T) {
	b := newBareCore(t, true)
	b.twoHosts()
	before := b.now
	b.now = b.now.Add(time.Millisecond)
	b.carrier("eth1", false, fabric.PortChanged)
	b.carrier("eth1", true, fabric.PortChanged)
	b.Tick(b.now)
	ack := func(src string, at time.Time) {
		var a snsd.Ack
		for _, n := range b.notify.Notices() {
			if n.Host.String() == i1 && n.Subject.String() == i2 {
				a = snsd.Ack{Subject: n.Subject, Host: n.Host, Seq: n.Seq}
			}
		}
		payload, err := snsd.AppendAck(nil, a)
		if err != nil {
			t.Fatal(err)
		}
		b.Frame(fabric.Frame{Port: "eth1", Src: hostMAC(src), Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, Payload: payload, At: at}, b.now)
	}
	again := func() { // so that there is something to ack
		b.carrier("eth1", false, fabric.PortChanged)
		b.carrier("eth1", true, fabric.PortChanged)
		b.Tick(b.now)
	}
	for _, tt := range []struct {
		what, src string
		at        time.Time
		want      string
	}{
		{"an ack of before", "h1", before, "inactive link-down"},
		{"an ack of another machine", "h9", b.now, "inactive link-down"},
		{"its ack", "h1", b.now, "active none"},
	} {
		again()
		if ack(tt.src, tt.at); b.state(i1) != tt.want {
			t.Errorf("after %s: %s, want %s", tt.what, b.state(i1), tt.want)
		}
	}
}

// Another machine that has taken a host's address on a port, and has not registered yet, acks what
// is told to the host: it is repeated until the host itself acks it.
func TestAnAckOfAnotherMachineIsNotTheHosts(t *testing.T) {
	b := newBareCore(t, true)
	b.twoHosts()
	for _, tt := range []struct {
		src   string
		acked bool
	}{{"h9", false}, {"h1", true}} {
		told := false
		for _, n := range b.notify.Notices() {
			if n.Host.String() != i1 {
				continue
			}
			told = true
			payload, err := snsd.AppendAck(nil, snsd.Ack{Subject: n.Subject, Host: n.Host, Seq: n.Seq})
			if err != nil {
				t.Fatal(err)
			}
			b.Frame(fabric.Frame{Port: "eth1", Src: hostMAC(tt.src), Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, Payload: payload, At: b.now}, b.now)
			if got := b.notify.Told(n.Host, n.Subject).Acked; got != tt.acked {
				t.Errorf("after an ack of %s: acked %v, want %v", tt.src, got, tt.acked)
			}
		}
		if !told {
			t.Fatal("nothing was told")
		}
	}
	if b.counters.AcksForeign != 1 {
		t.Errorf("%d acks of other machines counted, want 1", b.counters.AcksForeign)
	}
}

// acks has a machine ack all that is under way to a host, and reports whether it counted.
func (b *bareCore) acks(src, port, host string) (counted bool) {
	b.t.Helper()
	b.Tick(b.now)
	told := false
	for _, n := range b.notify.Notices() {
		if n.Host.String() != host || !n.Acked.IsZero() || n.Dropped {
			continue
		}
		told = true
		payload, err := snsd.AppendAck(nil, snsd.Ack{Subject: n.Subject, Host: n.Host, Seq: n.Seq})
		if err != nil {
			b.t.Fatal(err)
		}
		b.Frame(fabric.Frame{Port: port, Src: hostMAC(src), Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, Payload: payload, At: b.now}, b.now)
		counted = b.notify.Told(n.Host, n.Subject).Acked
	}
	if !told {
		b.t.Fatal("nothing is under way")
	}
	return counted
}

// The acks of a VLAN interface, of a bond or of a macvlan come from another MAC address than the
// LLDP frames of their machine.
func TestAcksOfASecondMACOfTheSameMachineAreTheHosts(t *testing.T) {
	b := newBareCore(t, true)
	b.twoHosts()
	if b.acks("vlan", "eth1", i1) {
		t.Error("a MAC address that nothing speaks for is taken for the host's at once")
	}
	b.register("h1", "eth1", i1)
	if !b.acks("vlan", "eth1", i1) {
		t.Error("the host has registered again beside it: its acks do not count")
	}
	foreign := b.counters.AcksForeign
	// A loss of carrier may be another machine.
	b.carrier("eth1", false, fabric.PortChanged)
	b.carrier("eth1", true, fabric.PortChanged)
	if b.acks("vlan", "eth1", i1) || b.counters.AcksForeign != foreign+1 {
		t.Error("after a loss of carrier it still is the host's")
	}
	b.register("h1", "eth1", i1)
	if b.acks("new", "eth1", i1) {
		t.Error("what is proven of one MAC address is taken for another one too")
	}
}

// Where another machine is heard on the port nobody else's acks count, however often the host
// registers: neither the other machine's, nor what it makes up.
func TestForgedAcksOfAMachineOnThePortDoNotCount(t *testing.T) {
	for _, src := range []string{"h9", "made up"} {
		b := newBareCore(t, true)
		b.twoHosts()
		b.register("h9", "eth1", t3)
		for range 3 {
			if b.acks(src, "eth1", i1) {
				t.Errorf("an ack of %q counts as one of the host", src)
			}
			b.register("h1", "eth1", i1)
		}
		if !b.acks("h1", "eth1", i1) {
			t.Error("the host's own does not count")
		}
	}
	// From another port, or with a number that was not sent, neither.
	b := newBareCore(t, true)
	b.twoHosts()
	for range 3 {
		if b.acks("h1", "eth2", i1) {
			t.Error("an ack that came in by another port counts")
		}
		f := fabric.Frame{Port: "eth1", Src: hostMAC("guess"), Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, At: b.now}
		f.Payload, _ = snsd.AppendAck(nil, snsd.Ack{Subject: netip.MustParseAddr(i2), Host: netip.MustParseAddr(i1), Seq: 0xdeadbeef})
		b.Frame(f, b.now)
		b.register("h1", "eth1", i1)
	}
	if b.acks("guess", "eth1", i1) {
		t.Error("a MAC address that guessed a number wrong is proven all the same")
	}
}

// A host with two ports goes from one of them, where another machine with its address is plugged in
// and heard before the device knows that there is a carrier. That nothing changes for who talks to the host, which
// can be reached over the other port, does not hide that it is not there any more.
func TestAMachineInThePlaceOfOnePortOfAHostIsFound(t *testing.T) {
	b := newBareCore(t, true)
	for _, p := range []string{"eth1", "eth2"} {
		b.carrier(p, true, fabric.PortAdded)
	}
	b.Start(b.now)
	b.register("h1", "eth1", i1)
	b.register("h1", "eth2", i1)
	b.carrier("eth1", false, fabric.PortChanged)
	b.Tick(b.now)
	b.now = b.now.Add(time.Second)
	f, err := registration("h9", "eth1", i1)
	if err != nil {
		t.Fatal(err)
	}
	b.Frame(f, b.now) // it may come before the word of the carrier
	b.carrier("eth1", true, fabric.PortChanged)
	addr := netip.MustParseAddr(i1)
	if got := b.table.Claimants("eth1", addr); len(got) != 2 || b.state(i1) != "active none" {
		t.Fatalf("claimed by %v, %s; want two machines, and the host active on its other port", got, b.state(i1))
	}
	for range 100 {
		b.now = b.now.Add(100 * time.Millisecond)
		b.Tick(b.now)
	}
	if got := b.table.Claimants("eth1", addr); len(got) != 1 || got[0] != hostMAC("h9") {
		t.Errorf("10 s later the port has %v, want %s alone: who was there does not answer", got, hostMAC("h9"))
	}
}
