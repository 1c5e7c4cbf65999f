package reflector

import (
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// What devices have fenced is kept while their session lasts, and as long as they have the hosts:
// of a device that is away nobody knows what it does, and nothing counts as fenced there.

// maxFenced is how many fenced hosts of a device are kept, over all its addresses.
const maxFenced = 16384

// fences are those of a device.
type fences struct {
	fenced map[zone.HostKey]fenced
	peers  int // of all
}

// fenced is what a device has fenced at an address.
type fenced struct {
	rec wire.FenceRecord
	gen uint32 // the session that announced it
}

// takeFence takes in what a device has fenced at an address of its own.
func (r *Reflector) takeFence(t *change, d *device, rec *wire.FenceRecord) (*uint64, error) {
	k := rec.Key()
	was := d.fenced[k]
	switch _, known := d.hosts[k]; {
	case rec.Device != d.id:
		return &r.counters.NotOwned, &OwnerError{Record: "fence at port " + rec.Port, Owner: rec.Device.String(), Sender: d.id.String()}
	case len(rec.Peers) == 0 || !known: // it is put after its host
		t.dropFence(d, k)
		return nil, nil
	case d.peers-len(was.rec.Peers)+len(rec.Peers) > maxFenced:
		t.dropFence(d, k)
		return &r.counters.OverLimit, &wire.LimitError{What: "fenced hosts of one device", Key: "fence of " + k.Addr.String(), Limit: maxFenced}
	}
	if d.fenced == nil {
		d.fenced = map[zone.HostKey]fenced{}
	}
	d.peers += len(rec.Peers) - len(was.rec.Peers)
	d.fenced[k] = fenced{*rec, d.gen}
	t.fenced = append(t.fenced, k)
	return nil, nil
}

// dropFence takes one back.
func (t *change) dropFence(d *device, k zone.HostKey) {
	if was, had := d.fenced[k]; had {
		d.peers -= len(was.rec.Peers)
		delete(d.fenced, k)
		t.fenced = append(t.fenced, k)
	}
}

// dropFences takes those back that a device has not announced in a session since.
func (t *change) dropFences(d *device, gen uint32) {
	for _, k := range sortedKeys(d.fenced, zone.CompareKeys) {
		if d.fenced[k].gen != gen {
			t.dropFence(d, k)
		}
	}
}

// fenceOf is what its device has fenced at an address.
func (r *Reflector) fenceOf(k zone.HostKey) wire.FenceRecord {
	if d := r.devices[k.Device]; d != nil {
		if f, there := d.fenced[k]; there {
			return f.rec
		}
	}
	return wire.FenceRecord{Device: k.Device, Port: k.Port, Array: k.Addr}
}
