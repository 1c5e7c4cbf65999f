package wire

import (
	"encoding/binary"
	"time"
)

// Flags of the settings TLV.
const (
	settingAutoJoin uint8 = 1 << 0
	settingHard     uint8 = 1 << 1
	settingBFD      uint8 = 1 << 2
	settingMeshAll  uint8 = 1 << 3
	settingHalt     uint8 = 1 << 4
	settingOpen     uint8 = 1 << 5
)

// BFDSettings are the device-to-device liveness timers that a reflector hands out.
type BFDSettings struct {
	Enabled    bool          `json:"enabled"`
	Interval   time.Duration `json:"interval"`    // 3 ms .. 1 s, whole microseconds
	DetectMult uint8         `json:"detect_mult"` // 3..50
	// MeshAll asks for sessions between all devices that know of each other, not only
	// between those with hosts in a common zone.
	MeshAll bool `json:"mesh_all"`
}

// Halt has every client decide and record, and act on nothing: no notice, no port shut, no block.
// A client that does not know these flags goes on as before.
type Halt struct {
	On         bool `json:"on"`
	OpenZoning bool `json:"open_zoning,omitempty"` // hard zoning lets everything pass meanwhile
}

// Settings are the switches that a reflector sets for every client.
type Settings struct {
	AutoJoin bool        `json:"auto_join"` // hosts of no zone join the default zone
	Hard     bool        `json:"hard"`      // isolate zones in the dataplane too
	BFD      BFDSettings `json:"bfd"`
	Halt     Halt        `json:"halt"`
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
	if s.Halt.On {
		flags |= settingHalt
	}
	if s.Halt.OpenZoning {
		flags |= settingOpen
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
	s.Halt = Halt{On: flags&settingHalt != 0, OpenZoning: flags&settingOpen != 0}
	s.BFD.Interval = time.Duration(r.u32("settings.bfd interval")) * time.Microsecond
	if s.BFD.Interval > time.Minute {
		r.fail("settings.bfd interval", "%v, want at most 1m", s.BFD.Interval)
	}
	s.BFD.DetectMult = r.u8("settings.bfd multiplier")
	return s
}
