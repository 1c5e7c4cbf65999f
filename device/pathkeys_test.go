package device

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/inof/reflector"
	"github.com/openinof/inof/inof/wire"
)

// keyCore is a meshCore with two reflectors that hand out keys.
type keyCore struct {
	*meshCore
	secrets map[netip.Addr]reflector.PathSecret
	asked   map[netip.Addr]int // devices
}

var secondReflector = netip.MustParseAddr("10.0.0.251")

func newKeyCore(t *testing.T) *keyCore {
	m := &keyCore{meshCore: newMeshCore(t), asked: map[netip.Addr]int{}}
	m.secrets = map[netip.Addr]reflector.PathSecret{bareReflector: {1}, secondReflector: {2}}
	m.c.SetMesh(MeshConfig{Handed: true}, m.now)
	m.pass(time.Second)
	return m
}

// answer has the reflectors with a secret answer what they were asked.
func (m *keyCore) answer() {
	sent := m.sent
	m.sent = nil
	for _, d := range sent {
		if q, ok := d.Msg.(*wire.PathKeys); ok {
			m.asked[d.To[0]] += len(q.Asked)
			if s, ok := m.secrets[d.To[0]]; ok {
				m.c.ReflectorMessage(d.To[0], s.Answer(bareSelf, q), m.now)
			}
		}
	}
	m.pass(time.Second)
}

// want checks of which reflectors, in order, the keys of each path are.
func (m *keyCore) want(reflectors ...netip.Addr) {
	m.t.Helper()
	if len(m.peers) != 2 {
		m.t.Fatalf("watched: %+v", m.peers)
	}
	for _, p := range m.peers {
		var want [][]byte
		for _, r := range reflectors {
			// The other end is given the same.
			k := m.secrets[r].Answer(p.Peer, &wire.PathKeys{Asked: []netip.Addr{bareSelf}}).Keys[0]
			want = append(want, k.Secret[:])
		}
		var got [][]byte
		if p.Auth == nil || !p.Auth.Handed || p.Validate() != nil {
			m.t.Fatalf("the path to %s has %+v", p.Peer, p.Auth)
		}
		for _, k := range p.Auth.Keys {
			got = append(got, k.Secret)
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			m.t.Errorf("the path to %s has keys %x, want %x", p.Peer, got, want)
		}
	}
}

// Each path waits for a key, has those of all reflectors in order of their ids, each is
// asked once in a session, and what was handed out stays when sessions end.
func TestEachPathHasTheKeysOfAllReflectors(t *testing.T) {
	m := newKeyCore(t)
	m.want()
	m.answer()
	m.want(bareReflector)
	if bytes.Equal(m.peers[0].Auth.Keys[0].Secret, m.peers[1].Auth.Keys[0].Secret) {
		t.Error("two paths have one key")
	}
	m.c.ReflectorUp(secondReflector, m.now)
	m.answer()
	first, second := bareReflector, secondReflector
	if second.Less(first) {
		first, second = second, first
	}
	m.want(first, second)
	m.c.ReflectorDown(bareReflector, nil, m.now)
	m.pass(time.Minute)
	m.answer()
	m.want(first, second)
	if m.asked[bareReflector] != 2 || m.asked[secondReflector] != 2 {
		t.Errorf("asked for %v", m.asked)
	}
	// Started again without its secret it hands out others.
	m.secrets[bareReflector] = reflector.PathSecret{3}
	m.c.ReflectorUp(bareReflector, m.now)
	m.answer()
	m.want(first, second)
	if m.asked[bareReflector] != 4 {
		t.Errorf("asked for %v", m.asked)
	}
}

// What nobody asked for, or a session that has ended, changes nothing; devices of another
// make have no key; a device that is not watched any more is asked for anew.
func TestKeysAreTakenForWhatWasAskedOnly(t *testing.T) {
	m := newKeyCore(t)
	m.answer()
	changes := m.c.mesh.counters.Changes
	other := reflector.PathSecret{9}
	m.c.ReflectorMessage(secondReflector, other.Answer(bareSelf, &wire.PathKeys{Asked: []netip.Addr{netip.MustParseAddr(far1)}}), m.now)
	m.c.ReflectorMessage(bareReflector, other.Answer(bareSelf, &wire.PathKeys{Asked: []netip.Addr{netip.MustParseAddr(far3)}}), m.now)
	m.c.ReflectorMessage(bareReflector, &wire.PathKeys{}, m.now)
	m.pass(time.Second)
	m.want(bareReflector)
	if m.c.mesh.counters.Changes != changes {
		t.Error("told the BFD process anew")
	}
	m.c.SetMesh(MeshConfig{Handed: true, Plain: []netip.Prefix{netip.MustParsePrefix(far1 + "/32")}}, m.now)
	m.pass(time.Second)
	for _, p := range m.peers {
		if (p.Auth == nil) != (p.Peer.String() == far1) {
			t.Errorf("the path to %s has %+v", p.Peer, p.Auth)
		}
	}
	m.withdraw(far2, t2)
	m.pass(time.Second)
	if n := len(m.c.mesh.handout.keys); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

func TestAReflectorHandsOutKeysOfOnesOwnPathsOnly(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("10.0.0.3")
	s := reflector.PathSecret{7}
	ab := s.Answer(a, &wire.PathKeys{Asked: []netip.Addr{b, a, c}})
	ba := s.Answer(b, &wire.PathKeys{Asked: []netip.Addr{a}})
	if len(ab.Keys) != 2 || ab.Keys[0].Secret != ba.Keys[0].Secret || ab.Keys[0].ID != ba.Keys[0].ID || ab.Keys[1].Secret == ab.Keys[0].Secret {
		t.Errorf("%+v %+v", ab, ba)
	}
	if ca := s.Answer(c, &wire.PathKeys{Asked: []netip.Addr{b}}); ca.Keys[0].Secret == ab.Keys[0].Secret {
		t.Error("a third device has the key of a path between others")
	}
	auth := bfd.Auth{Type: bfd.AuthMeticulousSHA1, Handed: true, Keys: []bfd.AuthKey{{ID: ab.Keys[0].ID, Secret: ab.Keys[0].Secret[:]}}}
	if err := auth.Validate(); err != nil {
		t.Error(err)
	}
}
