package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostagent/fencing"
	"github.com/openinof/inof/hostkernel"
)

// Two scripted NVMe/TCP controllers, at ports 4451 and 4452 of the loopback. They are discovery
// controllers, to which the kernel opens an admin queue and nothing else.
const (
	discoveryNQN = "nqn.2014-08.org.nvmexpress.discovery"
	firstPort    = 4451
	resetTakes   = 400 * time.Millisecond
)

// Numbers of NVMe/TCP 1.1 (3.6.2), NVMe-oF and NVMe Base 2.3.
const (
	pduICReq, pduICResp, pduCommand, pduResponse, pduC2HData = 0, 1, 4, 5, 7
	lastData                                                 = 4

	opGetLog, opIdentify, opSetFeatures, opEvent, opKeepAlive, opReset, opFabrics = 0x02, 0x06, 0x09, 0x0c, 0x18, 0x38, 0x7f
	propertySet, connect, propertyGet                                             = 0x00, 0x01, 0x04

	invalidOpcode, invalidField = 0x4001, 0x4002 // do not retry
)

// scripted is one controller.
type scripted struct {
	id      uint16
	ciu     uint8
	cirn    uint64
	enabled bool
}

// subsystem has the state that its controllers share.
type subsystem struct {
	mu          sync.Mutex
	controllers [2]scripted
	impacted    uint32 // CDW10 of the reset that runs
	ends        time.Time
}

func serveControllers() error {
	s := &subsystem{controllers: [2]scripted{{id: 7, ciu: 3, cirn: 0x1122334455667788}, {id: 52, ciu: 4, cirn: 0x99aabbccddeeff00}}}
	failed := make(chan error)
	for i := range s.controllers {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+i))
		if err != nil {
			return err
		}
		go func() {
			for {
				conn, err := ln.Accept()
				if err != nil {
					failed <- err
					return
				}
				go func() {
					defer conn.Close()
					_ = s.serve(conn, &s.controllers[i])
				}()
			}
		}()
	}
	return <-failed
}

