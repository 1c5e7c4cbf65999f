package nvmetcp

import (
	"encoding/binary"
	"fmt"
)

// Opcodes of admin commands, and types of fabrics commands.
const (
	opGetLogPage = 0x02
	opKeepAlive  = 0x18
	opFabrics    = 0x7f

	fabricsPropertySet = 0x00
	fabricsConnect     = 0x01
	fabricsPropertyGet = 0x04
)

// Properties of a controller (NVMe base 3.1.4).
const (
	propCAP  = 0x00
	propCC   = 0x14
	propCSTS = 0x1c
)

// command is a submission queue entry of 64 bytes. Its identifier is set when it is sent.
type command struct {
	name string
	sqe  [64]byte
	data []byte // sent in the capsule
	want int    // bytes of data that the answer brings
}

// SGL descriptor types: an offset into the capsule, and data that the transport moves.
const (
	sglInCapsule = 0x01
	sglTransport = 0x5a
)

func newCommand(name string, opcode byte) *command {
	c := &command{name: name}
	c.sqe[0], c.sqe[1] = opcode, 0x40 // PSDT: SGLs
	c.sqe[39] = sglTransport
	return c
}

func (c *command) dword(n int, v uint32) *command {
	binary.LittleEndian.PutUint32(c.sqe[4*n:], v)
	return c
}

// sends gives the command data in its capsule.
func (c *command) sends(data []byte) *command {
	c.data = data
	binary.LittleEndian.PutUint32(c.sqe[32:], uint32(len(data)))
	c.sqe[39] = sglInCapsule
	return c
}

// wants has the answer bring n bytes.
func (c *command) wants(n int) *command {
	c.want = n
	binary.LittleEndian.PutUint32(c.sqe[32:], uint32(n))
	c.sqe[39] = sglTransport
	return c
}

// capsule gives the PDU of the command under an identifier.
func (c *command) capsule(id uint16) *pdu {
	p := &pdu{kind: pduCapsuleCmd, header: make([]byte, 72), data: c.data}
	copy(p.header[commonLen:], c.sqe[:])
	binary.LittleEndian.PutUint16(p.header[commonLen+2:], id)
	return p
}

func fabricsCommand(name string, kind byte) *command {
	c := newCommand(name, opFabrics)
	c.sqe[4] = kind
	return c
}

// queueSize is the admin queue's, 0's based, as Linux has it.
const queueSize = 31

// connect opens the admin queue (NVMe-oF 3.3). kato is the keep-alive time-out in ms, 0 for none.
func connect(h Host, subsystem string, kato uint32) *command {
	data := make([]byte, 1024)
	copy(data, h.ID[:])
	binary.LittleEndian.PutUint16(data[16:], 0xffff) // any controller
	copy(data[256:512], subsystem)
	copy(data[512:768], h.NQN)
	c := fabricsCommand("Connect", fabricsConnect).dword(11, queueSize).dword(12, kato)
	return c.sends(data)
}

func propertyGet(offset uint32, eight bool) *command {
	c := fabricsCommand("Property Get", fabricsPropertyGet).dword(11, offset)
	if eight {
		c.sqe[40] = 1
	}
	return c
}

func propertySet(offset uint32, value uint64) *command {
	c := fabricsCommand("Property Set", fabricsPropertySet).dword(11, offset)
	binary.LittleEndian.PutUint64(c.sqe[48:], value)
	return c
}

func keepAlive() *command { return newCommand("Keep Alive", opKeepAlive) }

// getLog reads n bytes of a log page, a multiple of 4, from an offset on. With retain the log's
// event stays as it is (RAE).
func getLog(page uint8, offset uint64, n int, retain bool) *command {
	dwords := uint32(n/4 - 1)
	cdw10 := uint32(page) | dwords<<16
	if retain {
		cdw10 |= 1 << 15
	}
	c := newCommand("Get Log Page", opGetLogPage).dword(10, cdw10).dword(11, dwords>>16)
	return c.dword(12, uint32(offset)).dword(13, uint32(offset>>32)).wants(n)
}

// completion is a completion queue entry.
type completion struct {
	result uint64 // DW0 and DW1
	id     uint16
	status uint16 // DNR, SCT, SC
}

func parseCompletion(p *pdu) completion {
	e := p.header[commonLen:]
	return completion{result: binary.LittleEndian.Uint64(e), id: binary.LittleEndian.Uint16(e[12:]), status: binary.LittleEndian.Uint16(e[14:]) >> 1}
}

// StatusError is a command that the controller refused.
type StatusError struct {
	Command  string
	Type     uint8 // SCT: 0 generic, 1 command specific
	Code     uint8 // SC
	NoRetry  bool  // DNR
	Result   uint32
	Addition string
}

// connectReasons are the command specific codes of Connect (NVMe-oF 3.3.1).
var connectReasons = map[uint8]string{0x80: "incompatible format", 0x81: "controller busy", 0x82: "invalid parameters", 0x83: "restart discovery", 0x84: "host not allowed", 0x91: "authentication required"}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("nvme/tcp: %s refused with status type %d code %#02x", e.Command, e.Type, e.Code)
	if why := connectReasons[e.Code]; e.Type == 1 && e.Command == "Connect" && why != "" {
		text += ": " + why
		if e.Code == 0x82 {
			text += fmt.Sprintf(" at offset %d of the %s", e.Result&0xffff, map[bool]string{false: "command", true: "data"}[e.Result>>16&1 == 1])
		}
	}
	return text
}

// err gives the refusal of a command, nil if it succeeded.
func (c completion) err(of *command) error {
	if c.status == 0 {
		return nil
	}
	return &StatusError{Command: of.name, Type: uint8(c.status >> 8 & 7), Code: uint8(c.status), NoRetry: c.status>>14&1 == 1, Result: uint32(c.result)}
}
