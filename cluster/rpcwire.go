package cluster

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// op says what a request asks for.
type op uint8

const (
	opAppend    op = 1
	opVote      op = 2
	opPreVote   op = 3
	opSnapshot  op = 4 // chunks follow
	opTimeout   op = 5
	opChange    op = 16 // an Entry for the leader
	opStatus    op = 17 // anybody with the password or a certificate may ask
	opConfigure op = 18 // add, remove or replace a member, at the leader
)

// consensus reports whether only members may ask, of the incarnation they are known by.
func (o op) consensus() bool { return o <= opTimeout }

// leading reports whether only a leader asks for it.
func (o op) leading() bool { return o == opAppend || o == opSnapshot }

// voting reports whether a candidate asks for it.
func (o op) voting() bool { return o == opVote || o == opPreVote }

// limit is the longest request in bytes.
func (o op) limit() int {
	switch o {
	case opAppend, opChange:
		return maxRecord
	}
	return maxSmall
}

// Limits of what a peer says. Lengths are bytes.
const (
	maxPeerName   = 128     // a server id or address
	maxEntries    = 4096    // in one request
	maxConfigData = 8 << 10 // an encoded list of members
	maxExtensions = 1024
)

// The messages of Raft in a form of our own: lengths are checked before anything is
// allocated, and nothing is decoded by names. What the header says again (the address
// of the leader or candidate) and what only older versions of the library need is left out.

func appendRPCHeader(b []byte, h raft.RPCHeader) []byte {
	return appendBytes(appendBytes(append(b, byte(h.ProtocolVersion)), h.ID), h.Addr)
}

func (r *reader) rpcHeader() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersion(r.u8("protocol version")), ID: r.bytes("id", maxPeerName), Addr: r.bytes("address", maxPeerName)}
}

func encodeAppend(q *raft.AppendEntriesRequest) []byte {
	n := 256
	for _, l := range q.Entries {
		n += 64 + len(l.Data) + len(l.Extensions)
	}
	b := appendRPCHeader(append(make([]byte, 0, n), byte(opAppend)), q.RPCHeader)
	b = binary.BigEndian.AppendUint64(b, q.Term)
	for _, v := range []uint64{q.PrevLogEntry, q.PrevLogTerm, q.LeaderCommitIndex} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(q.Entries)))
	for _, l := range q.Entries {
		b = binary.BigEndian.AppendUint64(b, l.Index)
		b = append(binary.BigEndian.AppendUint64(b, l.Term), byte(l.Type))
		at := int64(0)
		if !l.AppendedAt.IsZero() {
			at = l.AppendedAt.UnixNano()
		}
		b = binary.BigEndian.AppendUint64(b, uint64(at))
		b = appendBytes(appendBytes(b, l.Data), l.Extensions)
	}
	return b
}

func decodeAppend(r *reader) *raft.AppendEntriesRequest {
	q := &raft.AppendEntriesRequest{RPCHeader: r.rpcHeader(), Term: r.u64("term")}
	q.PrevLogEntry, q.PrevLogTerm, q.LeaderCommitIndex = r.u64("previous entry"), r.u64("previous term"), r.u64("commit index")
	n := r.count("entries", maxEntries, 33)
	for i := range n {
		l := &raft.Log{Index: r.u64("index"), Term: r.u64("entry term"), Type: raft.LogType(r.u8("entry type"))}
		if at := int64(r.u64("appended at")); at != 0 {
			l.AppendedAt = time.Unix(0, at)
		}
		l.Data, l.Extensions = r.bytes("data", MaxEntry), r.bytes("extensions", maxExtensions)
		switch {
		case r.err != nil:
			return nil
		case l.Index != q.PrevLogEntry+uint64(i)+1:
			r.fail("entry %d follows entry %d", l.Index, q.PrevLogEntry+uint64(i))
		case l.Type == raft.LogConfiguration:
			r.configuration(l.Data)
		case l.Type > raft.LogConfiguration:
			r.fail("entry type %d is unknown", l.Type)
		}
		q.Entries = append(q.Entries, l)
	}
	return q
}

// configuration checks an encoded list of members, which the library decodes later
// and panics over when it is none.
func (r *reader) configuration(data []byte) {
	if len(data) > maxConfigData {
		r.fail("a list of members of %d bytes, at most %d", len(data), maxConfigData)
		return
	}
	c, err := decodeConfiguration(data)
	if err != nil {
		r.fail("list of members: %v", err)
		return
	}
	if len(c.Servers) > 2*MaxMembers {
		r.fail("%d members, at most %d", len(c.Servers), MaxMembers)
	}
	for _, s := range c.Servers {
		if _, err := ParseMemberID(string(s.ID)); err != nil || len(s.Address) > maxPeerName {
			r.fail("member %.80q at %.80q: %v", s.ID, s.Address, err)
		}
	}
}

// decodeConfiguration is that of the library, with an error in place of its panic.
func decodeConfiguration(data []byte) (c raft.Configuration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = broken("configuration", "%v", p)
		}
	}()
	return raft.DecodeConfiguration(data), nil
}

func encodeVote(q *raft.RequestVoteRequest) []byte {
	b := appendRPCHeader([]byte{byte(opVote)}, q.RPCHeader)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, q.Term), q.LastLogIndex)
	return appendFlag(binary.BigEndian.AppendUint64(b, q.LastLogTerm), q.LeadershipTransfer)
}