func (s *subsystem) serve(conn io.ReadWriter, c *scripted) error {
	for {
		var common [8]byte
		if _, err := io.ReadFull(conn, common[:]); err != nil {
			return err
		}
		rest := make([]byte, min(binary.LittleEndian.Uint32(common[4:]), 1<<16)-8)
		if _, err := io.ReadFull(conn, rest); err != nil {
			return err
		}
		switch common[0] {
		case pduICReq:
			answer := header(pduICResp, 128, 128)
			binary.LittleEndian.PutUint32(answer[12:], 1<<16) // MAXH2CDATA
			if _, err := conn.Write(answer); err != nil {
				return err
			}
		case pduCommand:
			if rest[0] == opEvent {
				continue // answered when there is an event, which never is
			}
			data, result, status := s.command(c, rest[:64])
			if _, err := conn.Write(answerTo(rest[2:4], data, result, status)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("PDU type %d", common[0])
		}
	}
}

func header(kind, length byte, size int) []byte {
	b := make([]byte, length, size)
	b[0], b[2] = kind, length
	binary.LittleEndian.PutUint32(b[4:], uint32(size))
	return b
}

// answerTo makes the PDUs of an answer: data, then the completion.
func answerTo(id, data []byte, result uint64, status uint16) (b []byte) {
	if len(data) > 0 {
		h := header(pduC2HData, 24, 24+len(data))
		h[1], h[3] = lastData, 24
		copy(h[8:], id)
		binary.LittleEndian.PutUint32(h[16:], uint32(len(data)))
		b = append(h, data...)
	}
	h := header(pduResponse, 24, 24)
	binary.LittleEndian.PutUint64(h[8:], result)
	copy(h[20:], id)
	binary.LittleEndian.PutUint16(h[22:], status<<1)
	return append(b, h...)
}

// command does one command of 64 bytes.
func (s *subsystem) command(c *scripted, sqe []byte) (data []byte, result uint64, status uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dword := func(n int) uint32 { return binary.LittleEndian.Uint32(sqe[4*n:]) }
	switch sqe[0] {
	case opFabrics:
		return nil, c.fabrics(sqe), 0
	case opKeepAlive, opSetFeatures:
		return nil, 0, 0
	case opIdentify:
		if sqe[40] != 1 {
			return nil, 0, invalidField
		}
		return c.identify(), 0, 0
	case opReset:
		say("controller %d: opcode 38 CDW10 %x CDW12 %x CDW13 %x", c.id, dword(10), dword(12), dword(13))
		for _, o := range s.controllers {
			if o.id != c.id && dword(10) == uint32(o.id)|uint32(o.ciu)<<16 && uint64(dword(13))<<32|uint64(dword(12)) == o.cirn {
				s.impacted, s.ends = dword(10), time.Now().Add(resetTakes)
				return nil, 0, 0
			}
		}
		return nil, 0, invalidField
	case opGetLog:
		n := 4 * (int(dword(10)>>16) + 1)
		if dword(10)&0xff != 0x1e || n > 1<<15 {
			return nil, 0, 0x4109 // invalid log page
		}
		log := make([]byte, n)
		log[0] = 1
		binary.LittleEndian.PutUint32(log[8:], s.impacted)
		binary.LittleEndian.PutUint16(log[12:], c.id)
		if time.Now().After(s.ends) {
			log[14] = 1
			say("controller %d: the log says that the reset is done", c.id)
		}
		return log, 0, 0
	}
	return nil, 0, invalidOpcode
}

// fabrics connects, and keeps the properties CAP, VS, CC and CSTS.
func (c *scripted) fabrics(sqe []byte) uint64 {
	switch offset := sqe[44]; sqe[4] {
	case connect:
		return uint64(c.id)
	case propertySet:
		c.enabled = offset == 0x14 && sqe[48]&1 == 1
	case propertyGet:
		switch offset {
		case 0x00:
			return 1<<37 | 20<<24 | 1<<16 | 127
		case 0x08:
			return 0x20100
		case 0x14, 0x1c:
			if c.enabled {
				return 1
			}
		}
	}
	return 0
}

func (c *scripted) identify() []byte {
	b := make([]byte, 4096)
	copy(b[4:72], fmt.Sprintf("%-68s", "scripted")) // SN, MN, FR
	binary.LittleEndian.PutUint16(b[78:], c.id)
	binary.LittleEndian.PutUint32(b[80:], 0x20100)
	b[111] = 2 // CNTRLTYPE: discovery
	b[135] = c.ciu
	binary.LittleEndian.PutUint64(b[136:], c.cirn)
	binary.LittleEndian.PutUint16(b[320:], 10) // KAS
	b[512], b[513] = 0x66, 0x44                // SQES, CQES
	binary.LittleEndian.PutUint16(b[514:], 128)
	b[536] = 1 // SGLS
	copy(b[768:1024], discoveryNQN)
	binary.LittleEndian.PutUint32(b[1792:], 4) // IOCCSZ
	binary.LittleEndian.PutUint32(b[1796:], 1) // IORCSZ
	b[1807] = 1                                // CCRL
	return b
}

// asIO shows the scripted controllers as if they were for I/O: those alone are fenced.
type asIO struct{ hostkernel.Tree }

func (a asIO) Controllers() ([]hostkernel.Controller, error) {
	cs, err := a.Tree.Controllers()
	for i := range cs {
		cs[i].Discovery = !strings.Contains(cs[i].Target.String(), "127.0.0.1")
	}
	return cs, err
}

// reset has the second scripted controller reset the first, by the kernel's passthrough.
func reset() error {
	r := fencing.NewReset(asIO{})
	r.Learn()
	cs, err := asIO{}.Controllers()
	if err != nil {
		return err
	}
	var p hostagent.FencePair
	for _, c := range cs {
		switch c.Target.Port() {
		case firstPort:
			p.Controllers = append(p.Controllers, c)
		case firstPort + 1:
			p.Living = append(p.Living, c)
		}
	}
	say("asked")
	f, err := r.Fence(context.Background(), p, func() {})
	say("answered %v by %v in %v: %v", f.Level, f.Way, f.Took.Round(time.Millisecond), err)
	return err
}
