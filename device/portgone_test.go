package device

import (
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
)

// A port may be gone when the hosts behind it age out: its interface was renamed or taken out, or
// the configuration does not name it any more. All of them then age out at once.
func TestAllHostsOfAPortThatIsGoneAgeOut(t *testing.T) {
	hosts := []string{"192.0.2.51", "192.0.2.52", "192.0.2.53"}
	for _, c := range []struct {
		name string
		gone func(b *bareCore)
	}{
		{"its interface is gone", func(b *bareCore) { b.carrier("eth1", false, fabric.PortRemoved) }},
		{"it is not named any more", func(b *bareCore) {
			names, err := fabric.ParseNames([]string{"eth2"})
			if err != nil {
				t.Fatal(err)
			}
			b.SetAccess(names, 10*time.Second)
			b.carrier("eth1", true, fabric.PortRemoved)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBareCore(t, true)
			for _, p := range []string{"eth1", "eth2"} {
				b.carrier(p, true, fabric.PortAdded)
			}
			b.Start(b.now)
			for _, a := range hosts {
				b.register(a, "eth1", a)
			}
			c.gone(b)
			b.now = b.now.Add(10 * time.Minute)
			b.Tick(b.now)
			if left := b.Addresses(); len(left) != 0 {
				t.Errorf("hosts that are still known: %v", left)
			}
			if n := len(b.localAddrs); n != 0 {
				t.Errorf("%d addresses are still here", n)
			}
			if b.ports["eth1"] != nil {
				t.Error("the port is still known")
			}
		})
	}
}

// A port that goes and comes again with the switch's own programs, shut as we had it, is still ours:
// a recovery opens it.
func TestAPortThatComesAgainShutByUsIsShutByHand(t *testing.T) {
	b := newBareCore(t, true)
	o := &orderly{}
	b.out = o
	is := fabric.Event{Kind: fabric.PortAdded, Port: fabric.Port{Name: "eth1", Index: 1, AdminUp: true, Carrier: true}}
	b.Port(is, b.now)
	b.Start(b.now)
	if err := b.ShutPort("eth1", b.now); err != nil {
		t.Fatal(err)
	}
	is.Port.AdminUp, is.Port.Carrier = false, false
	is.Kind = fabric.PortChanged
	b.Port(is, b.now)
	is.Kind = fabric.PortRemoved
	b.Port(is, b.now)
	is.Kind, is.Port.Index, is.ShutByUs = fabric.PortAdded, 2, true
	b.Port(is, b.now)
	if st, _ := b.faults.PortStatus("eth1", b.now); !st.Shut {
		t.Errorf("it is no longer ours: %+v", st)
	}
	if err := b.RecoverPort("eth1", b.now); err != nil {
		t.Fatal(err)
	}
	if want := []string{"admin eth1 false", "admin eth1 false", "admin eth1 true"}; !slices.Equal(o.did, want) {
		t.Errorf("%q, want %q", o.did, want)
	}
}
