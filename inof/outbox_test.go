package inof

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openinof/inof/snsd"
)

// held is what a peer holds after some messages.
type held struct {
	Faults map[portKey]FaultRecord
	Stamps map[netip.Addr]Stamp
	Pos    Stamp
	Ended  bool
}

func (h *held) take(m Message) {
	switch m := m.(type) {
	case *Update:
		for _, f := range m.Faults {
			f.Since = f.Since.UTC()
			h.Faults[portKey{f.Device, f.Port}] = f
			h.Stamps[f.Device] = m.StampOf(f.Device)
		}
		if !m.Partial {
			h.Pos = m.Pos
		}
	case *EndOfSync:
		h.Ended = true
	}
}

// What waits is told as its outcome to those who get the same, and one by one to the
// others: all hold in the end what every message said, and none is told of anything
// that is not for it.
func TestManyUpdatesAreToldAsTheirOutcome(t *testing.T) {
	const n, updates = 16, 200
	l := startLoopback(t, nil)
	defer l.stop()
	var peers Peers
	conns, sessions := make([]net.Conn, n), make([]*Session, n)
	want, got := make([]held, n), make([]held, n)
	var everyone []netip.Addr
	for i := range n {
		conns[i], sessions[i] = connect(t, l, devID(i))
		defer conns[i].Close()
		peers.Handle(PeerEvent{Peer: <-l.peers, Kind: PeerUp})
		everyone = append(everyone, devID(i))
		want[i] = held{Faults: map[portKey]FaultRecord{}, Stamps: map[netip.Addr]Stamp{}}
		got[i] = held{Faults: map[portKey]FaultRecord{}, Stamps: map[netip.Addr]Stamp{}}
	}
	queue := func(m Message, to []netip.Addr) {
		peers.Queue([]Delivery{{To: to, Msg: m}})
		for i := range n {
			if slices.Contains(to, devID(i)) {
				want[i].take(m)
			}
		}
	}
	for seq := range uint64(updates) {
		from := int(seq % 3) // three devices tell everybody else
		u := &Update{Origin: devID(from), Epoch: 1, Seq: seq + 1, Pos: Stamp{9, seq + 1}, FaultAt: t0,
			Faults: []FaultRecord{{Op: Put, Device: devID(from), Port: fmt.Sprint("Ethernet", seq%40), Why: snsd.ReasonLinkDown, Since: t0.Add(time.Duration(seq)), Addrs: []netip.Addr{hostIP(from)}}}}
		queue(u, slices.DeleteFunc(slices.Clone(everyone), func(d netip.Addr) bool { return d == devID(from) }))
		if seq == 100 {
			queue(&EndOfSync{Epoch: 1, Seq: 1}, everyone[12:])
		}
		if seq == 120 {
			u := &Update{Origin: devID(7), Epoch: 4, Seq: 9, Pos: Stamp{9, 0xffff}, Faults: []FaultRecord{{Op: Withdraw, Device: devID(7), Port: "secret"}}}
			queue(u, everyone[4:5])
		}
	}
	end := &EndOfSync{Epoch: 2, Seq: 2}
	queue(end, everyone)
	before := l.server.Counters()
	if err := peers.Flush(); err != nil || peers.Waiting() != 0 {
		t.Fatal(err, peers.Waiting())
	}
	messages := make([]int, n)
	for i := range n {
		for {
			m, _, err := sessions[i].Receive(readFrame(t, conns[i]), nil, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			messages[i]++
			got[i].take(m)
			if e, ok := m.(*EndOfSync); ok && e.Epoch == end.Epoch {
				break
			}
		}
		if diff := cmp.Diff(want[i], got[i], cmp.AllowUnexported(portKey{}), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("device %d: (-want +got)\n%s", i, diff)
		}
	}
	// 0, 1, 2 and 4 are alone with what they get; the others are two groups.
	for _, i := range []int{3, 5, 11, 12, 15} {
		if messages[i] > 4 {
			t.Errorf("device %d got %d messages, want the outcome of them", i, messages[i])
		}
	}
	c := l.server.Counters()
	t.Logf("messages %v, %d writes", messages, c.Writes-before.Writes)
	if c.Writes-before.Writes > 2*n {
		t.Errorf("%d writes for %d peers", c.Writes-before.Writes, n)
	}
	for _, p := range everyone {
		if peers.Get(p).due != (share{}) {
			t.Errorf("%v is still due %+v", p, peers.Get(p).due)
		}
	}
}
