package reflector

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// claimOf is what a client knows of the claim of an attachment.
func (n *network) claimOf(dev netip.Addr, k zone.HostKey) zone.Claim {
	n.t.Helper()
	h, ok := n.hosts[dev][k]
	if !ok {
		n.t.Fatalf("%v does not know %v", dev, k)
	}
	return h.Claim
}

// liar is a later claim of another device to the address of h, with a clock at 1970.
func liar(h zone.Host, at netip.Addr) zone.Host {
	h.HostKey.Device, h.HostKey.Port = at, "lies"
	h.MAC, h.Since = fabric.MAC{2, 6, 6, 6, 6, 6}, time.Unix(1, 0)
	return h
}

// claimed has three devices: the first has the host h, and the last one hears of it.
func claimed(t *testing.T) (n *network, h zone.Host) {
	n = newNetwork(t, 1, 3, client.AgreeIdentical, Config{})
	h = inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "Ethernet1")
	n.clients[inoftest.DevID(0)].PutHost(h)
	n.clients[inoftest.DevID(2)].PutHost(inoftest.HostAt(inoftest.HostIP(2), inoftest.DevID(2), "Ethernet1"))
	n.settle()
	return n, h
}

func (n *network) settleAt(dev netip.Addr) {
	n.fromClient(dev, n.clients[dev].Flush(n.now))
	n.deliverAll()
}

// The order of arrival at the reflector decides, whatever a sender's clock says; a fault
// that a rival tells of its claim concerns nobody.
func TestALaterClaimWithAnEarlierClockIsARival(t *testing.T) {
	n, h := claimed(t)
	honest, lies, hears := inoftest.DevID(0), inoftest.DevID(1), inoftest.DevID(2)
	l := liar(h, lies)
	n.clients[lies].PutHost(l)
	setDown(n.clients[lies], "lies", zone.Down{Why: snsd.ReasonLinkDown}, h.Addr)
	n.settle()
	if n.claimOf(hears, h.HostKey) != zone.ClaimHolder || n.claimOf(hears, l.HostKey) != zone.ClaimRival {
		t.Errorf("the holder is named %v, the liar %v", n.claimOf(hears, h.HostKey), n.claimOf(hears, l.HostKey))
	}
	if n.claimOf(honest, l.HostKey) != zone.ClaimRival {
		t.Errorf("the holder's device hears of the rival as %v", n.claimOf(honest, l.HostKey))
	}
}

func TestAHostOnAPortWithAFaultLosesItsAddressToALivingClaim(t *testing.T) {
	n, h := claimed(t)
	was, is, hears := inoftest.DevID(0), inoftest.DevID(1), inoftest.DevID(2)
	moved := liar(h, is)
	n.clients[is].PutHost(moved)
	n.settle()
	setDown(n.clients[was], "Ethernet1", zone.Down{Why: snsd.ReasonLinkDown}, h.Addr)
	n.settle()
	if n.claimOf(hears, h.HostKey) != zone.ClaimRival || n.claimOf(hears, moved.HostKey) != zone.ClaimHolder {
		t.Errorf("the dead claim is named %v, the living one %v", n.claimOf(hears, h.HostKey), n.claimOf(hears, moved.HostKey))
	}
}

// A device that is gone for a while has nobody who could answer for its hosts.
func TestTheClaimOfADeviceThatIsGoneYieldsAfterAWhile(t *testing.T) {
	n, h := claimed(t)
	r := n.ids[0]
	gone, is, hears := inoftest.DevID(0), inoftest.DevID(1), inoftest.DevID(2)
	moved := liar(h, is)
	n.clients[is].PutHost(moved)
	n.settle()
	n.cut(gone, r)
	n.now = n.now.Add(awayAfter - time.Millisecond)
	n.fromRefl(r, n.refls[r].Tick(n.now))
	n.deliverAll()
	if n.claimOf(hears, h.HostKey) != zone.ClaimHolder {
		t.Error("it yields although it may be back in a moment")
	}
	n.now = n.refls[r].Next()
	n.fromRefl(r, n.refls[r].Tick(n.now))
	n.deliverAll()
	if n.claimOf(hears, h.HostKey) != zone.ClaimRival || n.claimOf(hears, moved.HostKey) != zone.ClaimHolder {
		t.Errorf("named %v and %v", n.claimOf(hears, h.HostKey), n.claimOf(hears, moved.HostKey))
	}
	n.settle() // it is back, and who has the address keeps it
	if n.claimOf(gone, moved.HostKey) != zone.ClaimHolder {
		t.Errorf("after its return it hears of the other one as %v", n.claimOf(gone, moved.HostKey))
	}
}