func decodeVote(r *reader) *raft.RequestVoteRequest {
	return &raft.RequestVoteRequest{RPCHeader: r.rpcHeader(), Term: r.u64("term"),
		LastLogIndex: r.u64("last index"), LastLogTerm: r.u64("last term"), LeadershipTransfer: r.flag("transfer")}
}

func encodePreVote(q *raft.RequestPreVoteRequest) []byte {
	b := binary.BigEndian.AppendUint64(appendRPCHeader([]byte{byte(opPreVote)}, q.RPCHeader), q.Term)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, q.LastLogIndex), q.LastLogTerm)
}

func decodePreVote(r *reader) *raft.RequestPreVoteRequest {
	return &raft.RequestPreVoteRequest{RPCHeader: r.rpcHeader(), Term: r.u64("term"), LastLogIndex: r.u64("last index"), LastLogTerm: r.u64("last term")}
}

func encodeInstall(q *raft.InstallSnapshotRequest) []byte {
	b := append(appendRPCHeader([]byte{byte(opSnapshot)}, q.RPCHeader), byte(q.SnapshotVersion))
	b = binary.BigEndian.AppendUint64(b, q.Term)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, q.LastLogIndex), q.LastLogTerm)
	b = appendBytes(b, q.Configuration)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, q.ConfigurationIndex), uint64(q.Size))
}

func decodeInstall(r *reader) *raft.InstallSnapshotRequest {
	q := &raft.InstallSnapshotRequest{RPCHeader: r.rpcHeader(), SnapshotVersion: raft.SnapshotVersion(r.u8("snapshot version")),
		Term: r.u64("term"), LastLogIndex: r.u64("last index"), LastLogTerm: r.u64("last term"),
		Configuration: r.bytes("configuration", maxConfigData)}
	q.ConfigurationIndex = r.u64("configuration index")
	size := r.u64("size")
	switch {
	case r.err != nil:
	case size > MaxSnapshot:
		r.fail("a snapshot of %d bytes, at most %d", size, MaxSnapshot)
	case q.SnapshotVersion != raft.SnapshotVersionMax:
		r.fail("snapshot version %d, want %d", q.SnapshotVersion, raft.SnapshotVersionMax)
	default:
		r.configuration(q.Configuration)
	}
	q.Size = int64(size)
	return q
}

func encodeTimeout(q *raft.TimeoutNowRequest) []byte {
	return appendRPCHeader([]byte{byte(opTimeout)}, q.RPCHeader)
}

// decodeRPC decodes a request of Raft.
func decodeRPC(o op, r *reader) any {
	switch o {
	case opAppend:
		return decodeAppend(r)
	case opVote:
		return decodeVote(r)
	case opPreVote:
		return decodePreVote(r)
	case opSnapshot:
		return decodeInstall(r)
	}
	return &raft.TimeoutNowRequest{RPCHeader: r.rpcHeader()}
}

// encodeReply encodes the response of Raft to a request.
func encodeReply(v any) ([]byte, error) {
	var b []byte
	switch v := v.(type) {
	case *raft.AppendEntriesResponse:
		b = binary.BigEndian.AppendUint64(appendRPCHeader(b, v.RPCHeader), v.Term)
		b = binary.BigEndian.AppendUint64(b, v.LastLog)
		return appendFlag(appendFlag(b, v.Success), v.NoRetryBackoff), nil
	case *raft.RequestVoteResponse:
		b = binary.BigEndian.AppendUint64(appendRPCHeader(b, v.RPCHeader), v.Term)
		return appendFlag(b, v.Granted), nil
	case *raft.RequestPreVoteResponse:
		b = binary.BigEndian.AppendUint64(appendRPCHeader(b, v.RPCHeader), v.Term)
		return appendFlag(b, v.Granted), nil
	case *raft.InstallSnapshotResponse:
		b = binary.BigEndian.AppendUint64(appendRPCHeader(b, v.RPCHeader), v.Term)
		return appendFlag(b, v.Success), nil
	case *raft.TimeoutNowResponse:
		return appendRPCHeader(b, v.RPCHeader), nil
	}
	return nil, fmt.Errorf("no reply of Raft: %T", v)
}

// decodeReply is the inverse of encodeReply into v.
func decodeReply(b []byte, v any) error {
	r := &reader{b: b, where: "reply"}
	switch v := v.(type) {
	case *raft.AppendEntriesResponse:
		*v = raft.AppendEntriesResponse{RPCHeader: r.rpcHeader(), Term: r.u64("term"), LastLog: r.u64("last entry"), Success: r.flag("success"), NoRetryBackoff: r.flag("no backoff")}
	case *raft.RequestVoteResponse:
		*v = raft.RequestVoteResponse{RPCHeader: r.rpcHeader(), Term: r.u64("term"), Granted: r.flag("granted")}
	case *raft.RequestPreVoteResponse:
		*v = raft.RequestPreVoteResponse{RPCHeader: r.rpcHeader(), Term: r.u64("term"), Granted: r.flag("granted")}
	case *raft.InstallSnapshotResponse:
		*v = raft.InstallSnapshotResponse{RPCHeader: r.rpcHeader(), Term: r.u64("term"), Success: r.flag("success")}
	case *raft.TimeoutNowResponse:
		*v = raft.TimeoutNowResponse{RPCHeader: r.rpcHeader()}
	default:
		return fmt.Errorf("no reply of Raft: %T", v)
	}
	return r.end()
}
