package linux

import (
	"encoding/binary"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openinof/inof/fabric"
)

// What one answer says of all links is what the answer about the one link says; in a
// namespace with many more links than ports it is not asked for.
func TestTotalsOfAllLinksAreThoseOfEachLink(t *testing.T) {
	for _, c := range []struct {
		name   string
		others int // pairs of links that are no ports
		atOnce bool
	}{{"few links", 0, true}, {"many links", 2 * totalsShare, false}} {
		t.Run(c.name, func(t *testing.T) {
			sw, host := newSpace(t), newSpace(t)
			sw.veth("p0", host, "h0")
			for i := range c.others {
				sw.veth(fmt.Sprintf("x%d", i), sw, fmt.Sprintf("y%d", i))
			}
			r, d := start(t, sw, nil, "p0")
			r.ready("p0")
			host.SetUp("h0", false)
			r.up("p0", false)
			host.SetUp("h0", true)
			r.up("p0", true)
			for range 5 {
				if err := host.socket("h0").Send(control(fabric.EtherTypeNTS, fabric.MACNTS, payload(46, 1))); err != nil {
					t.Fatal(err)
				}
			}
			p, a, err := d.find("p0")
			if err != nil {
				t.Fatal(err)
			}
			_, cheap := d.changes(p)                       // or else links are asked for one by one
			eventually(t, "the same totals", func() bool { // neighbour discovery goes on meanwhile
				l, err := a.link(p.index)
				if err != nil {
					t.Fatal(err)
				}
				l.counters.CarrierChanges = l.changes
				got, err := d.totals(p, a)
				if err != nil {
					t.Fatal(err)
				}
				return got == totals{l.counters, l.multicast} && got.RxFrames >= 5 && got.CarrierChanges > 0
			})
			a.mu.Lock()
			defer a.mu.Unlock()
			if atOnce := !a.totalsAt.IsZero(); atOnce != (cheap && c.atOnce) || cheap && a.totalsNot.IsZero() != c.atOnce {
				t.Errorf("cheap %v, read all at once %v, not before %v", cheap, a.totalsAt, a.totalsNot)
			}
		})
	}
}

// statsMessage is an RTM_NEWSTATS message without its header.
func statsMessage(index int, typ uint16, v []byte) []byte {
	b := make([]byte, statsMsg, statsMsg+unix.SizeofRtAttr+len(v))
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(v)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	return append(b, v...)
}

func TestParseTotals(t *testing.T) {
	v := make([]byte, 24*8)
	for i := range 24 {
		binary.NativeEndian.PutUint64(v[8*i:], uint64(100+i))
	}
	index, got, err := parseTotals(statsMessage(7, statsLink64, v))
	want := totals{fabric.Counters{RxFrames: 100, TxFrames: 101, RxBytes: 102, TxBytes: 103, RxErrors: 104, RxDrops: 106, TxDrops: 107, TxErrors: 105, RxCRC: 112}, 108}
	if err != nil || index != 7 || got != want {
		t.Errorf("%d %+v %v", index, got, err)
	}
	for name, b := range map[string][]byte{
		"short": make([]byte, statsMsg-1), "no attribute": make([]byte, statsMsg),
		"another attribute": statsMessage(7, 2, v), "cut": statsMessage(7, statsLink64, v)[:statsMsg+20],
		"attribute shorter than its header": append(make([]byte, statsMsg), 3, 0, 1, 0),
	} {
		if _, _, err := parseTotals(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzParseTotals(f *testing.F) {
	f.Add(statsMessage(7, statsLink64, make([]byte, 24*8)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if index, _, err := parseTotals(b); err != nil && index != 0 {
			t.Errorf("index %d with %v", index, err)
		}
	})
}
