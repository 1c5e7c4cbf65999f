package wire

import (
	"encoding/binary"
	"net/netip"
)

// MaxClusterMembers is how many reflectors one cluster may have.
const MaxClusterMembers = 9

// ClusterStamp says that the zones of a reflector are those of a cluster, as of an
// entry of the cluster's log (docs/protocol.md, "Clusters"). The zero value is a
// reflector that stands for itself.
type ClusterStamp struct {
	ID    uint64 // of the cluster, random and never zero
	Index uint64 // of the last log entry that is in force at the reflector; 0: not said
}

// Known reports whether there is a cluster.
func (s ClusterStamp) Known() bool { return s.ID != 0 }

func appendCluster(b []byte, s ClusterStamp) []byte {
	if !s.Known() {
		return b
	}
	b, at := beginTLV(b, tlvCluster)
	b = binary.BigEndian.AppendUint64(b, s.ID)
	return endTLV(binary.BigEndian.AppendUint64(b, s.Index), at)
}

func decodeCluster(r *reader) ClusterStamp {
	s := ClusterStamp{ID: r.u64("cluster.id"), Index: r.u64("cluster.index")}
	if r.err == nil && !s.Known() {
		r.fail("cluster.id", "0 is no cluster")
	}
	return s
}

// Within is the stamp of a message that others of the same state follow.
func (s ClusterStamp) Within() ClusterStamp { return ClusterStamp{ID: s.ID} }

// appendAddrs appends a TLV for each of some addresses, of which there are not more than most.
func appendAddrs(b []byte, typ uint8, where string, list []netip.Addr, most int) ([]byte, error) {
	if len(list) > most {
		return nil, Malformed(where, "%d, want at most %d", len(list), most)
	}
	for _, a := range list {
		if err := CheckAddr(where, a); err != nil {
			return nil, err
		}
		var at int
		b, at = beginTLV(b, typ)
		b = endTLV(appendAddr(b, a), at)
	}
	return b, nil
}
