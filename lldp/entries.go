package lldp

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/internal/timerheap"
	"github.com/openinof/inof/snsd"
)

type portTable struct {
	byMSAP map[string]*entry       // key: the first two TLVs as sent
	claims map[netip.Addr][]*entry // who announces an address on this port
	regs   int                     // weight of registrations
	others int                     // weight of the rest
}

type entry struct {
	n   Neighbour
	key string
	timerheap.Place[entry]
	weight int // max(1, len(n.Known))
	cut    int // addresses left out because of a limit
	second secondMAC
	shut   bool // it has said that it ends, and goes when Expires comes; see Farewell
}

func (t *Table) lookup(port string, raw []byte) *entry {
	p := t.ports[port]
	if p == nil {
		return nil
	}
	return p.byMSAP[string(raw[:peekMSAP(raw)])]
}

// insert enters e into the maps of its port and counts its weight.
func (t *Table) insert(e *entry) {
	p := t.ports[e.n.Port]
	if p == nil {
		p = &portTable{byMSAP: make(map[string]*entry), claims: make(map[netip.Addr][]*entry)}
		t.ports[e.n.Port] = p
	}
	p.byMSAP[e.key] = e
	e.weight = max(1, len(e.n.Known))
	t.weigh(p, e, e.weight)
	for i := range e.n.Known {
		a := e.n.Known[i].Addr
		p.claims[a] = append(p.claims[a], e)
	}
}

// take is the inverse of insert.
func (t *Table) take(e *entry) {
	p := t.ports[e.n.Port]
	delete(p.byMSAP, e.key)
	t.weigh(p, e, -e.weight)
	for i := range e.n.Known {
		a := e.n.Known[i].Addr
		left := slices.DeleteFunc(p.claims[a], func(o *entry) bool { return o == e })
		if len(left) == 0 {
			delete(p.claims, a)
		} else {
			p.claims[a] = left
		}
	}
	if len(p.byMSAP) == 0 {
		delete(t.ports, e.n.Port)
	}
}

func (t *Table) weigh(p *portTable, e *entry, w int) {
	t.total += w
	if e.n.Registration != nil {
		p.regs += w
	} else {
		p.others += w
	}
}

// drop removes a neighbour.
func (t *Table) drop(e *entry, why snsd.Reason, at time.Time) Change {
	t.take(e)
	t.ages.Remove(e)
	t.count.Deletes++
	ch := Change{Kind: Removed, Neighbour: e.n, At: at}
	t.settle(&ch, e.n.Known, why)
	ch.Reason = why
	return ch
}

// age puts an entry where its Expires belongs.
func (t *Table) age(e *entry) {
	if t.base.IsZero() {
		t.base = e.n.Expires
	}
	t.ages.Put(e, int64(e.n.Expires.Sub(t.base)))
}

// Ahead breaks ties, so that the order of changes does not depend on chance.
func (e *entry) Ahead(o *entry) bool {
	if e.n.Port != o.n.Port {
		return e.n.Port < o.n.Port
	}
	return e.key < o.key
}

func (t *Table) sorted(port string) []*entry {
	p := t.ports[port]
	if p == nil {
		return nil
	}
	es := make([]*entry, 0, len(p.byMSAP))
	for _, e := range p.byMSAP {
		es = append(es, e)
	}
	slices.SortFunc(es, func(a, b *entry) int { return cmp.Compare(a.key, b.key) })
	return es
}

// all gives the neighbours of all ports in a stable order.
func (t *Table) all() (list []*entry) {
	names := make([]string, 0, len(t.ports))
	for name := range t.ports {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		list = append(list, t.sorted(name)...)
	}
	return list
}
