package lldp

import "time"

// Hold lets the neighbours of a port live until a time, whatever their TTL says: the
// port is not listened to any more, so that silence is no evidence.
func (t *Table) Hold(port string, until time.Time) {
	t.expireAt(port, func(*Neighbour) time.Time { return until })
}

// Renew lets the TTL of the neighbours of a port begin anew: the port is listened to again.
func (t *Table) Renew(port string, now time.Time) {
	t.expireAt(port, func(n *Neighbour) time.Time { return now.Add(time.Duration(n.TTL) * time.Second) })
}

func (t *Table) expireAt(port string, when func(*Neighbour) time.Time) {
	p := t.ports[port]
	if p == nil {
		return
	}
	for _, e := range p.byMSAP {
		e.n.Expires = when(&e.n)
		t.age(e)
	}
}
