package device

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/keep"
	"github.com/openinof/inof/lldp"
	"github.com/openinof/inof/snsd"
)

// The tables of a device; the assembly has its event log beside them. A row is what is true of its
// key now; nothing is replayed.
const (
	tableDevice    keep.Table = "device"    // single values, by name: see the keys below
	tablePort      keep.Table = "port"      // port name: KeptPort as JSON
	tableNeighbour keep.Table = "neighbour" // lldp.RowKey: in which of the port's lives it was heard, lldp.AppendRow
	tableHost      keep.Table = "host"      // of hostnotify
	tableSubject   keep.Table = "subject"   // of hostnotify
	tableTold      keep.Table = "told"      // of hostnotify
	tablePath      keep.Table = "path"      // device: since when the path to it fails
	tableReflector keep.Table = "reflector" // device: epoch of which records are held
	tableEarly     keep.Table = "early"     // address that asked and has not registered: KeptEarly as JSON
	tableKnown     keep.Table = "known"     // device that this reflector knows: nothing
	tableHalt      keep.Table = "halt"      // "local", "fabric" or a reflector: api.Halt or wire.Halt as JSON
	tableNotice    keep.Table = "notice"    // number: hostnotify.Notice as JSON; history for operators
)

var (
	keyEpoch    = []byte("epoch")
	keyHeldBack = []byte("held-back")
)

// toldTables are the tables of hostnotify's rows.
var toldTables = map[keep.Table]hostnotify.RowKind{tableHost: hostnotify.RowHost, tableSubject: hostnotify.RowSubject, tableTold: hostnotify.RowTold}

func toldTable(kind hostnotify.RowKind) keep.Table {
	switch kind {
	case hostnotify.RowHost:
		return tableHost
	case hostnotify.RowSubject:
		return tableSubject
	}
	return tableTold
}

// KeptPort is what is kept of a port.
type KeptPort struct {
	errdown.Saved
	// Index and Changes are those of its last event: if both are the same after a restart, on the
	// same boot, the port has not lost its carrier meanwhile.
	Index   int    `json:"index,omitempty"`
	Changes uint64 `json:"changes,omitempty"`
	// Losses counts how often it was seen to be down; a neighbour is confirmed if it was heard
	// after the last time. Lost is when that was.
	Losses uint32    `json:"losses,omitempty"`
	Lost   time.Time `json:"lost,omitzero"`
}

// KeptEarly is a host that asked for its zones and had not registered.
type KeptEarly struct {
	Addr    netip.Addr   `json:"-"`
	Port    string       `json:"port"`
	MAC     fabric.MAC   `json:"mac"`
	Service snsd.Service `json:"service"` // of the machine
}

// SavedPath is a path that fails.
type SavedPath struct {
	Device netip.Addr
	Since  time.Time
}

// State is what a device begins with: what the last process kept.
type State struct {
	Neighbours []lldp.Neighbour
	Told       hostnotify.Kept
	Early      []KeptEarly
	Ports      map[string]KeptPort
	Paths      []SavedPath
	Known      []netip.Addr
	// Reflectors are the epochs of the reflectors whose records were held.
	Reflectors map[netip.Addr]uint64
	Notices    map[uint64]hostnotify.Notice
	// Halts are what operators ordered here, and what reflectors said last.
	HaltLocal, HaltFabric api.Halt
	Halts                 []SavedHalt
	LastSync              LastSync
	Epoch                 uint64    // of the last process
	HeldBack              time.Time // until when hosts may be missing, because the device had started without all its rows
	// Incomplete is set when rows may be missing: of hosts that the device knew, and of what
	// it told them last.
	Incomplete bool
	// SameBoot: the machine was not started since, so its ports count on.
	SameBoot bool
}

// HoldBack is how long after a start without all rows a device may find out which hosts it has:
// the usual time to live of what they say (IEEE 802.1AB: 4 x 30 s).
const HoldBack = 120 * time.Second

var errRow = errors.New("it is sound, but not a row of its table")

