package lldp

import (
	"fmt"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
)

func BenchmarkParseRegistration(b *testing.B) {
	payload := goldenFrame(b)[14:]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendRegistration(b *testing.B) {
	p, err := Parse(goldenFrame(b)[14:])
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 1514)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Append(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// many gives registrations of n hosts, 32 to a port.
func many(n int) []fabric.Frame {
	frames := make([]fabric.Frame, n)
	for i := range frames {
		frames[i] = registration(fmt.Sprintf("swp%d", i/32), byte(i), 1+i%32, fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255|1), 120)
	}
	return frames
}

// BenchmarkFirstFrame is the time from a neighbour's first frame to the reported
// change, in a table of 1,000 neighbours.
func BenchmarkFirstFrame(b *testing.B) {
	tab := NewTable(Limits{})
	for _, f := range many(1000) {
		if _, err := tab.Receive(f, t0); err != nil {
			b.Fatal(err)
		}
	}
	f, off := registration("new", 250, 1, "192.0.2.1", 120), registration("new", 250, 1, "192.0.2.1", 0)
	b.ReportAllocs()
	for b.Loop() {
		if ch, err := tab.Receive(f, t0); err != nil || ch[0].Kind != Learned {
			b.Fatal(err)
		}
		b.StopTimer()
		if _, err := tab.Receive(off, t0); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkRefresh(b *testing.B) {
	for _, n := range []int{1, 1000, 8000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tab := NewTable(Limits{})
			frames := many(n)
			now := t0
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Millisecond)
				if _, err := tab.Receive(frames[i], now); err != nil {
					b.Fatal(err)
				}
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// BenchmarkAge1000 lets 1,000 spread neighbours age out, each at its own Next; ns/op
// is for all of them.
func BenchmarkAge1000(b *testing.B) {
	frames := many(1000)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		tab := NewTable(Limits{})
		for i, f := range frames {
			if _, err := tab.Receive(f, t0.Add(time.Duration(i)*37*time.Millisecond)); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		gone := 0
		for now := tab.Next(); !now.IsZero(); now = tab.Next() {
			gone += len(tab.Expire(now))
		}
		if gone != len(frames) {
			b.Fatal(gone)
		}
	}
}
