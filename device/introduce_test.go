package device

import (
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/snsd"
)

// sentFrames keeps the frames that a device sends.
type sentFrames struct {
	nowhere
	frames [][]byte
}

func (s *sentFrames) SendFrame(_ string, b []byte) { s.frames = append(s.frames, b) }

// An agent takes notices of the switch that LLDP shows on its link. One that started anew asks for
// its zones, and hears our LLDP before the answer, from the same address; many questions lead to few
// LLDPDUs.
func TestAHostThatAsksHearsWhoWeAreBeforeTheAnswer(t *testing.T) {
	b := newBareCore(t, true)
	b.SetTransmit(lldp.TxConfig{}, true, b.now)
	b.twoHosts()
	b.now = b.now.Add(20 * time.Second) // fast starts are over
	for range 10 {
		b.Tick(b.now)
		b.now = b.now.Add(time.Second)
	}
	out := &sentFrames{}
	b.Core.out = out
	ask := func() {
		payload, err := snsd.AppendQuery(nil, 0, netip.MustParseAddr(i1))
		if err != nil {
			t.Fatal(err)
		}
		b.Frame(fabric.Frame{Port: "eth1", Src: hostMAC("h1"), Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, Payload: payload, At: b.now}, b.now)
		b.Pump(b.now)
	}
	ask()
	kind := func(f []byte) uint16 { return uint16(f[12])<<8 | uint16(f[13]) }
	if len(out.frames) < 2 || kind(out.frames[0]) != fabric.EtherTypeLLDP || kind(out.frames[1]) != fabric.EtherTypeNTS {
		t.Fatalf("%d frames: % x", len(out.frames), out.frames)
	}
	if src := out.frames[0][6:12]; string(src) != string(out.frames[1][6:12]) {
		t.Errorf("LLDP comes from % x, notices from % x", src, out.frames[1][6:12])
	}
	out.frames = nil
	for range 100 {
		ask()
	}
	n := 0
	for _, f := range out.frames {
		if kind(f) == fabric.EtherTypeLLDP {
			n++
		}
	}
	if n > 5 {
		t.Errorf("100 questions led to %d LLDPDUs", n)
	}
}
