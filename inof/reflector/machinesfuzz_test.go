package reflector

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// FuzzMachines lets a peer that knows the password say anything to a client of two
// reflectors and to a reflector of three devices, whatever its order, while sessions
// come and go. Neither takes what is not the sender's to say: a client is told nothing
// about its own device, a reflector holds of a device only records of that device. What
// a reflector sends can be encoded, and its count of hosts is that of its tables.
func FuzzMachines(f *testing.F) {
	for _, m := range inoftest.Golden {
		e, err := wire.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		for op := range byte(8) {
			f.Add([]byte{0, 4, 8, op, 12, op + 1}, append([]byte{byte(e.Type())}, e.Body()...), []byte{byte(wire.TypeEndOfSync), 2, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 11, 0, 0, 0})
		}
	}
	set := zone.Set{AutoJoin: true, Zones: []zone.Zone{{Name: "db", Members: []zone.Member{
		{Kind: zone.MemberRange, First: netip.MustParseAddr("198.51.100.0"), Last: netip.MustParseAddr("198.51.100.255")},
		{Kind: zone.MemberPort, Device: inoftest.DevID(1), Port: "Ethernet4"},
	}}}}
	f.Fuzz(func(t *testing.T, script, one, two []byte) {
		if len(script) > 64 || len(one) == 0 || len(two) == 0 || len(one)+len(two) > 8192 {
			return
		}
		m := newMachines(t, set)
		for i, op := range script {
			body := one
			if op&1 == 1 {
				body = two
			}
			msg, err := wire.DecodeBody(wire.MsgType(body[0]), body[1:])
			if err != nil {
				msg = &wire.EndOfSync{Epoch: uint64(i), Seq: uint64(op), Resumed: op&2 == 2}
			}
			m.step(op>>1, msg)
			m.now = m.now.Add(time.Duration(op) * time.Second)
		}
	})
}

// machines are those of FuzzMachines.
type machines struct {
	t      *testing.T
	now    time.Time
	client *client.Client
	refl   *Reflector
}

func newMachines(t *testing.T, set zone.Set) *machines {
	m := &machines{t: t, now: inoftest.T0, client: client.New(inoftest.GoldenClient, 7)}
	m.client.SetReflectors(2, client.AgreeIdentical, client.DefaultReflectorWait)
	m.client.PutHost(inoftest.HostAt(inoftest.HostIP(0), inoftest.GoldenClient, "Ethernet4"))
	m.client.Flush(inoftest.T0)
	var err error
	if m.refl, err = New(inoftest.ReflID, 7, set, Config{MaxHosts: 3, FeedPosts: 4}, inoftest.T0); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machines) step(op byte, msg wire.Message) {
	refl := [...]netip.Addr{inoftest.ReflID, inoftest.DevID(251)}[op>>3&1]
	dev := inoftest.DevID(int(op>>3) % 3)
	var resume *wire.Resume
	if op>>6&1 == 1 {
		resume = &wire.Resume{Epoch: 7, Seq: uint64(op >> 3)}
		if op>>5&1 == 1 {
			resume.Zones = m.refl.interest.digest
		}
	}
	switch op & 7 {
	case 0:
		m.client.Resume(refl, resume, m.now)
	case 1:
		m.sent(m.refl.Resume(dev, resume, m.refl.ResumePoint(dev), m.now))
	case 2:
		m.applied(m.client.Down(refl, m.now))
	case 3:
		m.sent(m.refl.Leave(dev, m.now))
	case 4, 5:
		a, err := m.client.Receive(refl, msg, m.now)
		m.typed(err)
		m.applied(a)
	default:
		out, err := m.refl.Receive(dev, msg, m.now)
		m.typed(err)
		m.sent(out)
		m.sent(m.refl.Tick(m.now))
		m.applied(m.client.Tick(m.now))
	}
	m.tables()
}

// typed wants an error for one of the reasons there are.
func (m *machines) typed(err error) {
	m.t.Helper()
	if err == nil {
		return
	}
	_, refused := errors.AsType[*wire.RefusedError](err)
	if wire.CodeOf(err) == 0 && !refused && m.client.Counters().UnknownPeer+m.refl.counters.UnknownPeer == 0 {
		m.t.Fatalf("untyped error %v", err)
	}
}

func (m *machines) applied(a client.Applied) {
	m.t.Helper()
	for _, h := range a.Hosts {
		if h.Host.Device == inoftest.GoldenClient {
			m.t.Fatalf("the client is told about its own host: %+v", h)
		}
	}
	for _, f := range a.Downs {
		if f.Device == inoftest.GoldenClient {
			m.t.Fatalf("the client is told about its own hosts being down: %+v", f)
		}
	}
}

func (m *machines) sent(ds []wire.Delivery) {
	m.t.Helper()
	for _, d := range ds {
		if _, err := wire.Encode(d.Msg); err != nil {
			m.t.Fatalf("%v for %v: %v", d.Msg.Type(), d.To, err)
		}
	}
}

func (m *machines) tables() {
	m.t.Helper()
	n := 0
	for id, d := range m.refl.devices {
		for k := range d.hosts {
			if k.Device != id {
				m.t.Fatalf("the reflector holds host %v of device %v", k, id)
			}
			n++
		}
	}
	if n != m.refl.hosts || n > m.refl.cfg.MaxHosts {
		m.t.Fatalf("%d hosts in the tables, counted %d, limit %d", n, m.refl.hosts, m.refl.cfg.MaxHosts)
	}
	if got := m.refl.feed; len(got.posts)-got.head > got.most {
		m.t.Fatalf("the feed has %d posts, limit %d", len(got.posts)-got.head, got.most)
	}
}
