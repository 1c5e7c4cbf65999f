package device

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/store"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

// This file keeps what the reflectors said last, so that a device that starts while none of them
// answers can decide by it. Rows are noted where a change passes and encoded behind the frames
// that it led to, a bounded number at a time.

// LastSync is what the reflectors said before the start.
type LastSync struct {
	At time.Time // when the device was in step with a reflector last; zero: nothing is known
	client.LastSync
	Paths []KeptPath
}

// KeptPath is what is kept of the path to a device.
type KeptPath struct {
	Device netip.Addr                 `json:"-"`
	Up     bool                       `json:"up,omitempty"`   // BFD reported it as working
	Keys   map[netip.Addr]bfd.AuthKey `json:"keys,omitempty"` // by reflector; secret
}

// lastTables are the tables of the store: how a row is read back.
var lastTables = map[store.Table]func(*LastSync, *store.Row) error{
	tableSync:     (*LastSync).addSync,
	tableZone:     func(l *LastSync, r *store.Row) error { return addZone(&l.Zones, r) },
	tableReserved: func(l *LastSync, r *store.Row) error { return addZone(&l.Reserved, r) },
	tableRemote:   (*LastSync).addRemote,
	tablePathKey:  (*LastSync).addPath,
}

const (
	tableSync     store.Table = "sync"     // single values, by name: see the keys below
	tableZone     store.Table = "zone"     // name of a zone in force: its members as JSON
	tableReserved store.Table = "reserved" // the same of members that are not in force
	tableRemote   store.Table = "remote"   // zone.HostKey: remoteHost as JSON
	tablePathKey  store.Table = "path-key" // device: KeptPath as JSON
)

const (
	keySyncAt   = "at"
	keySettings = "settings"
)

// remoteHost is a remote host with its claim. Whether its port was down is left out: a row may be
// of a moment before the last notice, and would take back what that said.
type remoteHost struct {
	zone.Host
	Claim zone.Claim `json:"claim,omitempty"`
}

func (l *LastSync) addSync(r *store.Row) error {
	switch string(r.Key) {
	case keySyncAt:
		if len(r.Value) != 8 {
			return errRow
		}
		l.At = time.Unix(0, int64(binary.BigEndian.Uint64(r.Value)))
	case keySettings:
		var s wire.Settings
		if err := json.Unmarshal(r.Value, &s); err != nil {
			return err
		}
		l.Settings = &s
	}
	return nil
}

func addZone(to *[]zone.Zone, r *store.Row) error {
	z := zone.Zone{Name: string(r.Key)}
	if err := errors.Join(zone.CheckName(z.Name), json.Unmarshal(r.Value, &z.Members)); err != nil {
		return err
	}
	*to = append(*to, z)
	return nil
}

func (l *LastSync) addRemote(r *store.Row) error {
	var h remoteHost
	if err := json.Unmarshal(r.Value, &h); err != nil {
		return err
	}
	if snsd.CheckAddr(h.Addr) != nil || !h.Device.IsValid() || string(remoteKey(h.HostKey)) != string(r.Key) {
		return errRow
	}
	h.Host.Claim = h.Claim
	l.Hosts = append(l.Hosts, h.Host)
	return nil
}

func (l *LastSync) addPath(r *store.Row) error {
	var p KeptPath
	if err := json.Unmarshal(r.Value, &p); err != nil {
		return err
	}
	var ok bool
	if p.Device, ok = netip.AddrFromSlice(r.Key); !ok {
		return errRow
	}
	for _, k := range p.Keys {
		if len(k.Secret) == 0 || len(k.Secret) > wire.PathSecretLen {
			return errRow
		}
	}
	l.Paths = append(l.Paths, p)
	return nil
}

func remoteKey(k zone.HostKey) []byte {
	return []byte(strings.Join([]string{k.Addr.String(), k.Device.String(), k.Port}, " "))
}

// saving is the part of a Core that knows which rows of the store have changed.
type saving struct {
	to    store.Sink // nil: nothing is kept
	queue []savedRow // in their order
	in    map[savedRow]bool
	zones map[savedRow]*zone.Zone // as they are now; nil: gone
	due   time.Time               // when more of the queue is encoded; zero: it is empty
	at    time.Time               // as kept last
	since time.Time               // LastSync.At of before the start, until the device is in step again
}

// savedRow names a row.
type savedRow struct {
	table store.Table
	name  string
	host  zone.HostKey
	dev   netip.Addr
}

