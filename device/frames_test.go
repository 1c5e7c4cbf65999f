package device

import (
	"testing"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// No machine sends from a group address or none: such a frame registers nobody, acks nothing and
// keeps nobody's address.
func TestAFrameWithoutASenderSaysNothing(t *testing.T) {
	b := newBareCore(t, true)
	b.twoHosts()
	registered := b.table.Len()
	var acks [][]byte
	for _, n := range b.notify.Notices() {
		payload, err := snsd.AppendAck(nil, snsd.Ack{Subject: n.Subject, Host: n.Host, Seq: n.Seq})
		if err != nil {
			t.Fatal(err)
		}
		acks = append(acks, payload)
	}
	if len(acks) == 0 {
		t.Fatal("nothing was told")
	}
	lldp, err := registration("h7", "eth1", "192.0.2.77")
	if err != nil {
		t.Fatal(err)
	}
	sent := uint64(0)
	for _, src := range []fabric.MAC{{}, fabric.MACNTS, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		for _, payload := range acks {
			b.Frame(fabric.Frame{Port: "eth1", Src: src, Dst: fabric.MACNTS, EtherType: fabric.EtherTypeNTS, Payload: payload, At: b.now}, b.now)
			sent++
		}
		f := lldp
		f.Src, f.At = src, b.now
		b.Frame(f, b.now)
		sent++
	}
	if b.counters.FramesNoSource != sent || b.counters.AcksForeign != 0 || b.table.Len() != registered {
		t.Errorf("%d of %d frames counted, %d acks looked at, %d neighbours of %d", b.counters.FramesNoSource, sent, b.counters.AcksForeign, b.table.Len(), registered)
	}
	f := lldp
	f.At = b.now
	if b.Frame(f, b.now); b.table.Len() != registered+1 {
		t.Errorf("the same frame from a machine registers nobody")
	}
}
