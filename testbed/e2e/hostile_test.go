package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/testbed/labtest"
	"github.com/openinof/inof/zone"
)

// rogueID is the device of the bad client; it is bound to 203.0.113.0/24.
const rogueID = "10.0.0.99"

// hostileFabric is the fabric with a machine that can reach the reflector, one on a port of tor2,
// and devices that are bound to their hosts.
func hostileFabric(t *testing.T, name string) (*fab, *tap) {
	f := newFabric(t, spec{
		name: name,
		nodes: "    intruder: {kind: linux, exec: [ip addr add 10.1.3.1/31 dev eth1, ip route add 10.0.0.1/32 via 10.1.3.0]}\n" +
			"    evil: {kind: linux}\n",
		links: "    - endpoints: [\"spine:eth3\", \"intruder:eth1\"]\n    - endpoints: [\"tor2:eth2\", \"evil:eth1\"]\n",
		edit: map[string]func(string) string{"spine": func(c string) string {
			return c + "reflector: {records-per-second: 1000, records-burst: 1000, clients: [{device: 10.0.0.11, prefixes: [192.0.2.11, 192.0.2.21]}, " +
				"{device: 10.0.0.12, prefixes: [192.0.2.12]}, {device: " + rogueID + ", prefixes: [203.0.113.0/24]}]}\n"
		}},
	})
	f.run("spine", "ip", "addr", "add", "10.1.3.0/31", "dev", "eth3")
	return f, f.wire("evil", "eth1")
}

// claim is what the bad client says of a host.
func claim(addr string, op wire.Op) wire.HostRecord {
	return wire.HostRecord{Op: op, Host: zone.Host{HostKey: zone.HostKey{Addr: netip.MustParseAddr(addr), Device: netip.MustParseAddr(rogueID), Port: "eth1"},
		MAC: fabric.MAC{2, 6, 6, 6, 6, 6}, Service: snsd.Service{Role: snsd.RoleTarget}, Since: time.Unix(0, 1)}}
}

// flooding is the bad client that sends changes as fast as the reflector reads them.
func (f *fab) flooding(stop <-chan struct{}) {
	r, self := f.rogue(rogueID), netip.MustParseAddr(rogueID)
	for n := uint64(1); ; n++ {
		e, err := wire.Encode(&wire.Update{Origin: self, Epoch: 3, Seq: n, FaultAt: time.Now(),
			Hosts: []wire.HostRecord{claim("203.0.113.1", wire.Op(1+n%2))}})
		if err != nil {
			panic(err)
		}
		select {
		case <-stop:
			return
		default:
		}
		if _, err := r.c.Write(r.sess.Seal(nil, e, time.Now())); err != nil {
			return // its time is over
		}
	}
}

