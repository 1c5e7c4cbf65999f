package cluster

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode"
)

// ALPN names the protocol between members. Another version is another name.
const ALPN = "inof-cluster/3"

// What a connection is for.
const (
	doRaft      = "raft"      // messages of the library follow
	doStatus    = "status"    // how the member is
	doChange    = "change"    // an Entry for the leader follows
	doConfigure = "configure" // add, remove or replace a member, at the leader
)

// request is the first message of a connection, from the side that dials.
type request struct {
	Do      string     `json:"do"`
	From    MemberID   `json:"from"`
	To      MemberID   `json:"to"`                // incarnation 0: whichever it is
	Cluster uint64     `json:"cluster,omitempty"` // 0: none yet
	Members *configure `json:"members,omitempty"`
}

// answer answers a request, and a change once more when its outcome is known.
type answer struct {
	From    MemberID        `json:"from"`
	Cluster uint64          `json:"cluster,omitempty"`
	Fresh   bool            `json:"fresh,omitempty"` // without any state: may take part in a first start, or be added
	Error   string          `json:"error,omitempty"`
	Body    json.RawMessage `json:"body,omitempty"`
}

// Sizes of messages, in bytes.
const (
	maxMessage = 64 << 10             // a request, an answer
	maxRecord  = MaxEntry + (2 << 20) // an entry with what is around it
	maxBatch   = 1 << 20              // entries of one message of the library beyond the first
)

// writeMessage writes a length of 32 bits and the message.
func writeMessage(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeBytes(w, b)
}

func writeBytes(w io.Writer, b []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b))), b...))
	return err
}

// readMessage is the inverse of writeMessage.
func readMessage(in io.Reader, v any) error {
	b, err := readBytes(in, maxMessage)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return broken("message", "%v", err)
	}
	return nil
}

func readBytes(in io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if int64(n) > int64(limit) {
		return nil, broken("message", "%d bytes, at most %d", n, limit)
	}
	return readGrowing(in, int(n))
}

// readGrowing reads n bytes and allocates as they come: a length alone costs nothing.
func readGrowing(in io.Reader, n int) ([]byte, error) {
	const step = 64 << 10
	b := make([]byte, 0, min(n, step))
	for len(b) < n {
		at := len(b)
		b = slices.Grow(b, min(n-at, max(step, at)))
		b = b[:at+min(n-at, max(step, at))]
		if _, err := io.ReadFull(in, b[at:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// printable makes a peer's text fit for a line of a log.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
