package wire

import (
	"crypto/sha256"
	"encoding/binary"
)

// TLV types of a Keepalive (docs/protocol.md, "Keepalive").
const (
	tlvAliveProof  uint8 = 1 // 32 bytes
	tlvAliveDemand uint8 = 2 // u64
	tlvAliveAnswer uint8 = 3 // u64
)

func (k *Keepalive) appendBody(b []byte) ([]byte, error) {
	var at int
	if k.Proof != nil {
		b, at = beginTLV(b, tlvAliveProof)
		b = endTLV(append(b, k.Proof...), at)
	}
	if k.Demand != 0 {
		b, at = beginTLV(b, tlvAliveDemand)
		b = endTLV(binary.BigEndian.AppendUint64(b, k.Demand), at)
	}
	if k.Answer != 0 {
		b, at = beginTLV(b, tlvAliveAnswer)
		b = endTLV(binary.BigEndian.AppendUint64(b, k.Answer), at)
	}
	return b, nil
}

func decodeKeepalive(body []byte) (*Keepalive, error) {
	var k Keepalive
	var seen tlvSet
	err := eachTLV("Keepalive", body, func(typ uint8, r *reader) bool {
		if typ <= tlvAliveAnswer && seen.again(typ, r) {
			return true
		}
		switch typ {
		case tlvAliveProof:
			k.Proof = append([]byte(nil), r.take("proof", ProofLen)...)
		case tlvAliveDemand:
			k.Demand = r.u64("demand")
		case tlvAliveAnswer:
			k.Answer = r.u64("answer")
		default:
			return false
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return &k, nil
}

// ProofLen is the length of the proof that a dialer knows a second password.
const ProofLen = sha256.Size