// A client that knows the password and lies, floods, comes with another's id or reads nothing, and
// a host that speaks for others at its port: while each does so a true fault is told to all whom it
// concerns, nothing else is told to anybody, and a warning names who it is.
func TestOneBadClientOrHostHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	f, evil := hostileFabric(t, "hostile")
	self, victims := netip.MustParseAddr(rogueID), []string{target, init1, init2}
	macs := []fabric.MAC{f.macOf("t1"), f.macOf("i1")}
	for _, c := range []struct {
		name  string
		act   func(stop <-chan struct{})
		words []string // of a warning
	}{
		{"a client that lies", func(<-chan struct{}) {
			r, u := f.rogue(rogueID), &wire.Update{Origin: self, Epoch: 1, Seq: 1}
			down := wire.DownRecord{Device: self, Port: "eth1", Down: zone.Down{Why: snsd.ReasonLinkDown, Since: time.Now()}}
			for _, addr := range victims {
				u.Hosts = append(u.Hosts, claim(addr, wire.Put))
				down.Addrs = append(down.Addrs, netip.MustParseAddr(addr))
			}
			u.Downs = []wire.DownRecord{down}
			r.send(u)
			r.send(&wire.EndOfSync{Epoch: 1, Seq: 1})
		}, []string{"device " + rogueID + " are outside of its binding"}},
		{"a client that reads nothing", func(<-chan struct{}) {
			r := f.rogue(rogueID)
			r.send(&wire.Update{Origin: self, Epoch: 2, Seq: 1, Hosts: []wire.HostRecord{claim("203.0.113.1", wire.Put)}})
			r.send(&wire.EndOfSync{Epoch: 2, Seq: 1})
		}, []string{rogueID + " has no session"}},
		{"a client that floods", f.flooding, []string{rogueID, "more records than it may"}},
		{"a clone", func(stop <-chan struct{}) {
			for {
				if err := f.rogueRefused(tor1ID); err == nil || !strings.Contains(err.Error(), "duplicate device id") {
					t.Errorf("a second %s: %v", tor1ID, err)
				}
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		}, []string{"duplicate device id", tor1ID}},
		// As another chassis, and in turn with the frames of the victim itself, if that is at
		// another switch: at the same one it would be the second port of a bond, until a binding
		// says else.
		{"a host that says others' addresses in LLDP", func(stop <-chan struct{}) {
			for round := 0; ; round++ {
				for i, addr := range victims {
					mac := evil.mac()
					if round%2 == 1 && i < len(macs) {
						mac = macs[i]
					}
					evil.send(fabric.MACNearestBridge, mac, fabric.EtherTypeLLDP, registrationOf(t, mac, addr, i+1, 65535,
						func(r *snsd.Registration) { r.Role, r.NQN = snsd.RoleTarget, "nqn.2026-11.org.example:t1" }))
				}
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}, []string{"device " + tor2ID + " are outside of its binding"}},
		{"a host that acks and tells for others", func(stop <-chan struct{}) {
			seq := uint32(0)
			for {
				for i, addr := range victims {
					evil.lldp(evil.registration(addr, i+1, 65535, func(r *snsd.Registration) { r.Role, r.NQN = snsd.RoleTarget, "nqn.2026-11.org.example:t1" }))
					host, subject := netip.MustParseAddr(addr), netip.MustParseAddr(victims[(i+1)%len(victims)])
					seq++
					b, err := snsd.AppendAck(nil, snsd.Ack{Subject: subject, Host: host, Seq: seq})
					if err == nil {
						evil.nts(b)
					}
					if b, err = snsd.AppendNotify(nil, snsd.Notice{Subject: subject, Host: host, State: snsd.Inactive, Reason: snsd.ReasonLinkDown, Seq: seq}); err == nil {
						evil.nts(b)
					}
				}
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}, []string{"device " + tor2ID + " are outside of its binding"}},
	} {
		f.whileBad(c.name, c.act, c.words)
	}
}

// macOf is the MAC address of a host.
func (f *fab) macOf(node string) fabric.MAC {
	f.t.Helper()
	words := strings.Fields(f.run(node, "ip", "-br", "link", "show", "dev", "eth1"))
	if len(words) < 3 {
		f.t.Fatalf("%s: ip says %q of eth1", node, words)
	}
	hw, err := net.ParseMAC(words[2])
	if err != nil || len(hw) != len(fabric.MAC{}) {
		f.t.Fatalf("%s: ip says %q of eth1", node, words)
	}
	return fabric.MAC(hw)
}

// whileBad has somebody act, waits until the reflector names who, and has a true fault told
// meanwhile.
func (f *fab) whileBad(name string, act func(stop <-chan struct{}), words []string) {
	f.t.Helper()
	since := f.marks("i1", "i2")
	stop := make(chan struct{})
	var acting sync.WaitGroup
	acting.Go(func() { act(stop) })
	defer acting.Wait()
	defer close(stop)
	labtest.Eventually(f.t, name+" to be named", func() error {
		if w := f.status("spine").Warnings.String(); !hasAll(w, words) {
			return fmt.Errorf("warnings %q, want %q", w, words)
		}
		return nil
	})
	f.stillTells()
	f.only(name, since, map[string][]notice{
		"i1": {{init1, target, "inactive", "link-down"}, {init1, target, "active", "none"}},
		"i2": {{init2, target, "inactive", "link-down"}, {init2, target, "active", "none"}},
	})
}
