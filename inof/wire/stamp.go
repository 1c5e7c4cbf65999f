package wire

import (
	"cmp"
	"net/netip"
	"time"
)

// Stamp numbers the state of an origin: the start of its process and the number of
// its change. The zero Stamp is not known.
type Stamp struct {
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// Known reports whether the stamp says anything.
func (s Stamp) Known() bool { return s.Epoch != 0 }

// Before reports whether s is older than o; false when one of them is not known. A
// later start of a process has a greater epoch.
func (s Stamp) Before(o Stamp) bool {
	if !s.Known() || !o.Known() {
		return false
	}
	return cmp.Or(cmp.Compare(s.Epoch, o.Epoch), cmp.Compare(s.Seq, o.Seq)) < 0
}

// StampSent notes in the Updates of deliveries that their origin hands them to its
// sessions now. It is for whoever owns both the machine and the
// sessions, between the two: the machine knows only when it began to decide. Messages
// that were delivered before must not be among them.
func StampSent(ds []Delivery, now time.Time) {
	for i := range ds {
		if u, ok := ds[i].Msg.(*Update); ok {
			u.SentAt = now
		}
	}
}

// StampOf is the state of a device of which the records in the Update are; zero
// when the Update does not say.
func (u *Update) StampOf(dev netip.Addr) Stamp {
	for _, d := range u.Devices {
		if d.Device == dev {
			return d.Stamp
		}
	}
	if dev == u.Origin {
		return Stamp{u.Epoch, u.Seq}
	}
	return Stamp{}
}

// StampDevices says of which state of their devices the records are, where the
// origin does not say it already.
func (u *Update) StampDevices(of func(netip.Addr) Stamp) {
	seen := func(dev netip.Addr) bool {
		for _, d := range u.Devices {
			if d.Device == dev {
				return true
			}
		}
		return false
	}
	index := map[netip.Addr]struct{}(nil)
	var last netip.Addr
	add := func(dev netip.Addr) {
		if dev == last {
			return
		}
		last = dev
		if len(u.Devices) > 8 { // a full sync has thousands
			if index == nil {
				index = make(map[netip.Addr]struct{}, 64)
				for _, d := range u.Devices {
					index[d.Device] = struct{}{}
				}
			}
			if _, ok := index[dev]; ok {
				return
			}
			index[dev] = struct{}{}
		} else if seen(dev) {
			return
		}
		if s := of(dev); s.Known() && (dev != u.Origin || s != (Stamp{u.Epoch, u.Seq})) {
			u.Devices = append(u.Devices, DeviceStamp{dev, s})
		}
	}
	for i := range u.Hosts {
		add(u.Hosts[i].Host.Device)
	}
	for i := range u.Downs {
		add(u.Downs[i].Device)
	}
}

// DeviceStamp is the state of a device.
type DeviceStamp struct {
	Device netip.Addr
	Stamp
}
