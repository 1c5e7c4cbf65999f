package reflector

import (
	"slices"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// putHost makes a host known or replaces what was known. That its device does not flag it
// decides nothing: who has the address is found here.
func (r *Reflector) putHost(t *change, said *zone.Host) {
	h := said
	if h.Claim == zone.ClaimHolder {
		open := *said
		open.Claim = zone.ClaimOpen
		h = &open
	}
	e := r.interest.at(h.Addr)
	i, found := findAtt(e.atts, h.HostKey)
	if found {
		was := e.atts[i]
		_, was.Claim = r.dir.ClaimOf(h.HostKey)
		if was.Same(h) {
			return
		}
	}
	r.touch(t, h.Addr)
	atts := slices.Clone(e.atts)
	if found {
		claim := atts[i].Claim
		atts[i] = *h
		atts[i].Claim = claim // settle finds it
	} else {
		atts = slices.Insert(atts, i, *h)
	}
	e.atts = atts
	r.interest.put(h.Addr, e)
	r.touchChanged(t, r.dir.PutHost(*h))
}

// dropHost removes one attachment.
func (r *Reflector) dropHost(t *change, k zone.HostKey, why snsd.Reason) {
	e := r.interest.at(k.Addr)
	i, found := findAtt(e.atts, k)
	if !found {
		return
	}
	r.touch(t, k.Addr)
	t.why[k] = why
	e.atts = slices.Delete(slices.Clone(e.atts), i, i+1)
	r.interest.put(k.Addr, e)
	r.touchChanged(t, r.dir.RemoveHost(k, why))
}

func (r *Reflector) removeHost(t *change, d *device, k zone.HostKey, why snsd.Reason) {
	delete(d.hosts, k)
	r.hosts--
	t.dropFence(d, k)
	r.dropHost(t, k, why)
}

// passedOver is how many hosts that are passed over are as much work as one that is looked at.
const passedOver = 16

// takeDown takes what a device says of hosts of its own at one port: that they cannot be reached,
// or can again. Those that are not known here take no room: they are put with their state. An
// address with another claim may pass to that.
func (r *Reflector) takeDown(t *change, d *device, rec *wire.DownRecord) {
	for _, addr := range rec.Addrs {
		e := r.interest.at(addr)
		i, found := findAtt(e.atts, rec.Key(addr))
		if !found || e.atts[i].Down.Same(rec.Down) && !t.repeat {
			continue
		}
		r.touch(t, addr)
		e.atts = slices.Clone(e.atts)
		e.atts[i].Down = rec.Down
		r.interest.put(addr, e)
	}
	r.touchContested(t, r.dir.SetDown(d.id, rec.Port, rec.Addrs, rec.Down))
}
