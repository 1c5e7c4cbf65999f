package hostnotify

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

// FuzzRestore feeds rows that somebody damaged: kind, length of the key and of the value, both.
// Whatever is taken must be consistent, survive being kept again, and give frames that parse.
func FuzzRestore(f *testing.F) {
	r := twoHosts(f)
	r.fault(farT, snsd.ReasonLinkDown)
	r.poll()
	var good []byte
	row := func(kind RowKind, key, value []byte) {
		good = append(good, byte(kind), byte(len(key)), byte(len(value)))
		good = append(append(good, key...), value...)
	}
	for _, s := range r.n.order {
		r.n.putHost(s, row)
		for _, p := range s.list {
			r.n.putTold(p, row)
		}
	}
	f.Add(good)
	f.Add([]byte("\x00\x05\x07\x04\x7f\x00\x00\x01abcdefg\x02\x0a\x07\x04\xc0\x00\x02\x01\x04\xc0\x00\x02\x01\x00\x00\x00\x01\x01\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Kept
		for len(b) >= 3 && len(b) >= 3+int(b[1])+int(b[2]) {
			k, v := 3+int(b[1]), 3+int(b[1])+int(b[2])
			_ = s.Add(RowKind(b[0]), b[3:k], b[k:v])
			b = b[v:]
		}
		r := newRig(t, Config{MaxHosts: 50, MaxPairs: 200})
		r.n.SetSynced(false)
		_ = r.n.Restore(s, r.now)
		again := New(Config{}, r.w)
		if err := again.Restore(r.n.Snapshot(), r.now); err != nil {
			t.Fatalf("what was restored does not restore again: %v", err)
		}
		for _, h := range r.n.Snapshot().Hosts {
			r.n.PortUp("p1", mac(9), r.now)
			r.n.Subscribe(h.Addr, "p1", h.MAC, r.now)
		}
		r.settle()
		if c := r.n.Counters(); c.InFlight != 0 || c.Waiting != 0 || c.Hosts > 50 || c.Pairs > 200 {
			t.Fatalf("%+v", c)
		}
	})
}

// FuzzAck feeds random acks and queries to a Notifier with notices under way: at most
// the ones that fit are taken, and nothing else changes.
func FuzzAck(f *testing.F) {
	f.Add([]byte{192, 0, 2, 1, 198, 51, 100, 1, 0, 0, 0, 104, 0})
	f.Add([]byte{192, 0, 2, 2, 198, 51, 100, 1, 0, 0, 0, 105, 1, 192, 0, 2, 2, 198, 51, 100, 1, 0, 0, 0, 105, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := twoHosts(t)
		r.fault(farT, snsd.ReasonLinkDown)
		sent := r.poll()
		before := r.n.Counters()
		fits := map[snsd.Ack]string{}
		for _, x := range sent {
			fits[snsd.Ack{Subject: x.Subject, Host: x.Host, Seq: x.Seq}] = x.Port
		}
		want := before.Acked
		acks := uint64(0)
		for ; len(b) >= 13; b = b[13:] {
			a := snsd.Ack{Host: netip.AddrFrom4([4]byte(b)), Subject: netip.AddrFrom4([4]byte(b[4:])), Seq: binary.BigEndian.Uint32(b[8:])}
			port := []string{"p1", "p2", "p3"}[b[12]%3]
			r.n.Ack(port, a, r.now)
			acks++
			if p, ok := fits[a]; ok && p == port {
				want++
				delete(fits, a)
			}
			r.pass(time.Microsecond)
		}
		c := r.n.Counters()
		if c.Acked != want || int(c.InFlight) != len(fits) {
			t.Fatalf("acked %d, want %d; in flight %d, want %d", c.Acked, want, c.InFlight, len(fits))
		}
		odd := c.AcksUnknown + c.AcksStale + c.AcksRepeated - before.AcksUnknown - before.AcksStale - before.AcksRepeated
		if odd+c.Acked-before.Acked != acks {
			t.Fatalf("%d acks, %d counted", acks, odd+c.Acked-before.Acked)
		}
	})
}
