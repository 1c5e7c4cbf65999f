package reflector

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// One device must not take the room of all: it has a quota of hosts, and the last part of
// the table is for devices that have less than their fair share. A host for which there is
// no room is refused, which its device is told, and asked for again when there is room.
// Nothing of a device of which one is refused is gone by an End-of-Sync.

const (
	// hostReserve is the part of the table, one in so many, that is kept for devices with
	// less than their fair share.
	hostReserve = 5
	// mostRefused is how many refused hosts of a device are remembered.
	mostRefused = 4096
	// inviteRoom is how much room is enough to ask a device again.
	inviteRoom = 64
)

// refusals is what of a device is refused, and what it has to hear of that.
type refusals struct {
	refused map[zone.HostKey]struct{} // hosts for which there is no room
	were    map[zone.HostKey]struct{} // refused before it began to say everything again
	beyond  bool                      // more were refused than are remembered
	limit   int                       // that says so
	outside map[zone.HostKey]string   // hosts outside of the device's binding, and why
	again   again
	untold  bool // it has not been told what is refused now
}

// again is whether a device is to say everything again.
type again int

const (
	notAgain  again = iota
	askAgain        // it is, and has to be told
	saysAgain       // it has been told: its End-of-Sync is to come
)

// saidAgain is for a device that has said everything. What it was to be asked meanwhile it is
// asked.
func (f *refusals) saidAgain() {
	if f.again == saysAgain {
		f.again = notAgain
	}
}

// roomFor is how many more hosts a device may have, and the limit that says so.
func (r *Reflector) roomFor(d *device) (room int, limit wire.LimitError) {
	total := r.cfg.MaxHosts
	room, limit = total-r.hosts, wire.LimitError{What: "hosts", Limit: total}
	most := r.cfg.MaxDeviceHosts
	if n := r.cfg.Bindings[d.id].MaxHosts; n > 0 {
		most = min(most, n)
	}
	if own := most - len(d.hosts); own < room {
		room, limit = own, wire.LimitError{What: "hosts of one device", Limit: most}
	}
	share := max(1, total/max(1, len(r.devices)))
	if fair := max(share-len(d.hosts), total-r.hosts-total/hostReserve); fair < room {
		room, limit = fair, wire.LimitError{What: "hosts of one device while the table is nearly full", Limit: share}
	}
	return room, limit
}

// hostFits reports whether a device may have one more host; what does not fit is remembered.
func (r *Reflector) hostFits(d *device, k zone.HostKey) error {
	room, limit := r.roomFor(d)
	if room > 0 {
		return nil
	}
	if d.refused == nil {
		d.refused = map[zone.HostKey]struct{}{}
	}
	if len(d.refused) < mostRefused {
		d.refused[k] = struct{}{}
	} else {
		d.beyond = true
	}
	d.limit = limit.Limit
	r.short[d.id] = d
	limit.Key = "host " + k.Addr.String()
	return &limit
}

// lose notes that a host which is refused has gone: a client may know it from before.
func (t *change) lose(d *device, k zone.HostKey, why snsd.Reason) {
	if _, was := d.refused[k]; was || d.beyond {
		t.lost = append(t.lost, goneKey(k, why))
	}
}

// goneKey is the news that a host has gone. Nobody here knows whom it concerns, and who takes back
// what is refused without end must delay nobody: it is told when nothing else is to do.
func goneKey(k zone.HostKey, why snsd.Reason) news {
	return news{feedKey: feedKey{keyHost, k}, gone: true, again: true, why: why}
}

// tellLost lets those clients hear of hosts that were refused, and have gone, whose End-of-Sync
// spares what they know of the device.
func (r *Reflector) tellLost(d *device, lost []news, by *cause) {
	if len(lost) == 0 || r.short[d.id] == nil {
		return
	}
	_, all := r.shortOnes()
	var to []*device
	for _, c := range r.devices {
		_, spared := slices.BinarySearchFunc(c.spared, d.id, netip.Addr.Compare)
		if c != d && c.follows() && (spared || all || !c.told) {
			to = append(to, c)
		}
	}
	if len(to) > 0 {
		slices.SortFunc(to, compareDevices)
		r.post(lost, receivers{list: to}, by)
	}
}

// unrefuse forgets a refused host that is there now, or gone. With the last of them all hosts
// of the device are known, unless more were refused than are remembered: then it is asked.
func (r *Reflector) unrefuse(d *device, k zone.HostKey) {
	if len(d.refused) == 0 {
		return
	}
	delete(d.refused, k)
	switch {
	case len(d.refused) > 0 || !d.synced || d.again != notAgain || d.forgot != 0: // or its End-of-Sync is to come
	case d.beyond:
		r.ask(d)
	default:
		r.whole(d)
	}
}

// ask has a device say everything again; until it has, hosts of it may be missing.
func (r *Reflector) ask(d *device) {
	d.were, d.refused, d.beyond = d.refused, nil, false
	r.refusal(d, true)
}

// whole says that no host of a device is missing any more, or that there is no device. Clients
// whose End-of-Sync spared what they knew of it get another one, which ends what is not there.
func (r *Reflector) whole(d *device) {
	d.refused, d.beyond = nil, false
	d.saidAgain()
	if r.short[d.id] == nil {
		return
	}
	delete(r.short, d.id)
	for _, c := range r.devices {
		if i, was := slices.BinarySearchFunc(c.spared, d.id, netip.Addr.Compare); was {
			c.spared, c.endsSpared, r.ends = slices.Delete(c.spared, i, i+1), true, true
			if c.up {
				r.unended[c] = struct{}{}
			}
		}
	}
}

// shortOnes are the devices of whose hosts some may be missing, sorted; with too many of them an
// End-of-Sync says that nothing at all is gone.
func (r *Reflector) shortOnes() (list []netip.Addr, tooMany bool) {
	if len(r.short) > wire.MaxSyncShort {
		return nil, true
	}
	return slices.SortedFunc(maps.Keys(r.short), netip.Addr.Compare), false
}

// refusal lets a device hear what is refused of it. Again: it is to say everything again.
func (r *Reflector) refusal(d *device, again bool) {
	if again {
		d.again = askAgain
	}
	r.post([]news{{feedKey: feedKey{kind: keyRefused}}}, receivers{list: []*device{d}}, r.ownCause())
}

// tellRefusal tells a device what is refused of it, if it has not been.
func (r *Reflector) tellRefusal(d *device) {
	if d.untold {
		d.untold = false
		r.refusal(d, false)
	}
}

// invite asks devices again whose hosts were refused, when there is room for them: not while there
// comes to be more of it, or they would be asked again and again.
func (r *Reflector) invite() {
	if r.ageing > 0 {
		return
	}
	for _, id := range slices.SortedFunc(maps.Keys(r.short), netip.Addr.Compare) {
		d := r.short[id]
		if !d.up || !d.synced || len(d.refused) == 0 {
			continue
		}
		if room, _ := r.roomFor(d); room >= min(len(d.refused), inviteRoom) {
			r.ask(d)
		}
	}
}

// Short is a device of which hosts are refused.
type Short struct {
	Device         netip.Addr
	Refused, Limit int // at most 4,096 are counted
	Hosts          int // that it has
}

// Short are the devices of which hosts are refused, sorted.
func (r *Reflector) Short() (out []Short) {
	for _, d := range r.short {
		if len(d.refused) == 0 { // it says everything again
			continue
		}
		out = append(out, Short{Device: d.id, Refused: len(d.refused), Limit: d.limit, Hosts: len(d.hosts)})
	}
	slices.SortFunc(out, func(a, b Short) int { return a.Device.Compare(b.Device) })
	return out
}
