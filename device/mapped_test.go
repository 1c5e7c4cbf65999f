package device

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// sentTo keeps the notices that leave by each port.
type sentTo struct {
	nowhere
	notices map[string][]snsd.Notice
}

func (s sentTo) SendFrame(port string, b []byte) {
	if p, err := snsd.ParsePacket(b[fabric.EthernetHeaderLen:]); err == nil {
		s.notices[port] = append(s.notices[port], p.Notices...)
	}
}

// A host that registers its IPv4 address in the form of IPv6 is the IPv4 host: its notices carry the
// address as IPv4, and its acks are taken.
func TestAnAddressRegisteredInTheFormOfIPv6IsTheIPv4Host(t *testing.T) {
	b := newBareCore(t, true)
	out := sentTo{notices: map[string][]snsd.Notice{}}
	var err error
	b.Core, err = New(Config{Self: bareSelf, Access: true, Reflect: true, Epoch: 1, Zones: zone.Set{AutoJoin: true},
		Notify: hostnotify.Config{AllRoles: true}}, out, b.now)
	if err != nil {
		t.Fatal(err)
	}
	b.carrier("eth1", true, fabric.PortAdded)
	b.carrier("eth2", true, fabric.PortAdded)
	b.Start(b.now)
	f, err := registration("h1", "eth1", i1)
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddr(i1)
	at := bytes.Index(f.Payload, snsd.OUI[:])
	f.Payload[at+5] = 0x82                        // IPv6, subscribes
	mapped := netip.AddrFrom16(addr.As16())       // ::ffff:a.b.c.d
	copy(f.Payload[at+8:at+24], mapped.AsSlice()) // the area of the address
	b.Frame(f, b.now)
	b.register("h2", "eth2", i2)
	b.carrier("eth2", false, fabric.PortChanged)
	b.Tick(b.now)

	if got := b.state(i1); got != "active none" {
		t.Errorf("%s is %s", i1, got)
	}
	list := out.notices["eth1"]
	if len(list) == 0 {
		t.Fatal("the host was sent no notice")
	}
	last := list[len(list)-1]
	if last.Host != addr || last.Subject != netip.MustParseAddr(i2) || last.State != snsd.Inactive {
		t.Errorf("the host was sent %+v", last)
	}
	payload, err := snsd.AppendAck(nil, snsd.Ack{Subject: last.Subject, Host: last.Host, Seq: last.Seq})
	if err != nil {
		t.Fatal(err)
	}
	b.Frame(fabric.Frame{Port: "eth1", Src: f.Src, Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, Payload: payload, At: b.now}, b.now)
	if !b.notify.Told(addr, last.Subject).Acked {
		t.Error("its ack was not taken")
	}
}
