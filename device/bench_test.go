package device

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// leaving is what a Core does in a benchmark: it keeps the notices that left, to be acked.
type leaving struct {
	nowhere
	frames int
	told   []fabric.Frame
}

func (w *leaving) SendFrame(port string, frame []byte) {
	w.frames++
	pkt, err := snsd.ParsePacket(frame[fabric.EthernetHeaderLen:])
	if err != nil {
		return
	}
	for i := range pkt.Notices {
		n := &pkt.Notices[i]
		payload, err := snsd.AppendAck(nil, snsd.Ack{Subject: n.Subject, Host: n.Host, Seq: n.Seq})
		if err == nil {
			w.told = append(w.told, fabric.Frame{Port: port, Src: hostMAC("h" + strings.TrimPrefix(port, "eth")), Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, Payload: payload})
		}
	}
}

// A cable is pulled on a device of 65 hosts, each on its port, all in the default zone: from
// the event of the port to the frames that tell the 64 others. Acks and the repair
// between two rounds are not measured.
func BenchmarkAPortEventToTheFramesOf64Hosts(b *testing.B) {
	out := &leaving{}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c, err := New(Config{Self: bareSelf, Access: true, Reflect: true, Epoch: 1, Zones: zone.Set{AutoJoin: true}, Notify: hostnotify.Config{AllRoles: true}}, out, now)
	if err != nil {
		b.Fatal(err)
	}
	carrier := func(port int, up bool, kind fabric.EventKind) {
		c.Port(fabric.Event{Kind: kind, At: now, Port: fabric.Port{Name: fmt.Sprintf("eth%d", port), Index: port, AdminUp: true, Carrier: up}}, now)
	}
	settle := func() {
		for range 1000 {
			now = now.Add(20 * time.Millisecond)
			c.Tick(now)
			acks := out.told
			out.told = nil
			for _, a := range acks {
				a.At = now
				c.Frame(a, now)
			}
			if n := c.notify.Counters(); n.Waiting == 0 && n.InFlight == 0 && len(acks) == 0 {
				return
			}
		}
		b.Fatal("there is no end of it")
	}
	for i := range 65 {
		carrier(i, true, fabric.PortAdded)
	}
	c.Start(now)
	register := func(i int) {
		f, err := registration(fmt.Sprintf("h%d", i), fmt.Sprintf("eth%d", i), netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}).String())
		if err != nil {
			b.Fatal(err)
		}
		c.Frame(f, now)
	}
	for i := range 65 {
		register(i)
	}
	settle()
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		carrier(0, true, fabric.PortChanged)
		register(0)
		settle()
		out.frames = 0
		b.StartTimer()
		carrier(0, false, fabric.PortChanged)
		c.Pump(now)
		b.StopTimer()
		if out.frames < 64 {
			b.Fatalf("%d frames", out.frames)
		}
		b.StartTimer()
	}
}
