package reflector

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// A reflector may know which hosts a device can have: addresses of some prefixes, some NQNs,
// so many in all. What a device says of a host outside of that is refused, and the device is
// told which hosts those are. It is the operator's word, not a want of room: such a host is
// not in the table, also if it was before the binding changed.

// BindingError is a host that its device may not have.
type BindingError struct {
	Host   netip.Addr
	Device netip.Addr
	Why    string
}

func (e *BindingError) Error() string {
	return fmt.Sprintf("host %s of device %s refused: %s (reflector.clients binds it)", e.Host, e.Device, e.Why)
}

// mostOutside is how many hosts outside of a device's binding are remembered.
const mostOutside = 4096

// bound refuses a host that is outside of its device's binding. One that was inside before
// is not there any more.
func (r *Reflector) bound(t *change, d *device, h *zone.Host) error {
	why := r.cfg.Bindings[d.id].Outside(h)
	if why == "" {
		r.inside(d, h.HostKey)
		return nil
	}
	if _, known := d.hosts[h.HostKey]; known {
		r.removeHost(t, d, h.HostKey, snsd.ReasonAgedOut)
	}
	r.leaveOutside(d, h.HostKey, why)
	return &BindingError{Host: h.Addr, Device: d.id, Why: why}
}

// leaveOutside remembers a host that is refused by a binding.
func (r *Reflector) leaveOutside(d *device, k zone.HostKey, why string) {
	was, known := d.outside[k]
	if was == why || !known && len(d.outside) >= mostOutside {
		return
	}
	if d.outside == nil {
		d.outside = map[zone.HostKey]string{}
	}
	d.outside[k], d.untold = why, true
}

// inside forgets a host that was outside, and is allowed now or gone.
func (r *Reflector) inside(d *device, k zone.HostKey) {
	if _, was := d.outside[k]; was {
		delete(d.outside, k)
		d.untold = true
	}
}

// SetBindings changes which hosts devices may have. What is outside now is withdrawn;
// devices of which something was are asked again for all they have.
func (r *Reflector) SetBindings(next map[netip.Addr]wire.Binding, now time.Time) []wire.Delivery {
	was := r.cfg.Bindings
	r.cfg.Bindings = next
	t := r.begin()
	var told []*device
	for _, id := range slices.SortedFunc(maps.Keys(r.devices), netip.Addr.Compare) {
		d := r.devices[id]
		if was[id].Equal(next[id]) {
			continue
		}
		if d.up {
			told = append(told, d)
		}
		asked := len(d.outside) > 0
		if d.outside = nil; asked {
			d.again = askAgain
		}
		for _, h := range r.excluded(d, next[id]) {
			why := next[id].Outside(&h)
			r.removeHost(t, d, h.HostKey, snsd.ReasonAgedOut)
			r.leaveOutside(d, h.HostKey, why)
		}
		d.untold = false
		if d.up && (asked || len(d.outside) > 0) {
			r.refusal(d, asked)
		}
	}
	r.commit(t, r.ownCause())
	r.invite()
	return append(r.tellBound(told...), r.out(now)...)
}

// SetDeclared changes which hosts devices may find that register nothing.
func (r *Reflector) SetDeclared(next []wire.DeclaredHost) []wire.Delivery {
	if slices.EqualFunc(r.cfg.Declared, next, wire.DeclaredHost.Equal) {
		return nil
	}
	r.cfg.Declared = next
	var up []*device
	for _, d := range r.devices {
		if d.up {
			up = append(up, d)
		}
	}
	return r.tellBound(up...)
}

// tellBound tells devices with a session what they are bound to.
func (r *Reflector) tellBound(devs ...*device) (out []wire.Delivery) {
	slices.SortFunc(devs, compareDevices)
	for _, d := range devs {
		b := r.cfg.Bindings[d.id]
		out = append(out, wire.Delivery{To: []netip.Addr{d.id}, Msg: &wire.Bound{Prefixes: b.Prefixes, NQNs: b.NQNs, Hosts: r.cfg.Declared}})
	}
	return out
}

// excluded are the hosts of a device that a binding would not allow, sorted.
func (r *Reflector) excluded(d *device, b wire.Binding) (list []zone.Host) {
	for _, k := range slices.SortedFunc(maps.Keys(d.hosts), zone.CompareKeys) {
		e := r.interest.at(k.Addr)
		if i, ok := findAtt(e.atts, k); ok && b.Outside(&e.atts[i]) != "" {
			list = append(list, e.atts[i])
		}
	}
	return list
}

// Excluded are the known hosts that other bindings would not allow, by device and address.
func (r *Reflector) Excluded(next map[netip.Addr]wire.Binding) (list []zone.Host) {
	for _, id := range slices.SortedFunc(maps.Keys(next), netip.Addr.Compare) {
		if d := r.devices[id]; d != nil {
			list = append(list, r.excluded(d, next[id])...)
		}
	}
	return list
}

// OutsideHost is a host that a binding refuses.
type OutsideHost struct {
	zone.HostKey
	Why string
}

// Outside are the hosts that bindings refuse, by device and address; of each device 4,096 are
// known.
func (r *Reflector) Outside() (list []OutsideHost) {
	for _, d := range r.devices {
		for k, why := range d.outside {
			list = append(list, OutsideHost{k, why})
		}
	}
	slices.SortFunc(list, func(a, b OutsideHost) int {
		if c := a.Device.Compare(b.Device); c != 0 {
			return c
		}
		return zone.CompareKeys(a.HostKey, b.HostKey)
	})
	return list
}
