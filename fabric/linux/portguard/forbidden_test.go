package portguard

import (
	"encoding/binary"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/internal/netnstest"
)

// innerType returns the EtherType behind all tags.
func innerType(f []byte) uint16 {
	at := 12
	for at+6 <= len(f) && (binary.BigEndian.Uint16(f[at:]) == 0x8100 || binary.BigEndian.Uint16(f[at:]) == 0x88a8) {
		at += 4
	}
	return binary.BigEndian.Uint16(f[at:])
}

func control(frames [][]byte) (list [][]byte) {
	for _, f := range frames {
		if t := innerType(f); t == 0x88a7 || t == 0x88cc {
			list = append(list, f)
		}
	}
	return list
}

// Two switches with hosts h1, h2 at the first, of which only the first is guarded.
type fabricOfTwo struct {
	sw, sw2    *netnstest.Space
	h1, h2, h3 *tap
}

func newFabricOfTwo(t testing.TB) *fabricOfTwo {
	x := &fabricOfTwo{sw: netnstest.New(t), sw2: netnstest.New(t)}
	hosts := [3]*netnstest.Space{netnstest.New(t), netnstest.New(t), netnstest.New(t)}
	x.sw.Veth("p1", hosts[0], "h1")
	x.sw.Veth("p2", hosts[1], "h2")
	x.sw.Veth("up", x.sw2, "up2")
	x.sw2.Veth("p3", hosts[2], "h3")
	bridge(t, x.sw, "p1", "p2", "up")
	bridge(t, x.sw2, "up2", "p3")
	x.h1, x.h2, x.h3 = newTap(t, hosts[0], "h1"), newTap(t, hosts[1], "h2"), newTap(t, hosts[2], "h3")
	return x
}

// forged lists frames that a host must not be able to send to another one, and whether a switch
// takes such a frame for itself.
func forged(from, victim net.HardwareAddr) (frames [][]byte, forbidden []bool) {
	broadcast := net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	group := func(last byte) net.HardwareAddr { return net.HardwareAddr{0x01, 0x80, 0xc2, 0, 0, last} }
	own := map[uint16][]byte{0x88a7: {0x0d}, 0x88cc: {0x0e}}
	for _, etherType := range []uint16{0x88a7, 0x88cc} {
		for _, dst := range []net.HardwareAddr{group(0x0d), group(0x0e), group(0x03), group(0x00), group(0x20), {0x01, 0, 0x5e, 0, 0, 1}, victim, broadcast} {
			for _, tags := range [][][2]uint16{nil, {{0x8100, 0}}, {{0x8100, 5}}, {{0x88a8, 7}}, {{0x88a8, 7}, {0x8100, 5}}, {{0x8100, 0}, {0x8100, 5}}} {
				for _, src := range []net.HardwareAddr{from, {2, 0xde, 0xad, 0, 0, 1}} {
					frames = append(frames, frame(dst, src, tags, etherType, make([]byte, 60)))
					taken := len(tags) == 0 || len(tags) == 1 && tags[0][1] == 0
					taken = taken && dst[0] == 1 && dst[1] == 0x80 && dst[5] != 0x20
					mine := false
					for _, last := range own[etherType] {
						mine = mine || dst[5] == last
					}
					forbidden = append(forbidden, !(taken && mine))
				}
			}
		}
	}
	return frames, forbidden
}

// forge sends all of it from a host, and returns what reaches the victim.
func (x *fabricOfTwo) forge(from *tap, mark string) (sent, taken int, reached [][]byte) {
	frames, forbidden := forged(from.mac, x.h2.mac)
	for i, f := range frames {
		from.send(f)
		if !forbidden[i] {
			taken++
		}
	}
	from.send(marked(x.h2.mac, from.mac, mark))
	return len(frames), taken, control(x.h2.received(mark))
}

func TestNoForgedFrameReachesAHost(t *testing.T) {
	for _, way := range ways(t) {
		t.Run(string(way), func(t *testing.T) {
			x := newFabricOfTwo(t)
			for name, from := range map[string]*tap{"the same switch": x.h1, "another switch": x.h3} {
				if _, _, reached := x.forge(from, "without a guard, from "+name); len(reached) < 20 {
					t.Fatalf("%d frames from %s reach the victim without a guard: the test shows nothing", len(reached), name)
				}
			}
			g := open(t, x.sw, Config{Way: way})
			place(t, x.sw, g, "p1", "p2")

			sent, taken, reached := x.forge(x.h1, "from the same switch")
			if len(reached) > 0 {
				t.Errorf("%d frames of another port reach the host, the first is % x", len(reached), reached[0])
			}
			counts, err := g.Forbidden()
			must(t, err)
			if got := counts["p1"].In; got != uint64(sent-taken) {
				t.Errorf("%d frames are counted at p1, want %d of %d", got, sent-taken, sent)
			}
			if c := counts["p1"]; c.Type != 0x88cc || c.Src.String() != "02:de:ad:00:00:01" {
				t.Errorf("the last one is of %s, type %#x", c.Src, c.Type)
			}
			before := counts["p2"].Out
			if _, _, reached = x.forge(x.h3, "from another switch"); len(reached) > 0 {
				t.Errorf("%d frames of another switch reach the host, the first is % x", len(reached), reached[0])
			}
			if counts, err = g.Forbidden(); err != nil || counts["p2"].Out < before+20 {
				t.Errorf("%d frames are counted at p2, want more than %d: %v", counts["p2"].Out, before+20, err)
			}
		})
	}
}