const (
	savedRows  = 128 // that are encoded at once, 2 µs each
	savedPause = 5 * time.Millisecond
	syncedAge  = 30 * time.Second // how much older than true the time of the last sync may be
)

func (c *Core) saves() bool { return c.saving.to != nil && !c.restoring }

// save notes that a row has changed.
func (s *saving) save(r savedRow) {
	if !s.in[r] {
		s.in[r] = true
		s.queue = append(s.queue, r)
	}
}

// saveApplied notes what a reflector's word has changed.
func (c *Core) saveApplied(a *client.Applied) {
	if !c.saves() {
		return
	}
	s := &c.saving
	if a.Settings != nil {
		s.save(savedRow{table: tableSync, name: keySettings})
	}
	zones := func(t store.Table, list []wire.ZoneRecord) {
		for i := range list {
			r := savedRow{table: t, name: list[i].Zone.Name}
			if s.zones[r] = nil; list[i].Op == wire.Put {
				s.zones[r] = &list[i].Zone
			}
			s.save(r)
		}
	}
	zones(tableZone, a.Zones)
	zones(tableReserved, a.Reserved)
	host := func(k zone.HostKey) { s.save(savedRow{table: tableRemote, host: k}) }
	for i := range a.Hosts {
		host(a.Hosts[i].Host.HostKey)
	}
	for i := range a.Claims {
		host(a.Claims[i].HostKey)
	}
	if a.Synced {
		s.save(savedRow{table: tableSync, name: keySyncAt})
	}
}

// savePath notes that the row of a path has changed.
func (c *Core) savePath(dev netip.Addr) {
	if c.saves() {
		c.saving.save(savedRow{table: tablePathKey, dev: dev})
	}
}

// saveRows encodes what has changed, a part of it when that is much.
func (c *Core) saveRows(now time.Time) {
	s := &c.saving
	if !c.saves() {
		return
	}
	if now.Sub(s.at) >= syncedAge && c.inStep() {
		s.save(savedRow{table: tableSync, name: keySyncAt})
	}
	if len(s.queue) == 0 || now.Before(s.due) {
		return
	}
	n := min(savedRows, len(s.queue))
	for _, r := range s.queue[:n] {
		delete(s.in, r)
		c.saveRow(r, now)
	}
	s.queue = slices.Delete(s.queue, 0, n)
	if s.due = (time.Time{}); len(s.queue) > 0 {
		s.due = now.Add(savedPause)
	}
	s.to.Flush()
}

// SaveAll encodes all that has changed, at the end of the process.
func (c *Core) SaveAll(now time.Time) {
	for c.saves() && len(c.saving.queue) > 0 {
		c.saving.due = time.Time{}
		c.saveRows(now)
	}
}

// inStep reports whether a reflector that has completed its sync has a session.
func (c *Core) inStep() bool { return c.client != nil && c.client.Synced() && c.client.Connected() }

func (c *Core) saveRow(r savedRow, now time.Time) {
	var is any
	key := []byte(r.name)
	switch r.table {
	case tableSync:
		if r.name == keySyncAt {
			c.saving.at = now
			c.saving.to.Put(r.table, key, number(uint64(now.UnixNano())))
			return
		}
		if settings := c.client.Settings(); settings != nil {
			is = settings
		}
	case tableZone, tableReserved:
		if z := c.saving.zones[r]; z != nil {
			is = z.Members
		}
		delete(c.saving.zones, r)
	case tableRemote:
		key = remoteKey(r.host)
		if h, known := c.client.Host(r.host); known {
			is = remoteHost{h, h.Claim}
		}
	case tablePathKey:
		key = r.dev.AsSlice()
		if p := (KeptPath{Up: c.mesh.up[r.dev], Keys: c.mesh.handout.keys[r.dev]}); p.Up || len(p.Keys) > 0 {
			is = p
		}
	}
	if is == nil {
		c.saving.to.Delete(r.table, key)
	} else if b, err := json.Marshal(is); err == nil { // nothing in it can fail
		c.saving.to.Put(r.table, key, b)
	}
}

// LastSync is when the device was in step with a reflector last, where it decides by what was known
// then; nil: it has heard its reflectors since the start, or knows nothing of before.
func (c *Core) LastSync() *time.Time {
	if c.client == nil || !c.client.Recalling() {
		return nil
	}
	return stamp(c.saving.since)
}