// StateOf reads rows. Those that cannot be read are left out and given back.
func StateOf(f keep.Found) (st State, bad []keep.Problem) {
	st = State{Incomplete: !f.Whole, SameBoot: f.SameBoot, Ports: make(map[string]KeptPort), Reflectors: make(map[netip.Addr]uint64),
		Notices: make(map[uint64]hostnotify.Notice)}
	heard := make([]uint32, 0, 64)
	for i := range f.Rows {
		r := &f.Rows[i]
		if err := st.add(r, &heard); err != nil {
			bad = append(bad, keep.Problem{Where: fmt.Sprintf("row %.40q of table %q", r.Key, r.Table), Err: err,
				Lost: "what it said is not known", Do: "nothing, unless it happens again"})
			if lastTables[r.Table] == nil { // else a reflector says it again
				st.Incomplete = true
			}
		}
	}
	for i := range st.Neighbours {
		n := &st.Neighbours[i]
		p, known := st.Ports[n.Port]
		n.Confirmed = heard[i] != 0 && (!known || heard[i] == p.Losses+1)
	}
	return st, bad
}

func (st *State) add(r *keep.Row, heard *[]uint32) error {
	if kind, ok := toldTables[r.Table]; ok {
		return st.Told.Add(kind, r.Key, r.Value)
	}
	if add, ok := lastTables[r.Table]; ok {
		return add(&st.LastSync, r)
	}
	switch r.Table {
	case tableDevice:
		if len(r.Value) != 8 {
			return errRow
		}
		switch v := binary.BigEndian.Uint64(r.Value); {
		case bytes.Equal(r.Key, keyEpoch):
			st.Epoch = v
		case bytes.Equal(r.Key, keyHeldBack):
			st.HeldBack = time.Unix(0, int64(v))
		}
	case tablePort:
		var p KeptPort
		if err := json.Unmarshal(r.Value, &p); err != nil {
			return errors.Join(errRow, err)
		}
		p.Port = string(r.Key)
		st.Ports[p.Port] = p
	case tableNeighbour:
		if len(r.Value) < 4 {
			return errRow
		}
		n, err := lldp.ParseRow(r.Key, r.Value[4:])
		if err != nil {
			return err
		}
		st.Neighbours = append(st.Neighbours, n)
		*heard = append(*heard, binary.BigEndian.Uint32(r.Value))
	case tableEarly:
		var h KeptEarly
		err := json.Unmarshal(r.Value, &h)
		if h.Addr, _ = netip.AddrFromSlice(r.Key); err != nil || snsd.CheckAddr(h.Addr) != nil {
			return errors.Join(errRow, err)
		}
		st.Early = append(st.Early, h)
	case tableHalt:
		return st.addHalt(r.Key, r.Value)
	case tablePath, tableReflector, tableKnown:
		return st.addDevice(r)
	case tableNotice:
		var n hostnotify.Notice
		if err := json.Unmarshal(r.Value, &n); err != nil || len(r.Key) != 8 {
			return errRow
		}
		st.Notices[binary.BigEndian.Uint64(r.Key)] = n
	}
	return nil
}

// addDevice takes a row whose key is a device.
func (st *State) addDevice(r *keep.Row) error {
	dev, ok := netip.AddrFromSlice(r.Key)
	if !ok || r.Table != tableKnown && len(r.Value) != 8 {
		return errRow
	}
	switch r.Table {
	case tablePath:
		st.Paths = append(st.Paths, SavedPath{dev, time.Unix(0, int64(binary.BigEndian.Uint64(r.Value)))})
	case tableReflector:
		st.Reflectors[dev] = binary.BigEndian.Uint64(r.Value)
	case tableKnown:
		st.Known = append(st.Known, dev)
	}
	return nil
}

// Keys of the table of halts; a reflector's word has its address.
var (
	keyHaltLocal  = []byte("local")
	keyHaltFabric = []byte("fabric")
)

// addHalt takes a kept halt.
func (st *State) addHalt(key, value []byte) error {
	var err error
	switch {
	case bytes.Equal(key, keyHaltLocal):
		err = json.Unmarshal(value, &st.HaltLocal)
	case bytes.Equal(key, keyHaltFabric):
		err = json.Unmarshal(value, &st.HaltFabric)
	default:
		dev, ok := netip.AddrFromSlice(key)
		h := SavedHalt{Reflector: dev}
		if err = json.Unmarshal(value, &h.Halt); !ok || err != nil {
			return errRow
		}
		st.Halts = append(st.Halts, h)
	}
	if err != nil {
		return errRow
	}
	return nil
}

func number(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }
