package inof

import (
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// Standing is what a reflector's zones say of a host, whether it knows the host or not.
type Standing uint8

const (
	StandingAsked Standing = 0 // a client asks for it
	StandingFree  Standing = 1 // in no zone: the host may be in the default zone
	StandingZoned Standing = 2 // some zone names it

	// standingPresumed is never sent: a client takes a reflector that has not answered in
	// the present session for one that has the host in no zone.
	standingPresumed Standing = 255
)

func (s Standing) free() bool { return s == StandingFree || s == standingPresumed }

// StandingRecord asks a reflector whether its zones name a host, or answers that
// (docs/protocol.md, "Standing record"). A client puts questions and withdraws
// them; a reflector puts answers, one to each question and one after each change.
type StandingRecord struct {
	Op    Op
	Host  zone.HostKey
	State Standing // of a put
	NQN   string   // of a question
}

func (s *StandingRecord) append(b []byte) ([]byte, error) {
	const where = "Update.standing"
	if err := checkOp(where, s.Op); err != nil {
		return nil, err
	}
	if err := checkHostKey(where, s.Host); err != nil {
		return nil, err
	}
	b, at := beginTLV(b, tlvUpdateStanding)
	b = append(b, byte(s.Op), byte(s.State))
	b = appendText(appendAddr(appendAddr(b, s.Host.Addr), s.Host.Device), s.Host.Port)
	if s.asks() {
		if err := checkText(where+".nqn", s.NQN, 0, snsd.MaxNQN); err != nil {
			return nil, err
		}
		b = appendText(b, s.NQN)
	}
	return endTLV(b, at), nil
}

// asks tells whether it is a question, the only one with a name.
func (s *StandingRecord) asks() bool { return s.Op == Put && s.State == StandingAsked }

func decodeStanding(r *reader) StandingRecord {
	s := StandingRecord{Op: r.op("standing"), State: Standing(r.u8("standing.state"))}
	s.Host.Addr = r.addr("standing.address")
	s.Host.Device = r.addr("standing.device")
	s.Host.Port = r.text("standing.port", 1, fabric.MaxPortName)
	if s.asks() {
		s.NQN = r.text("standing.nqn", 0, snsd.MaxNQN)
	}
	return s
}

func (s *StandingRecord) size() int {
	return tlvHeaderLen + 4 + addrLen(s.Host.Addr) + addrLen(s.Host.Device) + len(s.Host.Port) + len(s.NQN)
}
