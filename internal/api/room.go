package api

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

const (
	// maxVisits is how many connections of a door stand at once.
	maxVisits = 128
	// maxStrangers of them may come from one address without anybody having been let in: more than
	// a browser opens.
	maxStrangers = 16
)

// places are the connections of a listener, oldest first.
type places struct {
	mu   sync.Mutex
	list []*visit
}

// enter takes a connection in and returns the one that has to end for it: the oldest by which
// nobody was let in, of the same address if that has its share. It is the new one itself where
// everybody else was let in; nil: there is room.
func (p *places) enter(v *visit) (gone *visit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, v)
	same := 0
	var oldest, oldestSame *visit
	for _, x := range p.list {
		if x.in.Load() {
			continue
		}
		if oldest == nil {
			oldest = x
		}
		if x.source.IsValid() && x.source == v.source {
			if same++; oldestSame == nil {
				oldestSame = x
			}
		}
	}
	switch {
	case same > maxStrangers:
		gone = oldestSame
	case len(p.list) > maxVisits:
		gone = oldest
	}
	return gone
}

func (p *places) leave(v *visit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = slices.DeleteFunc(p.list, func(x *visit) bool { return x == v })
}

// sourceOf is what counts as one address: an IPv6 /64 is one.
func sourceOf(a net.Addr) netip.Prefix {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := ap.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits)
	return p
}
