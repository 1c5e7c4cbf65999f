package wire

import (
	"cmp"
	"net/netip"
	"slices"
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
	s := stamper{of: of}
	for i := range kinds {
		kinds[i].devices(u, &s)
	}
}

// stamper adds the states of devices to a message, each once.
type stamper struct {
	of    func(netip.Addr) Stamp
	last  netip.Addr
	index map[netip.Addr]struct{} // of many
}

func (s *stamper) add(u *Update, dev netip.Addr) {
	if dev == s.last {
		return
	}
	s.last = dev
	if len(u.Devices) > 8 { // a full sync has thousands
		if s.index == nil {
			s.index = make(map[netip.Addr]struct{}, 64)
			for _, d := range u.Devices {
				s.index[d.Device] = struct{}{}
			}
		}
		if _, ok := s.index[dev]; ok {
			return
		}
		s.index[dev] = struct{}{}
	} else if slices.ContainsFunc(u.Devices, func(d DeviceStamp) bool { return d.Device == dev }) {
		return
	}
	if at := s.of(dev); at.Known() && (dev != u.Origin || at != (Stamp{u.Epoch, u.Seq})) {
		u.Devices = append(u.Devices, DeviceStamp{dev, at})
	}
}

// DeviceStamp is the state of a device.
type DeviceStamp struct {
	Device netip.Addr
	Stamp
}
