package nvmetcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Transport is how a subsystem is reached (TRTYPE of a discovery log entry).
type Transport uint8

// The transports that exist; others are kept as numbers.
const (
	RDMA Transport = 1
	FC   Transport = 2
	TCP  Transport = 3
)

func (t Transport) String() string {
	switch t {
	case RDMA:
		return "rdma"
	case FC:
		return "fc"
	case TCP:
		return "tcp"
	}
	return strconv.Itoa(int(t))
}

// Kind is what an entry names (SUBTYPE).
type Kind uint8

// The kinds of entries.
const (
	Referral  Kind = 1 // another discovery controller
	Subsystem Kind = 2 // an NVM subsystem
	Itself    Kind = 3 // the discovery subsystem that was asked
)

// Entry is one record of the discovery log (NVMe-oF 5.4, 1,024 bytes).
type Entry struct {
	Transport Transport
	Kind      Kind
	PortID    uint16
	Flags     uint16     // EFLAGS
	NQN       string     // SUBNQN, 1..223 characters
	Addr      netip.Addr // TRADDR; not valid for transports without IP addresses
	Port      uint16     // TRSVCID; 0 if it is no number
}

// Flags of an entry.
const (
	FlagDuplicate = 1 // DUPRETINFO: another port of the subsystem returns the same
	FlagPersist   = 2 // EPCSD: explicit persistent connections are supported
	FlagNoConnect = 4 // NCC: no connectivity to this one at present
)

const (
	logDiscovery = 0x70
	logHeader    = 1024 // of the log; each entry has as much
	entryLen     = 1024
	maxNQN       = 223
)

var errText = errors.New("is no printable text")

// text reads a field that ends at its first NUL or is padded with spaces.
func text(b []byte) (string, error) {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	b = bytes.TrimRight(b, " ")
	for _, c := range b {
		if c < 0x20 || c > 0x7e {
			return "", errText
		}
	}
	return string(b), nil
}

// parseEntry reads one record of 1,024 bytes.
func parseEntry(b []byte) (Entry, error) {
	e := Entry{Transport: Transport(b[0]), Kind: Kind(b[2]), PortID: binary.LittleEndian.Uint16(b[4:]), Flags: binary.LittleEndian.Uint16(b[10:])}
	nqn, err := text(b[256:512])
	if err != nil || nqn == "" || len(nqn) > maxNQN {
		return e, fmt.Errorf("SUBNQN %q: want 1..%d printable characters", b[256:min(512, 256+40)], maxNQN)
	}
	e.NQN = nqn
	if e.Transport != TCP && e.Transport != RDMA {
		return e, nil
	}
	service, err := text(b[32:64])
	if err != nil {
		return e, fmt.Errorf("TRSVCID: %w", err)
	}
	if port, err := strconv.ParseUint(service, 10, 16); err == nil {
		e.Port = uint16(port)
	}
	addr, err := text(b[512:768])
	if err != nil {
		return e, fmt.Errorf("TRADDR: %w", err)
	}
	// A controller that listens on all its addresses says so; which one is meant follows from
	// the address that was asked.
	if e.Addr, err = netip.ParseAddr(strings.TrimSpace(addr)); err != nil {
		return e, fmt.Errorf("TRADDR %q: %w", addr, err)
	}
	return e, nil
}

// Log is a discovery log as it was at one moment.
type Log struct {
	Generation uint64 // GENCTR: it counts the changes
	Entries    []Entry
	Refused    int // records that could not be read
}

// MaxEntries is how many records of a log are read; a longer one is refused.
const MaxEntries = 4096

// parseLogHeader gives the generation and the number of records.
func parseLogHeader(b []byte) (generation uint64, records int, err error) {
	n := binary.LittleEndian.Uint64(b[8:])
	if f := binary.LittleEndian.Uint16(b[16:]); f != 0 {
		return 0, 0, fmt.Errorf("NVMe discovery log: record format %d, want 0", f)
	}
	if n > MaxEntries {
		return 0, 0, fmt.Errorf("NVMe discovery log: %d records, at most %d are read", n, MaxEntries)
	}
	return binary.LittleEndian.Uint64(b), int(n), nil
}

// Reader fills b from an offset of a log page on. With retain the event of the log stays as it is
// (RAE).
type Reader func(page uint8, offset uint64, b []byte, retain bool) error

// entriesAtOnce is how many records one command asks for.
const entriesAtOnce = 4

// ReadLog reads the discovery log of a controller, over whatever transport. It is read again when
// it changes meanwhile, at most ten times.
func ReadLog(read Reader) (*Log, error) {
	for range 10 {
		log, again, err := readLog(read)
		if err != nil {
			return nil, err
		}
		if !again {
			return log, nil
		}
	}
	return nil, errors.New("NVMe discovery log: it changed ten times while it was read")
}

func readLog(read Reader) (log *Log, again bool, err error) {
	head := make([]byte, logHeader)
	if err := read(logDiscovery, 0, head, true); err != nil {
		return nil, false, err
	}
	generation, n, err := parseLogHeader(head)
	if err != nil {
		return nil, false, err
	}
	log = &Log{Generation: generation}
	for at := 0; at < n; at += entriesAtOnce {
		b := make([]byte, min(entriesAtOnce, n-at)*entryLen)
		if err := read(logDiscovery, uint64(logHeader+at*entryLen), b, true); err != nil {
			return nil, false, err
		}
		for ; len(b) > 0; b = b[entryLen:] {
			e, err := parseEntry(b[:entryLen])
			if err != nil {
				log.Refused++
				continue
			}
			log.Entries = append(log.Entries, e)
		}
	}
	// The event of the log is armed again by this last look at its header.
	if err := read(logDiscovery, 0, head, false); err != nil {
		return nil, false, err
	}
	return log, binary.LittleEndian.Uint64(head) != generation, nil
}
