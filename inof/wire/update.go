package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// TLV types of an Update (docs/protocol.md, "Update"). An EndOfSync carries the
// second, a Notification has types of its own.
const (
	tlvUpdateOrigin   uint8 = 1 // address
	tlvUpdateStamp    uint8 = 2 // epoch u64, sequence u64
	tlvUpdateTimes    uint8 = 3 // fault, sent, reflected, then decided, at the reflector: i64 each
	tlvUpdateSettings uint8 = 4
	tlvUpdateZone     uint8 = 5
	tlvUpdateHost     uint8 = 6
	tlvUpdateDown     uint8 = 7
	tlvUpdateDevice   uint8 = 8  // address, epoch u64, sequence u64; any number
	tlvUpdatePos      uint8 = 9  // epoch u64, sequence u64
	tlvUpdatePartial  uint8 = 10 // empty
	tlvSyncResumed    uint8 = 11 // empty; in an EndOfSync
	tlvCluster        uint8 = 12 // cluster u64, log index u64; in both
	tlvClusterMember  uint8 = 13 // address; in an EndOfSync, any number
	tlvUpdateMore     uint8 = 14 // empty
	tlvUpdateAnew     uint8 = 15 // empty
	tlvSyncShort      uint8 = 17 // address; in an EndOfSync, at most MaxSyncShort
	tlvUpdateRefused  uint8 = 16 // see Refusal.append

	tlvNoteCode uint8 = 1 // u16
	tlvNoteText uint8 = 2 // UTF-8
)

// Flags of the settings TLV.
const (
	settingAutoJoin uint8 = 1 << 0
	settingHard     uint8 = 1 << 1
	settingBFD      uint8 = 1 << 2
	settingMeshAll  uint8 = 1 << 3
)