// disputed has two reflectors that heard the claims to an address in different orders, and a client
// that hears both of them.
func disputed(t *testing.T) (n *network, hears netip.Addr, said func() [2]zone.Claim) {
	n = newNetwork(t, 2, 3, client.AgreeIdentical, Config{})
	one, two, hears := inoftest.DevID(0), inoftest.DevID(1), inoftest.DevID(2)
	h := inoftest.HostAt(inoftest.HostIP(0), one, "Ethernet1")
	l := liar(h, two)
	n.clients[hears].PutHost(inoftest.HostAt(inoftest.HostIP(2), hears, "Ethernet1"))
	n.clients[one].PutHost(h)
	n.clients[two].PutHost(l)
	n.join(one, n.ids[0])
	n.join(two, n.ids[1])
	n.settleAt(one)
	n.settleAt(two)
	n.settle()
	return n, hears, func() [2]zone.Claim {
		return [2]zone.Claim{n.claimOf(hears, h.HostKey), n.claimOf(hears, l.HostKey)}
	}
}

var (
	nobodyDecides = [2]zone.Claim{zone.ClaimOpen, zone.ClaimOpen}
	firstDecides  = [2]zone.Claim{zone.ClaimHolder, zone.ClaimRival}
)

func TestAClientIsToldOfAHolderOnlyWhenAllItsReflectorsNameIt(t *testing.T) {
	n, hears, said := disputed(t)
	if got := said(); got != nobodyDecides {
		t.Errorf("named %v, want %v", got, nobodyDecides)
	}
	n.cut(hears, n.ids[1])
	if got := said(); got != firstDecides {
		t.Errorf("with the first reflector alone named %v, want %v", got, firstDecides)
	}
	n.cut(hears, n.ids[0])
	if got := said(); got != firstDecides {
		t.Errorf("without any, when the last word stands, named %v, want %v", got, firstDecides)
	}
}

func TestOfReflectorsThatGoOnNamingDifferentHoldersTheFirstDecides(t *testing.T) {
	n, hears, said := disputed(t)
	c := n.clients[hears]
	due := c.Next()
	for _, at := range []time.Time{due.Add(-time.Millisecond), due} {
		n.apply(hears, c.Tick(at))
		want := nobodyDecides
		if at == due {
			want = firstDecides
		}
		if got := said(); got != want {
			t.Errorf("%v after the sync named %v, want %v", at.Sub(n.now), got, want)
		}
	}
	if next := c.Next(); !next.IsZero() {
		t.Errorf("something is due at %v", next.Sub(n.now))
	}
	n.cut(hears, n.ids[0])
	n.join(hears, n.ids[0]) // its sync is under way: it decides nothing yet
	n.now = n.now.Add(time.Hour)
	n.apply(hears, c.Tick(n.now))
	if got, want := said(), [2]zone.Claim{zone.ClaimRival, zone.ClaimHolder}; got != want {
		t.Errorf("during the sync of the first named %v, want %v", got, want)
	}
}

// The device of a living claim still takes the one of a device that is gone for the holder.
// Receivers must take the one whose zones they were told of.
func TestAReflectorNamesTheHolderWhateverItsDeviceSays(t *testing.T) {
	n, h := claimed(t)
	r := n.ids[0]
	gone, is, hears := inoftest.DevID(0), inoftest.DevID(1), inoftest.DevID(2)
	moved := liar(h, is)
	moved.Claim = zone.ClaimRival
	n.clients[is].PutHost(moved)
	n.settle()
	n.cut(gone, r)
	n.now = n.now.Add(awayAfter)
	n.fromRefl(r, n.refls[r].Tick(n.now))
	n.deliverAll()
	if a, b := n.claimOf(hears, h.HostKey), n.claimOf(hears, moved.HostKey); a != zone.ClaimRival || b != zone.ClaimHolder {
		t.Errorf("the dead claim is named %v, the living one %v", a, b)
	}
}

// Of the only claim that a reflector knows the device may know another holder, from another
// reflector.
func TestTheOnlyClaimStaysARivalWhenItsDeviceSaysSo(t *testing.T) {
	n := newNetwork(t, 1, 2, client.AgreeIdentical, Config{})
	is, hears := inoftest.DevID(0), inoftest.DevID(1)
	h := inoftest.HostAt(inoftest.HostIP(0), is, "Ethernet1")
	h.Claim = zone.ClaimRival
	bond := h
	bond.HostKey.Port = "Ethernet2"
	n.clients[is].PutHost(h)
	n.clients[is].PutHost(bond)
	n.clients[hears].PutHost(inoftest.HostAt(inoftest.HostIP(2), hears, "Ethernet1"))
	n.settle()
	for _, k := range []zone.HostKey{h.HostKey, bond.HostKey} {
		if c := n.claimOf(hears, k); c != zone.ClaimRival {
			t.Errorf("%v is named %v", k, c)
		}
	}
}
