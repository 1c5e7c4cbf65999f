package client

import (
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// maxLogged bounds how many own records that are gone a client remembers.
const maxLogged = 8192

// ownLog is what of the own records changed last with which number. It gives a
// reflector that was away the latest state of what it has missed.
type ownLog struct {
	most  int // records that are gone, about
	hosts map[zone.HostKey]ownChange
	base  uint64 // changes up to this one are no longer known
}

type ownChange struct {
	seq uint64
	why snsd.Reason // of a host that is gone
}

func newOwnLog() ownLog {
	return ownLog{hosts: map[zone.HostKey]ownChange{}, most: maxLogged}
}

// note keeps the changes of an Update.
func (l *ownLog) note(u *wire.Update, c *Client) {
	for i := range u.Hosts {
		l.hosts[u.Hosts[i].Host.HostKey] = ownChange{u.Seq, u.Hosts[i].Why}
	}
	for i := range u.Downs {
		for _, addr := range u.Downs[i].Addrs {
			l.hosts[u.Downs[i].Key(addr)] = ownChange{seq: u.Seq}
		}
	}
	if len(l.hosts) > l.most+2*len(c.hosts) {
		l.trim(c)
	}
}

// trim forgets the records that are gone.
func (l *ownLog) trim(c *Client) {
	for k, ch := range l.hosts {
		if _, there := c.hosts[k]; !there {
			l.base = max(l.base, ch.seq)
			delete(l.hosts, k)
		}
	}
}

// after is the present state of all that changed after a number.
func (l *ownLog) after(seq uint64, c *Client) wire.Batch {
	var b wire.Batch
	for k, ch := range l.hosts {
		if ch.seq <= seq {
			continue
		}
		r := wire.HostRecord{Op: wire.Withdraw, Host: zone.Host{HostKey: k}, Why: ch.why}
		if h, ok := c.hosts[k]; ok {
			r = wire.HostRecord{Op: wire.Put, Host: h}
		}
		b.Hosts = append(b.Hosts, r)
	}
	b.Sort()
	return b
}

// RememberGone says how many own records that are gone are remembered for a reflector that
// was away, about; 8,192 if it is not called.
func (c *Client) RememberGone(most int) { c.log.most = most }
