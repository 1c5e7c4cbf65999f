package device

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

// orderly notes in which order a Core acts.
type orderly struct {
	mu  sync.Mutex
	did []string
}

func (o *orderly) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.did = append(o.did, fmt.Sprintf(format, args...))
}

func (o *orderly) SendFrame(string, []byte) {}

func (o *orderly) ToReflectors(ds []wire.Delivery) {
	for _, d := range ds {
		if u, ok := d.Msg.(*wire.Update); ok && len(u.Downs) > 0 {
			o.note("update")
		}
	}
}

func (o *orderly) ToClients([]wire.Delivery) {}

func (o *orderly) SetAdmin(port string, up bool) { o.note("admin %s %t", port, up) }

func (o *orderly) WatchPaths([]bfd.Peer) {}

func (o *orderly) Event(api.Event) {}

func TestTheUpdateLeavesBeforeThePortIsShut(t *testing.T) {
	o, now := &orderly{}, time.Unix(1_800_000_000, 0)
	c, err := New(Config{Self: netip.MustParseAddr("10.0.0.1"), Access: true, Epoch: 1}, o, now)
	if err != nil {
		t.Fatal(err)
	}
	c.Port(fabric.Event{Kind: fabric.PortAdded, Port: fabric.Port{Name: "eth1", Index: 1, AdminUp: true, Carrier: true}, At: now}, now)
	c.Start(now)
	c.ReflectorUp(netip.MustParseAddr(reflectorID), now)
	agent, err := snsd.NewAgent(snsd.AgentConfig{Addrs: []netip.Addr{netip.MustParseAddr(i1)}, MAC: hostMAC("i1"),
		Interface: "eth0", Subscribes: true, Service: snsd.Service{Role: snsd.RoleInitiator, Protocol: snsd.ProtocolRoCE}})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range agent.LinkUp(now).Frames {
		c.Frame(fabric.Frame{Port: "eth1", Dst: fabric.MAC(b[:6]), Src: fabric.MAC(b[6:12]),
			EtherType: binary.BigEndian.Uint16(b[12:]), Payload: b[fabric.EthernetHeaderLen:], At: now}, now)
	}
	crc := errdown.CRCConfig{Reaction: errdown.Reaction{Response: errdown.RespondShut, Recovery: time.Minute}}
	c.SetErrorDown(errdown.Config{CRC: crc}, now)
	for i := range uint64(2) {
		now = now.Add(time.Second)
		c.Sample("eth1", fabric.Health{At: now, Valid: fabric.FieldCRC, RxCRC: 3 * i}, now)
	}
	if want := []string{"update", "admin eth1 false"}; !slices.Equal(o.did, want) {
		t.Errorf("%q, want %q", o.did, want)
	}
	o.did = nil
	c.Tick(now.Add(time.Minute))
	if len(o.did) == 0 || o.did[len(o.did)-1] != "admin eth1 true" {
		t.Errorf("after the recovery time: %q", o.did)
	}
}
