package nvmetcp

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// DiscoveryNQN is the well-known name of every discovery subsystem (NVMe base 5.1.2).
const DiscoveryNQN = "nqn.2014-08.org.nvmexpress.discovery"

// DiscoveryPort is where a discovery controller listens for TCP.
const DiscoveryPort = 8009

// Host is who we are to a controller.
type Host struct {
	NQN string   // 1..223 characters
	ID  [16]byte // host identifier
}

// Options are how a controller is opened. The zero value is a discovery controller by its
// well-known name without digests.
type Options struct {
	Subsystem    string        // NQN, default DiscoveryNQN
	KeepAlive    time.Duration // after how long without a command the controller gives up; 0 = never
	HeaderDigest bool
	DataDigest   bool
}

// Conn is the admin queue of one controller. It is for one goroutine.
type Conn struct {
	conn    net.Conn
	in      *bufio.Reader
	buf     []byte
	digests digests
	align   int
	next    uint16
	host    Host
	ID      uint16 // controller identifier, from Connect
	enabled bool
}

// Open begins an NVMe/TCP connection on conn and connects to a controller's admin queue. conn is
// closed if that fails. ctx bounds the opening alone.
func Open(ctx context.Context, conn net.Conn, h Host, o Options) (*Conn, error) {
	if o.Subsystem == "" {
		o.Subsystem = DiscoveryNQN
	}
	if len(h.NQN) == 0 || len(h.NQN) > maxNQN || len(o.Subsystem) > maxNQN {
		conn.Close()
		return nil, fmt.Errorf("nvme/tcp: host NQN %q, subsystem %q: want 1..%d characters", h.NQN, o.Subsystem, maxNQN)
	}
	c := &Conn{conn: conn, in: bufio.NewReader(conn), digests: digests{o.HeaderDigest, o.DataDigest}, align: 4, host: h}
	if err := c.within(ctx, func() error { return c.open(o) }); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) open(o Options) error {
	if err := c.send(icReq(c.digests)); err != nil {
		return err
	}
	p, err := c.receive()
	if err != nil {
		return err
	}
	if c.align, err = icResp(&p, c.digests); err != nil {
		return err
	}
	done, _, err := c.do(connect(c.host, o.Subsystem, uint32(o.KeepAlive.Milliseconds())))
	if err != nil {
		return err
	}
	if done.result>>17&3 != 0 {
		return errors.New("nvme/tcp: the controller wants authentication, which is not supported")
	}
	c.ID = uint16(done.result)
	return c.enable()
}

// ccEnable is the controller configuration that Linux sets: entries of 64 and 16 bytes, enabled.
const ccEnable = 0x460001

