package bfd

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// intruder sends packets of its own to both devices of a world, among theirs. It has heard all
// that came, but what it repeats as it was it can give the TTL of a neighbour only where
// packets are signed: without that, who reads the packets on the way can forge them (docs/security.md).
type intruder struct {
	*world
	rng   *rand.Rand
	heard [2][][]byte // by receiver
	calm  bool        // it sends nothing
}

func (x *intruder) listen(cut func(from int) bool) {
	x.lost = func(from int, data []byte) bool {
		to := 1 - from
		if cut(from) { // to bring it on its way would be to mend the path
			return true
		}
		if x.heard[to] = append(x.heard[to], data); len(x.heard[to]) > 500 {
			x.heard[to] = slices.Delete(x.heard[to], 0, 250)
		}
		return false
	}
}

// spoof sends one packet to a device.
func (x *intruder) spoof(to int) {
	states := []State{StateAdminDown, StateDown, StateInit, StateUp}
	p := Packet{State: states[x.rng.IntN(4)], Diag: Diag(x.rng.IntN(9)), DetectMult: uint8(1 + x.rng.IntN(5)), MyDiscr: x.rng.Uint32() | 1,
		DesiredMinTx: 1 + x.rng.Uint32N(2_000_000), RequiredMinRx: x.rng.Uint32N(2_000_000), Poll: x.rng.IntN(4) == 0}
	a := Arrival{Src: x.nodes[1-to].addr, Dst: x.nodes[to].addr, TTL: 255, At: x.now}
	var old []byte
	if n := len(x.heard[to]); n > 0 {
		old = slices.Clone(x.heard[to][x.rng.IntN(n)])
	}
	data := p.Append(nil)
	switch kind := x.rng.IntN(7); {
	case kind == 0: // of a host that guesses
		p.YourDiscr = x.rng.Uint32() | 1
		data = p.Append(nil)
	case kind == 1 && old != nil: // from farther away
		data, a.TTL = old, uint8(x.rng.IntN(255))
	case kind == 2 && old != nil: // from another address
		data, a.Src = old, netip.MustParseAddr("192.0.2.3")
	case kind == 3: // cut short, or bits flipped, of one that does not name the session
		data[x.rng.IntN(4)] ^= 1 << x.rng.IntN(8)
		data = data[:x.rng.IntN(len(data)+1)]
	case kind == 4 && old != nil && x.auth != nil: // repeated, in any order
		data = old
	case kind == 5 && old != nil && x.auth != nil: // what was heard, changed
		data = old
		data[x.rng.IntN(len(data))] ^= 1 << x.rng.IntN(8)
	case kind == 6 && old != nil && x.auth != nil: // the right names, not signed
		was, _ := Parse(old)
		p.MyDiscr, p.YourDiscr = was.MyDiscr, was.YourDiscr
		data = p.Append(nil)
	}
	_ = x.nodes[to].m.Receive(&a, data, x.now)
	x.collect(to)
}

// pass lets time pass with spoofed packets, one each 15 ms in the mean, and gives the first moment
// when done holds; zero: never.
func (x *intruder) pass(d time.Duration, done func() bool) time.Time {
	for end := x.now.Add(d); x.now.Before(end); {
		if done() {
			return x.now
		}
		x.wait(time.Duration(x.rng.Int64N(int64(30 * ms))))
		if !x.calm {
			x.spoof(x.rng.IntN(2))
		}
	}
	if done() {
		return x.now
	}
	return time.Time{}
}

// takeReports are those of both devices since it was last asked.
func (x *intruder) takeReports() (all [2][]Report) {
	for i, n := range x.nodes {
		all[i], n.events = reports(n.events), nil
	}
	return all
}

// With spoofed packets among the true ones a path that is up never goes down, and one that fails,
// in one direction or in both, is told as down in time and stays so until it works again.
func TestSpoofedPacketsAmongTrueOnesChangeNothing(t *testing.T) {
	auths := map[string]*Auth{"plain": nil, "signed": {Type: AuthMeticulousSHA1, Keys: []AuthKey{{ID: 3, Secret: []byte("of these two only")}}}}
	for name, auth := range auths {
		for seed := range uint64(40) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 11))
				timers := every(time.Duration(10+rng.IntN(90))*ms, uint8(3+rng.IntN(3)))
				x := &intruder{world: newWorld(timers, timers, seed), rng: rng}
				x.auth = auth
				x.listen(func(int) bool { return false })
				x.start()
				x.calm = auth == nil // not signed, who knows no discriminator yet believes anybody
				if x.pass(10*time.Second, x.bothUp).IsZero() {
					t.Fatal("never up")
				}
				x.calm = false
				x.wait(2 * time.Second) // the timers of before are over
				x.takeReports()
				if at := x.pass(10*time.Second, func() bool { return !x.bothUp() }); !at.IsZero() {
					t.Fatalf("down at %v: %v, %v", at.Sub(t0), x.state(0), x.state(1))
				}
				if r := x.takeReports(); len(r[0])+len(r[1]) > 0 {
					t.Fatalf("told while it works: %v", r)
				}

				way := rng.IntN(3) // 0 to 1, 1 to 0, both
				x.listen(func(from int) bool { return way == 2 || way == from })
				limit := 2*time.Duration(timers.DetectMult)*timers.MinTx + 100*ms
				if auth == nil {
					limit += 5 * time.Second // for one that may have restarted
				}
				var told [2][]Report
				downAt := x.pass(limit, func() bool {
					r := x.takeReports()
					told[0], told[1] = append(told[0], r[0]...), append(told[1], r[1]...)
					return len(told[0]) > 0 && len(told[1]) > 0
				})
				for i := range told {
					if downAt.IsZero() || len(told[i]) != 1 || told[i][0] != ReportDown {
						t.Fatalf("direction %d failed: device %d tells %v within %v", way, i, told[i], limit)
					}
				}
				x.pass(10*time.Second, func() bool { return false })
				if r := x.takeReports(); len(r[0])+len(r[1]) > 0 {
					t.Fatalf("direction %d failed, which is hidden: %v", way, r)
				}

				x.listen(func(int) bool { return false })
				x.calm = auth == nil
				if x.pass(30*time.Second, x.bothUp).IsZero() {
					t.Fatalf("it works again and is not up: %v, %v", x.state(0), x.state(1))
				}
			})
		}
	}
}
