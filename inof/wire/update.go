package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
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
	tlvUpdateFence    uint8 = 18

	tlvNoteCode uint8 = 1 // u16
	tlvNoteText uint8 = 2 // UTF-8
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
	for i := range kinds {
		if b, err = kinds[i].append(u, b); err != nil {
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
			for i := range kinds {
				if kinds[i].tlv == typ {
					kinds[i].decode(&u, r)
					return true
				}
			}
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

// Update carries changes of records. They are applied in the order of the fields:
// settings, zones, hosts, whether hosts are down.
type Update struct {
	Origin netip.Addr // device whose change this is
	Epoch  uint64     // of the origin: one value for each start of its process
	Seq    uint64     // the origin's change number within the epoch, from 1

	// Wall-clock stamps by which the latency of a fault is measured; zero when
	// not known. Nanoseconds since 1970 on the wire.
	FaultAt     time.Time // the event that caused the change
	SentAt      time.Time // the origin handed the Update to its sessions
	ReflectedAt time.Time // the reflector handed it to its sessions
	DecidedAt   time.Time // the origin took the event up; only where FaultAt is known
	ReflectorAt time.Time // the reflector's transport read it
	// ReceivedAt is when our transport read the last of its bytes, with monotonic
	// reading: not on the wire. Zero for what was handed over in process.
	ReceivedAt time.Time

	// Devices are the states of devices of which the records are, where Origin,
	// Epoch and Seq do not say it: of two reflectors the newer word counts.
	Devices []DeviceStamp
	// Pos is the number of the message in the log of the reflector that passed it
	// on. Zero: if the reflector is the origin, Epoch and Seq are it.
	Pos Stamp
	// Partial says that the message is part of a run: a session that ends before
	// its last message cannot be resumed.
	Partial bool
	// Anew says that a full sync of the sender begins: its zones are staged, not added.
	Anew bool
	// Cluster: the reflector's zones, as far as it has told them, are those of a
	// cluster as of a log entry. With More the entry is 0.
	Cluster ClusterStamp

	// Refused tells the receiver which of its hosts the sender has no room for.
	Refused *Refusal

	// More says that the zones and settings here are part of a change or full sync of which
	// more follows: they take effect with the first message without it.
	More     bool
	Settings *Settings
	Zones    []ZoneRecord
	Hosts    []HostRecord
	Downs    []DownRecord
	Fences   []FenceRecord // only to peers that announced CapFence
}

// Batch collects records that are to be told, one for a key: maybe more than a message holds.
type Batch struct {
	Settings *Settings
	Zones    []ZoneRecord
	Hosts    []HostRecord
	Downs    []DownRecord
	Fences   []FenceRecord
}