// enable starts the controller and waits until it is ready, as long as it says it may take
// (CAP.TO, in units of 500 ms).
func (c *Conn) enable() error {
	caps, _, err := c.do(propertyGet(propCAP, true))
	if err != nil {
		return err
	}
	if _, _, err := c.do(propertySet(propCC, ccEnable)); err != nil {
		return err
	}
	c.enabled = true
	last := time.Now().Add(max(1, time.Duration(caps.result>>24&0xff)) * 500 * time.Millisecond)
	for {
		status, _, err := c.do(propertyGet(propCSTS, false))
		switch {
		case err != nil:
			return err
		case status.result&2 != 0:
			return errors.New("nvme/tcp: the controller has a fatal error (CSTS.CFS)")
		case status.result&1 != 0:
			return nil
		case time.Now().After(last):
			return errors.New("nvme/tcp: the controller does not become ready (CSTS.RDY)")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Close shuts the controller down in order, if it answers at once, and ends the connection.
func (c *Conn) Close() error {
	if c.enabled {
		_ = c.conn.SetDeadline(time.Now().Add(time.Second))
		_, _, _ = c.do(propertySet(propCC, ccEnable|1<<14)) // CC.SHN: normal shutdown
	}
	return c.conn.Close()
}

// KeepAlive tells the controller that we are there.
func (c *Conn) KeepAlive(ctx context.Context) error {
	return c.within(ctx, func() error {
		_, _, err := c.do(keepAlive())
		return err
	})
}

// Log reads the discovery log.
func (c *Conn) Log(ctx context.Context) (log *Log, err error) {
	err = c.within(ctx, func() error {
		log, err = ReadLog(func(page uint8, offset uint64, b []byte, retain bool) error {
			_, data, err := c.do(getLog(page, offset, len(b), retain))
			copy(b, data)
			return err
		})
		return err
	})
	return log, err
}

// within runs f until ctx ends, which breaks off what waits for the connection.
func (c *Conn) within(ctx context.Context, f func() error) error {
	if err := c.conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := f()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

func (c *Conn) send(p *pdu) error {
	c.buf = p.encode(c.buf[:0], c.digests, c.align)
	_, err := c.conn.Write(c.buf)
	return err
}

// receive reads one PDU. What it gives is valid until the next call.
func (c *Conn) receive() (pdu, error) {
	head, err := c.in.Peek(commonLen)
	if err != nil {
		return pdu{}, fmt.Errorf("nvme/tcp: %w", noEOF(err))
	}
	n, err := pduSize(head)
	if err != nil {
		return pdu{}, err
	}
	if cap(c.buf) < n {
		c.buf = make([]byte, n)
	}
	if _, err := io.ReadFull(c.in, c.buf[:n]); err != nil {
		return pdu{}, fmt.Errorf("nvme/tcp: %w", noEOF(err))
	}
	p, err := decode(c.buf[:n], c.digests)
	if err == nil && p.kind == pduC2HTerm {
		return p, termError(&p)
	}
	return p, err
}

// noEOF calls an end in the middle of something what it is.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// do sends a command and takes its answer: the completion and the data it brought.
func (c *Conn) do(cmd *command) (completion, []byte, error) {
	c.next++
	id := c.next
	if err := c.send(cmd.capsule(id)); err != nil {
		return completion{}, nil, err
	}
	var data []byte
	for {
		p, err := c.receive()
		if err != nil {
			return completion{}, nil, fmt.Errorf("%s: %w", cmd.name, err)
		}
		switch p.kind {
		case pduC2HData:
			if data, err = takeData(&p, id, cmd.want, data); err != nil {
				return completion{}, nil, fmt.Errorf("%s: %w", cmd.name, err)
			}
			if p.flags&flagSuccess != 0 {
				return completion{id: id}, data, complete(&p, cmd, data)
			}
		case pduCapsuleResp:
			done := parseCompletion(&p)
			if done.id != id {
				return done, nil, broken(p.kind, "CID", done.id, fmt.Sprint(id))
			}
			if err := done.err(cmd); err != nil {
				return done, nil, err
			}
			return done, data, complete(&p, cmd, data)
		default:
			return completion{}, nil, broken(p.kind, "type", uint8(p.kind), "data or a response")
		}
	}
}

// takeData appends the data of a C2HData PDU to what came before.
func takeData(p *pdu, id uint16, want int, have []byte) ([]byte, error) {
	cid, offset, n := binary.LittleEndian.Uint16(p.header[8:]), binary.LittleEndian.Uint32(p.header[12:]), binary.LittleEndian.Uint32(p.header[16:])
	switch {
	case cid != id:
		return nil, broken(p.kind, "CCCID", cid, fmt.Sprint(id))
	case int64(offset) != int64(len(have)):
		return nil, broken(p.kind, "DATAO", offset, fmt.Sprint(len(have)))
	case int64(n) != int64(len(p.data)) || n == 0:
		return nil, broken(p.kind, "DATAL", n, fmt.Sprintf("%d, above 0", len(p.data)))
	case len(have)+len(p.data) > want:
		return nil, broken(p.kind, "DATAL", n, fmt.Sprintf("at most %d more bytes", want-len(have)))
	}
	if have == nil {
		have = make([]byte, 0, want)
	}
	return append(have, p.data...), nil
}

// complete checks that a command that succeeded brought all its data.
func complete(p *pdu, cmd *command, data []byte) error {
	if len(data) != cmd.want {
		return fmt.Errorf("%s: %w", cmd.name, broken(p.kind, "data", len(data), fmt.Sprintf("%d bytes", cmd.want)))
	}
	return nil
}