// A bridge that an operator told to forward link-local groups forwards what the switch takes for
// itself, too.
func TestABridgeThatForwardsLinkLocalGroupsReachesNoHost(t *testing.T) {
	x := newFabricOfTwo(t)
	for s, ports := range map[*netnstest.Space][]string{x.sw: {"p1", "p2", "up"}, x.sw2: {"up2", "p3"}} {
		for _, p := range ports {
			must(t, s.NL.LinkSetBRSlaveGroupFwdMask(s.Link(p), 1<<0xd|1<<0xe|1<<3))
		}
	}
	if _, taken, reached := x.forge(x.h1, "without a guard"); len(reached) < taken {
		t.Fatalf("%d frames reach the victim, %d of them link-local: the bridge does not forward them", len(reached), taken)
	}
	place(t, x.sw, open(t, x.sw, Config{}), "p1", "p2")
	for name, from := range map[string]*tap{"the same switch": x.h1, "another switch": x.h3} {
		if _, _, reached := x.forge(from, "guarded, from "+name); len(reached) > 0 {
			t.Errorf("%d frames from %s reach the host, the first is % x", len(reached), name, reached[0])
		}
	}
}

func TestMoreTagsThanTheGuardReadsHideNothing(t *testing.T) {
	x := newFabricOfTwo(t)
	place(t, x.sw, open(t, x.sw, Config{}), "p1", "p2")
	for n := range 9 {
		tags := make([][2]uint16, n+1)
		for i := range tags {
			tags[i] = [2]uint16{0x8100, uint16(i)}
		}
		x.h1.send(frame(x.h2.mac, x.h1.mac, tags, 0x88a7, make([]byte, 60)))
	}
	x.h1.send(marked(x.h2.mac, x.h1.mac, "tags"))
	if got := control(x.h2.received("tags")); len(got) > 0 {
		t.Errorf("%d frames pass, the first is % x", len(got), got[0])
	}
}

// The daemon's own sockets: SNSD by all protocols at a bridge's port, LLDP by its EtherType.
func TestTheSwitchItselfSpeaksWithItsHosts(t *testing.T) {
	for _, way := range ways(t) {
		t.Run(string(way), func(t *testing.T) {
			x := newFabricOfTwo(t)
			place(t, x.sw, open(t, x.sw, Config{Way: way}), "p1", "p2")
			p2 := newTap(t, x.sw, "p2")
			lldp := newTap(t, x.sw, "p2")
			must(t, unix.Bind(lldp.fd, &unix.SockaddrLinklayer{Protocol: 0xcc88, Ifindex: lldp.index}))
			nts := net.HardwareAddr{0x01, 0x80, 0xc2, 0, 0, 0x0d}
			nearest := net.HardwareAddr{0x01, 0x80, 0xc2, 0, 0, 0x0e}
			p2.send(frame(nts, p2.mac, nil, 0x88a7, []byte("notice of the switch")))
			p2.send(frame(nearest, p2.mac, nil, 0x88cc, []byte("LLDP of the switch")))
			p2.send(marked(x.h2.mac, p2.mac, "from the switch"))
			if got := control(x.h2.received("from the switch")); len(got) != 2 {
				t.Errorf("the host hears %d frames of its switch, want 2", len(got))
			}
			x.h2.send(frame(nts, x.h2.mac, nil, 0x88a7, []byte("registration")))
			x.h2.send(frame(p2.mac, x.h2.mac, nil, 0x88a7, []byte("acknowledgement to the port's address")))
			x.h2.send(frame(nearest, x.h2.mac, nil, 0x88cc, []byte("one LLDP frame of the host")))
			x.h2.send(frame(nearest, x.h2.mac, nil, 0x88cc, []byte("last LLDP of the host")))
			if got := lldp.received("last LLDP of the host"); len(got) != 1 {
				t.Errorf("the socket for LLDP hears %d frames, want 1", len(got))
			}
			if got := control(p2.received("last LLDP of the host")); len(got) != 3 {
				t.Errorf("the socket for all protocols hears %d frames, want 3", len(got))
			}
		})
	}
}
