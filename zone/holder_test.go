package zone

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// twoClaims are a host and a later claim to its address from another device.
func twoClaims() (d *Directory, first, later Host) {
	d = NewDirectory(addr("192.0.2.250"))
	d.SetAutoJoin(true)
	first, later = hostAt("192.0.2.1", "192.0.2.251", "e1"), hostAt("192.0.2.1", "192.0.2.252", "e2")
	later.MAC = fabric.MAC{5: 9}
	d.PutHost(first)
	return d, first, later
}

func wantHolder(t *testing.T, d *Directory, want Host) {
	t.Helper()
	if got, _ := d.Host(want.Addr); got.HostKey != want.HostKey || !d.Holds(want.HostKey) {
		t.Fatalf("%v has the address, want %v", got.HostKey, want.HostKey)
	}
}

func TestASendersClockDecidesNothing(t *testing.T) {
	d, first, later := twoClaims()
	later.Since = time.Unix(0, 0)
	wantChanges(t, d.PutHost(later))
	wantHolder(t, d, first)
	later.MAC, later.Device = first.MAC, addr("192.0.2.249") // a lower device, and the same machine
	wantChanges(t, d.PutHost(later))
	wantHolder(t, d, first)
}

func TestAClaimOnAPortWithoutAFaultTakesTheAddressFromOneWithIt(t *testing.T) {
	d, first, later := twoClaims()
	list := []netip.Addr{first.Addr}
	d.PutHost(later)
	setFault(d, later.Device, "e2", list, snsd.ReasonPFCStorm)
	wantChanges(t, setFault(d, first.Device, "e1", list, snsd.ReasonLinkDown), Change{Addr: first.Addr, Why: snsd.ReasonLinkDown})
	wantHolder(t, d, first) // both are dead: it keeps it
	wantChanges(t, setFault(d, later.Device, "e2", nil, 0), Change{Addr: first.Addr})
	wantHolder(t, d, later)
	wantChanges(t, setFault(d, first.Device, "e1", nil, 0))
	wantHolder(t, d, later) // who has it keeps it
	if d.Moves(first.Addr) != 1 {
		t.Errorf("%d moves", d.Moves(first.Addr))
	}
}

func TestAClaimOfADeviceThatIsAwayYields(t *testing.T) {
	d, first, later := twoClaims()
	d.PutHost(later)
	wantChanges(t, d.SetAway(first.Device, true), Change{Addr: first.Addr})
	wantHolder(t, d, later)
	d.SetAway(first.Device, false)
	wantHolder(t, d, later)
}

func TestWhoIsNamedByAllTakesTheAddress(t *testing.T) {
	d, first, later := twoClaims()
	first.Claim, later.Claim = ClaimOpen, ClaimOpen
	d.PutHost(first)
	d.PutHost(later)
	wantHolder(t, d, first)
	later.Claim = ClaimHolder
	d.PutHost(later)
	wantHolder(t, d, later)
	first.Claim, later.Claim = ClaimOpen, ClaimRival
	d.PutHost(later)
	d.PutHost(first)
	wantHolder(t, d, first)
}

// Whoever follows a reflector has the zones of the claim that it names, and of no other.
func TestWhoIsNamedKeepsTheAddressThoughItsPortHasAFault(t *testing.T) {
	d, first, later := twoClaims()
	first.Claim, later.Claim = ClaimHolder, ClaimRival
	d.PutHost(first)
	d.PutHost(later)
	setFault(d, first.Device, "e1", []netip.Addr{first.Addr}, snsd.ReasonLinkDown)
	wantHolder(t, d, first)
	later.Claim, first.Down.Why = ClaimOpen, snsd.ReasonLinkDown
	d.PutHost(later)
	wantHolder(t, d, later) // it came since, and is alive
	first.Claim, later.Claim = ClaimOpen, ClaimRival
	d.PutHost(first)
	d.PutHost(later)
	wantHolder(t, d, later) // nobody decides: the living one, though it was named a rival
}

func TestOneMachineOnPortsOfTwoDevicesIsARivalUnlessAllowed(t *testing.T) {
	for policy, state := range map[MultiPort]snsd.State{MultiPortDevice: snsd.Inactive, MultiPortNever: snsd.Inactive, MultiPortFabric: snsd.Active} {
		d, first, later := twoClaims()
		later.MAC = first.MAC
		d.SetMultiPort(policy)
		d.PutHost(later)
		setFault(d, later.Device, "e2", []netip.Addr{first.Addr}, snsd.ReasonPFCStorm)
		if d.Holds(later.HostKey) != (policy == MultiPortFabric) || len(d.Conflicts()) == 1 != (policy != MultiPortFabric) {
			t.Errorf("policy %d: holds %v, conflicts %v", policy, d.Holds(later.HostKey), d.Conflicts())
		}
		setFault(d, first.Device, "e1", []netip.Addr{first.Addr}, snsd.ReasonLinkDown)
		if policy == MultiPortFabric {
			setFault(d, later.Device, "e2", nil, 0)
		}
		if got, _ := d.State(first.Addr); got != state {
			t.Errorf("policy %d: %v", policy, got)
		}
	}
}
