package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/hashicorp/raft"
)

// The methods of raft.Transport.
var (
	_ raft.Transport   = (*transport)(nil)
	_ raft.WithPreVote = (*transport)(nil)
	_ raft.WithClose   = (*transport)(nil)
)

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.consume }

// LocalAddr implements raft.Transport.
func (t *transport) LocalAddr() raft.ServerAddress {
	return raft.ServerAddress(t.cfg.Address.String())
}

// AppendEntriesPipeline implements raft.Transport: requests are answered one by one.
func (t *transport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// EncodePeer implements raft.Transport.
func (t *transport) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte { return []byte(addr) }

// DecodePeer implements raft.Transport.
func (t *transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler implements raft.Transport.
func (t *transport) SetHeartbeatHandler(cb func(raft.RPC)) {
	t.mu.Lock()
	t.heartbeat = cb
	t.mu.Unlock()
}

// AppendEntries implements raft.Transport. Entries that do not fit are left for the
// next request: the caller looks at the list again to see how far it has come.
func (t *transport) AppendEntries(id raft.ServerID, addr raft.ServerAddress, q *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	size := 0
	for i, l := range q.Entries {
		if size += len(l.Data) + 64; i > 0 && size > maxBatch {
			q.Entries = q.Entries[:i]
			break
		}
	}
	return t.rpc(id, addr, encodeAppend(q), resp)
}

// RequestVote implements raft.Transport.
func (t *transport) RequestVote(id raft.ServerID, addr raft.ServerAddress, q *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	return t.rpc(id, addr, encodeVote(q), resp)
}

// RequestPreVote implements raft.WithPreVote.
func (t *transport) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, q *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return t.rpc(id, addr, encodePreVote(q), resp)
}

// TimeoutNow implements raft.Transport.
func (t *transport) TimeoutNow(id raft.ServerID, addr raft.ServerAddress, q *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return t.rpc(id, addr, encodeTimeout(q), resp)
}

func (t *transport) rpc(id raft.ServerID, addr raft.ServerAddress, body []byte, resp any) error {
	target, at, err := peerOf(id, addr)
	if err != nil {
		return err
	}
	b, err := t.request(context.Background(), target, at, body)
	if err != nil {
		return err
	}
	return decodeReply(b, resp)
}

func peerOf(id raft.ServerID, addr raft.ServerAddress) (MemberID, netip.AddrPort, error) {
	target, err := ParseMemberID(string(id))
	if err != nil {
		return target, netip.AddrPort{}, err
	}
	at, err := netip.ParseAddrPort(string(addr))
	if err != nil {
		return target, at, fmt.Errorf("member %s: %w", id, err)
	}
	return target, at, nil
}

// InstallSnapshot implements raft.Transport.
func (t *transport) InstallSnapshot(id raft.ServerID, addr raft.ServerAddress, q *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	target, at, err := peerOf(id, addr)
	if err != nil {
		return err
	}
	c, err := t.connect(context.Background(), target, at)
	if err != nil {
		return err
	}
	defer t.drop(c)
	t.count(func(c *TransportCounters) { c.RequestsOut++ })
	if err := c.sendSnapshot(encodeInstall(q), data, t.cfg.Timeout); err != nil {
		return fmt.Errorf("snapshot for %s: %w", target.Device, err)
	}
	// It is written and restored before the answer comes.
	_ = c.nc.SetDeadline(time.Now().Add(t.cfg.Timeout + 10*time.Second + time.Duration(q.Size)*time.Second/bytesPerSecond))
	b, err := c.answer()
	if err != nil {
		return err
	}
	return decodeReply(b, resp)
}

func (c *conn) sendSnapshot(head []byte, data io.Reader, timeout time.Duration) error {
	_ = c.nc.SetDeadline(time.Now().Add(timeout))
	if err := c.write(recordRequest, head); err != nil {
		return err
	}
	buf := make([]byte, maxChunk)
	for {
		n, err := io.ReadFull(data, buf)
		if n > 0 {
			_ = c.nc.SetDeadline(time.Now().Add(timeout + time.Second))
			if err := c.write(recordChunk, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}
