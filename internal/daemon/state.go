package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/openinof/inof/errdown"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/hostnotify"
	"github.com/openinof/inof/lldp"
)

// stateVersion is the format of the state file.
const stateVersion = 1

// stateName is the state file's name in the state directory.
const stateName = "state.json"

// maxStateFile bounds what is read back, in bytes.
const maxStateFile = 1 << 30

// State is what a device keeps over a restart, so that a restart causes no notice:
// the hosts it learned, what it told its local hosts, and which devices its
// reflector knew. It is written behind and never in the way of a fault.
type State struct {
	Version    int                  `json:"version"`
	Device     netip.Addr           `json:"device"`
	Saved      time.Time            `json:"saved"`
	Neighbours []lldp.Neighbour     `json:"neighbours,omitempty"`
	Told       *hostnotify.Snapshot `json:"told,omitempty"`
	Ports      []errdown.Saved      `json:"ports,omitempty"`
	Known      []netip.Addr         `json:"known_devices,omitempty"`
	Paths      []SavedPath          `json:"paths,omitempty"`
	// Reflectors are the epochs of the reflectors whose records were held.
	Reflectors map[netip.Addr]uint64 `json:"reflectors,omitempty"`
	// Journal is the number of the journal that holds what came after.
	Journal uint64 `json:"journal,omitempty"`
	// Clean says that the process stopped when it was told to: nothing came after. Without
	// it what was told last, a moment before the process was killed, may be missing.
	Clean bool `json:"clean,omitempty"`
	// HeldBack is until when hosts may be missing in it, because the device had started
	// without its state; zero: none is.
	HeldBack time.Time `json:"held_back,omitzero"`
	// Incomplete is set when hosts that the device knew may be missing.
	Incomplete bool `json:"-"`
}

// holdBack is how long after a start without its whole state a device may find out
// which hosts it has: the usual time to live of what they say (IEEE 802.1AB: 4 x 30 s).
const holdBack = 120 * time.Second

// LoadState reads the state file of a directory and the journals since, and gives the
// number of the next journal. A file that is not there is an empty state. One that
// cannot be used is renamed to *.bad and told in the error, together with a usable
// empty state; what is missing of a journal is told too.
func LoadState(dir string, self netip.Addr) (st State, next uint64, err error) {
	st, err = loadState(dir, self)
	next, missing := st.replay(dir)
	switch {
	case st.Incomplete:
	case missing != nil:
		st.Incomplete = true
		err = fmt.Errorf("what came after the state of %v is not known: %w", st.Saved, missing)
	}
	return st, next, err
}

func loadState(dir string, self netip.Addr) (State, error) {
	removeHalfWritten(dir)
	empty := State{Version: stateVersion, Device: self, Incomplete: true}
	path := filepath.Join(dir, stateName)
	st, err := readState(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return empty, nil
	case err == nil && st.Version != stateVersion:
		err = fmt.Errorf("version %d is not %d", st.Version, stateVersion)
	case err == nil && st.Device != self:
		err = fmt.Errorf("it belongs to device %s", st.Device)
	}
	if err == nil {
		return st, nil
	}
	err = fmt.Errorf("state file %s is not used: %w", path, err)
	if e := os.Rename(path, path+".bad"); e != nil {
		err = errors.Join(err, e)
	}
	return empty, err
}

// removeHalfWritten removes what a process that was killed within SaveState left behind.
func removeHalfWritten(dir string) {
	names, _ := filepath.Glob(filepath.Join(dir, stateName+".[0-9]*"))
	for _, name := range names {
		_ = os.Remove(name) // a directory that cannot be written is told elsewhere
	}
}

func readState(path string) (State, error) {
	var st State
	info, err := os.Stat(path)
	if err != nil {
		return st, err
	}
	if info.Size() > maxStateFile {
		return st, fmt.Errorf("%d bytes are above the limit of %d", info.Size(), maxStateFile)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return st, err
	}
	return st, json.Unmarshal(b, &st)
}