func (u *Update) appendBody(b []byte) ([]byte, error) {
	b = slices.Grow(b, u.sizeHint())
	if err := CheckAddr("Update.origin", u.Origin); err != nil {
		return nil, err
	}
	b, at := beginTLV(b, tlvUpdateOrigin)
	b = endTLV(appendAddr(b, u.Origin), at)
	b = appendStamp(b, u.Epoch, u.Seq)
	b, at = beginTLV(b, tlvUpdateTimes)
	b = appendTime(b, u.FaultAt)
	b = appendTime(b, u.SentAt)
	b = appendTime(b, u.ReflectedAt)
	if !u.DecidedAt.IsZero() || !u.ReflectorAt.IsZero() { // fields that came later trail
		b = appendTime(appendTime(b, u.DecidedAt), u.ReflectorAt)
	}
	b = endTLV(b, at)
	var err error
	for _, d := range u.Devices {
		if err := CheckAddr("Update.device", d.Device); err != nil {
			return nil, err
		}
		b, at = beginTLV(b, tlvUpdateDevice)
		b = binary.BigEndian.AppendUint64(appendAddr(b, d.Device), d.Epoch)
		b = endTLV(binary.BigEndian.AppendUint64(b, d.Seq), at)
	}
	if u.Pos.Known() {
		b, at = beginTLV(b, tlvUpdatePos)
		b = binary.BigEndian.AppendUint64(b, u.Pos.Epoch)
		b = endTLV(binary.BigEndian.AppendUint64(b, u.Pos.Seq), at)
	}
	if u.Partial {
		b, at = beginTLV(b, tlvUpdatePartial)
		b = endTLV(b, at)
	}
	if u.Anew {
		b, at = beginTLV(b, tlvUpdateAnew)
		b = endTLV(b, at)
	}
	if u.More {
		b, at = beginTLV(b, tlvUpdateMore)
		b = endTLV(b, at)
	}
	if u.Refused != nil {
		b, at = beginTLV(b, tlvUpdateRefused)
		if b, err = u.Refused.append(b); err != nil {
			return nil, err
		}
		b = endTLV(b, at)
	}
	b = appendCluster(b, u.Cluster)
	if u.Settings != nil {
		if b, err = u.Settings.append(b); err != nil {
			return nil, err
		}
	}
	for i := range u.Zones {
		if b, err = u.Zones[i].append(b); err != nil {
			return nil, err
		}
	}
	for i := range u.Hosts {
		if b, err = u.Hosts[i].append(b); err != nil {
			return nil, err
		}
	}
	for i := range u.Downs {
		if b, err = u.Downs[i].append(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func appendStamp(b []byte, epoch, seq uint64) []byte {
	b, at := beginTLV(b, tlvUpdateStamp)
	b = binary.BigEndian.AppendUint64(b, epoch)
	return endTLV(binary.BigEndian.AppendUint64(b, seq), at)
}

func (s *Settings) append(b []byte) ([]byte, error) {
	us := s.BFD.Interval.Microseconds()
	if us < 0 || us > int64(time.Minute/time.Microsecond) {
		return nil, Malformed("Update.settings.bfd", "interval %v, want 0..1m", s.BFD.Interval)
	}
	var flags uint8
	if s.AutoJoin {
		flags |= settingAutoJoin
	}
	if s.Hard {
		flags |= settingHard
	}
	if s.BFD.Enabled {
		flags |= settingBFD
	}
	if s.BFD.MeshAll {
		flags |= settingMeshAll
	}
	b, at := beginTLV(b, tlvUpdateSettings)
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, uint32(us))
	return endTLV(append(b, s.BFD.DetectMult), at), nil
}

func decodeSettings(r *reader) *Settings {
	flags := r.u8("settings.flags")
	s := &Settings{AutoJoin: flags&settingAutoJoin != 0, Hard: flags&settingHard != 0}
	s.BFD.Enabled, s.BFD.MeshAll = flags&settingBFD != 0, flags&settingMeshAll != 0
	s.BFD.Interval = time.Duration(r.u32("settings.bfd interval")) * time.Microsecond
	if s.BFD.Interval > time.Minute {
		r.fail("settings.bfd interval", "%v, want at most 1m", s.BFD.Interval)
	}
	s.BFD.DetectMult = r.u8("settings.bfd multiplier")
	return s
}

// single tells which TLVs an Update holds at most once; the others are records.
func single(typ uint8) bool {
	switch typ {
	case tlvUpdateOrigin, tlvUpdateStamp, tlvUpdateTimes, tlvUpdateSettings, tlvUpdatePos, tlvUpdatePartial, tlvUpdateMore, tlvUpdateAnew, tlvUpdateRefused, tlvCluster:
		return true
	}
	return false
}

func decodeUpdate(body []byte) (*Update, error) {
	var u Update
	var seen tlvSet
	err := eachTLV("Update", body, func(typ uint8, r *reader) bool {
		if single(typ) && seen.again(typ, r) {
			return true
		}
		switch typ {
		case tlvUpdateOrigin:
			u.Origin = r.addr("origin")
		case tlvUpdateStamp:
			u.Epoch, u.Seq = r.u64("epoch"), r.u64("seq")
		case tlvUpdateTimes:
			u.FaultAt, u.SentAt, u.ReflectedAt = r.time("times"), r.time("times"), r.time("times")
			if r.err == nil && len(r.b) > 0 {
				u.DecidedAt, u.ReflectorAt = r.time("times"), r.time("times")
			}
		case tlvUpdateSettings:
			u.Settings = decodeSettings(r)
		case tlvUpdateZone:
			u.Zones = append(u.Zones, decodeZone(r))
		case tlvUpdateHost:
			u.Hosts = append(u.Hosts, decodeHost(r))
		case tlvUpdateDown:
			u.Downs = append(u.Downs, decodeDownRecord(r))
		case tlvUpdateMore:
			u.More = true
		case tlvUpdateDevice:
			u.Devices = append(u.Devices, DeviceStamp{r.addr("device"), Stamp{r.u64("device.epoch"), r.u64("device.seq")}})
		case tlvUpdatePos:
			u.Pos = Stamp{r.u64("position.epoch"), r.u64("position.seq")}
			if !u.Pos.Known() { // it would look like no position at all
				r.fail("position.epoch", "0 is no epoch")
			}
		case tlvUpdatePartial:
			u.Partial = true
		case tlvUpdateRefused:
			u.Refused = decodeRefusal(r)
		case tlvUpdateAnew:
			u.Anew = true
		case tlvCluster:
			u.Cluster = decodeCluster(r)
		default:
			return false
		}
		return true
	})
	switch {
	case err != nil:
		return nil, err
	case !seen.has(tlvUpdateOrigin):
		return nil, Malformed("Update", "TLV type %d (origin) is missing", tlvUpdateOrigin)
	case !seen.has(tlvUpdateStamp):
		return nil, Malformed("Update", "TLV type %d (epoch and sequence) is missing", tlvUpdateStamp)
	}
	return &u, nil
}

func (e *EndOfSync) appendBody(b []byte) ([]byte, error) {
	b = appendStamp(b, e.Epoch, e.Seq)
	if e.Resumed {
		var at int
		b, at = beginTLV(b, tlvSyncResumed)
		b = endTLV(b, at)
	}
	b, err := appendAddrs(b, tlvSyncShort, "EndOfSync.short", e.Short, MaxSyncShort)
	if err != nil {
		return nil, err
	}
	return appendAddrs(appendCluster(b, e.Cluster), tlvClusterMember, "EndOfSync.member", e.Members, MaxClusterMembers)
}

func decodeEndOfSync(body []byte) (*EndOfSync, error) {
	var e EndOfSync
	var seen tlvSet
	err := eachTLV("EndOfSync", body, func(typ uint8, r *reader) bool {
		if (typ == tlvUpdateStamp || typ == tlvSyncResumed || typ == tlvCluster) && seen.again(typ, r) {
			return true
		}
		switch typ {
		case tlvUpdateStamp:
			e.Epoch, e.Seq = r.u64("epoch"), r.u64("seq")
		case tlvSyncResumed:
			e.Resumed = true
		case tlvSyncShort:
			if len(e.Short) == MaxSyncShort {
				r.fail("short", "more than %d", MaxSyncShort)
				return true
			}
			e.Short = append(e.Short, r.addr("short"))
		case tlvCluster:
			e.Cluster = decodeCluster(r)
		case tlvClusterMember:
			if m := r.addr("member"); len(e.Members) < MaxClusterMembers {
				e.Members = append(e.Members, m)
			} else {
				r.fail("members", "more than %d", MaxClusterMembers)
			}
		default:
			return false
		}
		return true
	})
	if err == nil && !seen.has(tlvUpdateStamp) {
		err = Malformed("EndOfSync", "TLV type %d (epoch and sequence) is missing", tlvUpdateStamp)
	}
	if err != nil {
		return nil, err
	}
	return &e, nil
}

func (n *Notification) appendBody(b []byte) ([]byte, error) {
	text := n.Text
	if len(text) > MaxNotificationText {
		text = text[:MaxNotificationText]
	}
	b, at := beginTLV(b, tlvNoteCode)
	b = endTLV(binary.BigEndian.AppendUint16(b, uint16(n.Code)), at)
	if text != "" {
		b, at = beginTLV(b, tlvNoteText)
		b = endTLV(append(b, text...), at)
	}
	return b, nil
}

func decodeNotification(body []byte) (*Notification, error) {
	var n Notification
	var seen tlvSet
	err := eachTLV("Notification", body, func(typ uint8, r *reader) bool {
		if (typ == tlvNoteCode || typ == tlvNoteText) && seen.again(typ, r) {
			return true
		}
		switch typ {
		case tlvNoteCode:
			n.Code = Code(r.u16("code"))
		case tlvNoteText:
			if len(r.b) > MaxNotificationText {
				r.fail("text", "%d bytes, want at most %d", len(r.b), MaxNotificationText)
				return true
			}
			// Shown to a person: what cannot be printed is quoted, not refused.
			if n.Text = string(r.b); !printable(n.Text) {
				n.Text = fmt.Sprintf("%q", n.Text)
			}
		default:
			return false
		}
		return true
	})
	if err == nil && n.Code == 0 {
		err = Malformed("Notification", "TLV type %d (code) is missing or 0", tlvNoteCode)
	}
	if err != nil {
		return nil, err
	}
	return &n, nil
}
