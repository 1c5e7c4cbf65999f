package wire

import (
	"net/netip"
	"slices"

	"github.com/openinof/inof/zone"
)

// Coalescer holds what waits for a receiver as the latest state of each record:
// however long it waits, it is never more than there are records. The zero value is empty.
type Coalescer struct {
	said    Batch           // the settings and the last record of each key, but for downs
	at      map[waitKey]int // where in its list a record is
	downs   Downs           // of hosts that are not among the others
	stamps  map[netip.Addr]Stamp
	last    *Update    // its origin and number are those of the run
	cause   *Update    // with the earliest fault, or the last one: its times are those of the run
	end     *EndOfSync // follows the records
	cluster ClusterStamp
	refused *Refusal
	size    int  // bytes of the records
	many    bool // more than one Update was added
	anew    bool // one of them began a full sync
}

// waitKey is the key of a record among those of all kinds.
type waitKey struct {
	tlv uint8
	key zone.HostKey
}

// downSize is about what a host that is down takes on the wire, in bytes.
const downSize = 24

// Add takes a message and reports whether it is of a kind that can wait so: an Update, of
// which each record replaces what was said of it before, or an EndOfSync.
func (c *Coalescer) Add(m Message) bool {
	switch m := m.(type) {
	case *Update:
		c.add(m)
	case *EndOfSync:
		c.end = m
	default:
		return false
	}
	return true
}

// Size is how many bytes the records have on the wire, about.
func (c *Coalescer) Size() int { return c.size }

func (c *Coalescer) add(u *Update) {
	if c.at == nil {
		c.at, c.downs, c.stamps = map[waitKey]int{}, Downs{}, map[netip.Addr]Stamp{}
	}
	c.many, c.anew = c.many || c.last != nil, c.anew || u.Anew
	c.last = u
	if c.cause == nil || c.cause.FaultAt.IsZero() || !u.FaultAt.IsZero() && u.FaultAt.Before(c.cause.FaultAt) {
		c.cause = u
	}
	if u.Cluster.Index > 0 || u.Cluster.ID != c.cluster.ID {
		c.cluster = u.Cluster
	}
	if u.Refused != nil {
		again := c.refused != nil && c.refused.Again
		last := *u.Refused
		last.Again = last.Again || again
		c.refused = &last
	}
	if u.Settings != nil {
		c.said.Settings = u.Settings
	}
	records := *u
	records.Downs = nil // they wait by host
	for i := range kinds {
		kinds[i].wait(c, &records)
	}
	for i := range u.Hosts {
		k := u.Hosts[i].Host.HostKey
		if _, had := c.downs[k]; had {
			delete(c.downs, k)
			c.size -= downSize
		}
	}
	for i := range u.Downs {
		r := &u.Downs[i]
		for _, addr := range r.Addrs {
			k := r.Key(addr)
			if at, waits := c.at[waitKey{tlvUpdateHost, k}]; waits { // or is gone
				c.said.Hosts[at].Host.Down = r.Down
				continue
			}
			if _, had := c.downs[k]; !had {
				c.size += downSize
			}
			c.downs[k] = r.Down
		}
		c.note(u, r.Device)
	}
}

// note keeps of which state of a device its records are.
func (c *Coalescer) note(u *Update, dev netip.Addr) {
	if s := u.StampOf(dev); s.Known() {
		c.stamps[dev] = s
	}
}

// Take gives what waits as messages and is empty after it.
func (c *Coalescer) Take() (out []Message) {
	for _, u := range c.updates() {
		out = append(out, u)
	}
	if c.end != nil {
		out = append(out, c.end)
	}
	*c = Coalescer{}
	return out
}

func (c *Coalescer) updates() []*Update {
	switch {
	case c.last == nil:
		return nil
	case !c.many:
		return []*Update{c.last}
	}
	b := c.said
	b.Downs = c.downs.Records()
	b.Sort()
	u, w := c.last, c.cause
	like := Update{Origin: u.Origin, Epoch: u.Epoch, Seq: u.Seq, FaultAt: w.FaultAt, DecidedAt: w.DecidedAt,
		SentAt: w.SentAt, ReflectorAt: w.ReflectorAt, ReflectedAt: w.ReflectedAt, More: u.More}
	var tooLarge uint64 // none can be: each record came in a message
	out := b.Updates(&like, &tooLarge)
	if c.refused != nil { // beside records it might not fit
		first := like
		first.Refused, first.More = c.refused, like.More || b.Settings != nil || len(b.Zones) > 0
		out = slices.Insert(out, 0, &first)
	}
	if len(out) > 0 {
		out[0].Anew = c.anew
	}
	for i, m := range out {
		m.StampDevices(func(dev netip.Addr) Stamp { return c.stamps[dev] })
		if m.Cluster = c.cluster; m.More {
			m.Cluster = c.cluster.Within()
		}
		if m.Partial = i < len(out)-1; !m.Partial {
			m.Pos, m.Partial = u.Pos, u.Partial
		}
	}
	return out
}
