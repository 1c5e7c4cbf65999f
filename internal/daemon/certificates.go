package daemon

import (
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
)

// certificates keeps the credentials of mode tls those of the files: a reload sets
// them, and a handshake that finds changed files reads them again.
type certificates struct {
	store        *link.CredentialStore
	device       netip.Addr
	keys         atomic.Pointer[config.TLSKeys] // in force
	read, failed atomic.Uint64
	changed      func(warnings []string) // called after new ones are in force
	broken       func(error)             // called when changed files cannot be used
	now          func() time.Time

	mu    sync.Mutex // guards what follows; one reading at a time
	from  config.TLS
	files [3]fs.FileInfo // when last read by refresh; nil: not yet
}

func (d *Daemon) newCertificates(device netip.Addr) *certificates {
	c := &certificates{device: device, now: d.env.Now}
	c.store = link.NewCredentialStore(nil, c.refresh)
	c.changed = func(warnings []string) {
		for _, w := range warnings {
			d.log.Append(api.Event{Time: d.env.Now(), Kind: "config", Text: w, Fields: map[string]string{"room": "certificates"}})
		}
		d.recheck("their certificates are not taken any more")
	}
	c.broken = func(err error) {
		d.warn("certificates", fmt.Errorf("changed certificate files are not used, the old ones stay in force: %w", err))
	}
	return c
}

// set brings what a configuration holds into force.
func (c *certificates) set(t config.TLS) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Keys == nil {
		var err error
		if t.Keys, err = config.LoadTLS(t, c.device); err != nil {
			return err
		}
	}
	if err := c.apply(t); err != nil {
		return err
	}
	c.files = [3]fs.FileInfo{} // they may have changed since they were read
	return nil
}

// apply replaces the credentials. c.mu is held.
func (c *certificates) apply(t config.TLS) error {
	allow, err := link.ParseAllowList(t.Allow)
	if err != nil {
		return err
	}
	c.from = t
	c.keys.Store(t.Keys)
	c.store.Set(&link.Credentials{Certificate: t.Keys.Certificate(), Roots: t.Keys.Roots(), Allow: allow})
	c.changed(t.Keys.Warnings(c.now()))
	return nil
}

// refresh reads the files again if they look different. It is called at each
// handshake: whoever finds another one reading goes on with what is in force.
func (c *certificates) refresh() {
	if !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	var now [3]fs.FileInfo
	same := true
	for i, name := range c.from.Files() {
		st, err := os.Stat(name)
		if err != nil {
			continue // nil: being replaced, or gone
		}
		now[i] = st
		was := c.files[i]
		same = same && was != nil && os.SameFile(was, st) && was.ModTime().Equal(st.ModTime()) && was.Size() == st.Size()
	}
	for i := range now {
		same = same && (now[i] == nil) == (c.files[i] == nil)
	}
	if same {
		return
	}
	c.files = now
	next := c.from
	var err error
	if next.Keys, err = config.LoadTLS(next, c.device); err == nil {
		if next.Keys.Digest() == c.from.Keys.Digest() {
			return
		}
		err = c.apply(next)
	}
	if err != nil {
		c.failed.Add(1)
		c.broken(err)
		return
	}
	c.read.Add(1)
}

// warnings says which certificates expire soon.
func (c *certificates) warnings() []string {
	if keys := c.keys.Load(); keys != nil {
		return keys.Warnings(c.now())
	}
	return nil
}

func (c *certificates) counters() map[string]uint64 {
	return map[string]uint64{"renewed": c.read.Load(), "failed": c.failed.Load()}
}

// recheck ends the sessions that what is in force now does not take any more.
func (d *Daemon) recheck(why string) {
	n := 0
	if d.server != nil {
		n += d.server.Recheck()
	}
	for _, c := range d.dialers {
		n += c.Recheck()
	}
	if n > 0 {
		d.log.Append(api.Event{Time: d.env.Now(), Kind: "config", Text: fmt.Sprintf("%d session(s) end: %s", n, why)})
	}
}
