package main

import (
	"encoding/json"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
)

// news counts the notices that are told, by subject.
type news struct {
	mu   sync.Mutex
	told map[netip.Addr]int
	deaf bool
}

func (n *news) Write(b []byte) (int, error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch l.Event {
	case "notice":
		n.told[l.Subject]++
	case "deaf", "no-room":
		n.deaf = true
	}
	return len(b), nil
}

// A storm over a real link: the switch says 8,000 things in as many frames as fast as it can, again
// and again what is not acked, and each of them is told once.
func TestOfAStormOverALinkEachWordIsTakenOnce(t *testing.T) {
	const words = 8000
	c := newCable(t)
	f := c.far()
	said := &news{told: map[netip.Addr]int{}}
	c.startTo(said, nil)
	f.frame(fabric.EtherTypeLLDP)
	open := map[uint32]snsd.Notice{}
	for i := range words {
		n := target(uint32(i+1), snsd.Inactive, snsd.ReasonLinkDown)
		n.Subject = netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		open[n.Seq] = n
	}
	acked := func(wait time.Duration) {
		for {
			select {
			case x := <-f.Frames():
				if p, err := snsd.ParsePacket(x.Payload); x.EtherType == fabric.EtherTypeNTS && err == nil {
					for _, a := range p.Acks {
						delete(open, a.Seq)
					}
				}
			case <-f.Events():
			case <-time.After(wait):
				return
			}
		}
	}
	for end := time.Now().Add(patience); len(open) > 0; acked(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d are never acked", len(open), words)
		}
		for _, n := range open {
			f.tell(n)
		}
	}
	said.mu.Lock()
	defer said.mu.Unlock()
	if len(said.told) != words || said.deaf {
		t.Errorf("%d of %d are told, deaf: %v", len(said.told), words, said.deaf)
	}
	for subject, n := range said.told {
		if n != 1 {
			t.Fatalf("%v is told %d times", subject, n)
		}
	}
}