// SaveState replaces the state file: a crash leaves the old one or the new one.
func SaveState(dir string, st State) error {
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, stateName)
	f, err := os.CreateTemp(dir, stateName+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// State is what is to be kept now.
func (c *Core) State(now time.Time) State {
	st := State{Version: stateVersion, Device: c.self, Saved: now.Round(0)}
	if c.client != nil {
		st.Neighbours = c.table.Snapshot()
		told := c.notify.Snapshot()
		st.Told = &told
		st.Ports = c.faults.Snapshot()
		st.Paths = c.mesh.save()
		st.HeldBack = c.client.HeldBack().Round(0)
		st.Reflectors = c.client.Epochs()
	}
	if c.refl != nil {
		st.Known = c.refl.KnownDevices()
	}
	return st
}

// heldBack is until when the device takes nothing back; nil: it does.
func (c *Core) heldBack() *time.Time {
	if c.client == nil || c.client.HeldBack().IsZero() {
		return nil
	}
	at := c.client.HeldBack()
	return &at
}

// Revision changes whenever State would be another one.
func (c *Core) Revision() uint64 {
	if c.notify != nil {
		return c.revision + c.notify.Revision()
	}
	return c.revision
}

// Restore takes over what a State kept. It is called once, before any event. What
// cannot be used is left out and told in the error.
func (c *Core) Restore(st State, now time.Time) error {
	if c.client == nil {
		return nil
	}
	c.restorePaths(st.Paths)
	switch left := min(st.HeldBack.Sub(now), holdBack); {
	case st.Incomplete:
		c.client.HoldBack(now.Add(holdBack))
	case left > 0:
		c.client.HoldBack(now.Add(left))
	}
	var errs []error
	if st.Told != nil {
		if len(st.Told.Subjects) > 0 {
			c.client.Relies(st.Reflectors)
		}
		if !st.Clean {
			st.Told.Doubt()
		}
		errs = append(errs, c.notify.Restore(*st.Told, now))
	}
	errs = append(errs, c.table.Restore(st.Neighbours, now))
	c.restoring = true
	defer func() { c.restoring = false }()
	for _, n := range c.table.All() {
		c.restoredPort(n.Port)
	}
	c.restoreHosts(now)
	for _, name := range slices.Sorted(maps.Keys(c.ports)) {
		c.restoreUnheard(c.ports[name], st.Saved, now)
	}
	for _, s := range st.Ports {
		c.restoredPort(s.Port)
	}
	for _, ch := range c.faults.Restore(st.Ports, now) {
		c.causeChanged(ch, now)
	}
	c.restoreDrains(now)
	return errors.Join(errs...)
}

// restoreHosts makes the restored hosts known, the earlier ones first: of two that
// claim one address the right one must have it from the beginning.
func (c *Core) restoreHosts(now time.Time) {
	type attached struct {
		port *port
		info lldp.HostInfo
	}
	var all []attached
	for _, name := range slices.Sorted(maps.Keys(c.ports)) {
		for _, h := range c.table.Hosts(name) {
			all = append(all, attached{c.ports[name], h})
		}
	}
	slices.SortStableFunc(all, func(a, b attached) int { return a.info.Since.Compare(b.info.Since) })
	for i := range all {
		c.hostHere(all[i].port, &all[i].info, now, now)
	}
}

// restoreUnheard puts the addresses back into a port's fault that were not heard
// since it had lost its carrier: that the process was away is no evidence of them.
func (c *Core) restoreUnheard(p *port, since, now time.Time) {
	unheard := c.table.Unheard(p.Name)
	if len(unheard) == 0 {
		return
	}
	p.fault = portFault{why: errdown.LinkDown.Reason(), cause: errdown.LinkDown, since: since, addrs: unheard}
	c.tellFault(p, now, now)
}

// restoredPort makes a port known that the dataplane has not told of yet.
func (c *Core) restoredPort(name string) {
	if c.ports[name] == nil {
		c.ports[name] = &port{Port: fabric.Port{Name: name}}
	}
}
