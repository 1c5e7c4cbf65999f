package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
)

// reloadCounters count configurations that were read again.
type reloadCounters struct {
	done, failed atomic.Uint64
	trouble      atomic.Pointer[string] // why the last one could not be used; nil: it is
}

// accessSetter is a dataplane whose ports can be named anew.
type accessSetter interface {
	SetAccess(globs []string) error
}

// Reload brings into force what differs in a new configuration and touches nothing
// else. Settings that only a restart can change keep their old value; they are
// named in the event. On an error in one section the others are still done, and
// that section stays as it was.
func (d *Daemon) Reload(ctx context.Context, next *config.Config) error {
	old := d.cfg.Load()
	changes := config.Diff(old, next)
	var errs []error
	merged := *old // what is in force afterwards
	step := func(section string, apply func() error) {
		if !changes.Has(section) {
			return
		}
		if err := apply(); err != nil {
			errs = append(errs, fmt.Errorf("%s stays as it was: %w", section, err))
		}
	}
	step("log.level", func() error {
		if d.env.Level != nil {
			d.env.Level.Set(next.Log.Level)
		}
		merged.Log.Level = next.Log.Level
		return nil
	})
	step("ports.access", func() error {
		dp, ok := d.env.Dataplane.(accessSetter)
		if !ok {
			return errors.New("this dataplane cannot change its ports; restart the daemon")
		}
		if err := dp.SetAccess(next.Ports.Access); err != nil {
			return err
		}
		merged.Ports.Access = next.Ports.Access
		return nil
	})
	step("lldp", func() error { return d.reloadLLDP(ctx, &merged, next) })
	step("error-down", func() error {
		merged.ErrorDown = next.ErrorDown
		return d.device.Do(ctx, func(c *Core, now time.Time) { c.SetErrorDown(errorDownConfig(next), now) })
	})
	step("bfd", func() error { return d.reloadBFD(ctx, &merged, next) })
	step("reflector.clients", func() error { merged.Reflector.Clients = next.Reflector.Clients; return nil })
	step("session", func() error {
		if next.Session.Auth != old.Session.Auth {
			return nil // named below
		}
		if err := d.setAuth(next); err != nil {
			return err
		}
		merged.Session.Password, merged.Session.PasswordFrom = next.Session.Password, next.Session.PasswordFrom
		merged.Session.TLS = next.Session.TLS
		return nil
	})
	// Handshakes read changed files too, so equal configurations do not mean equal
	// certificates in force.
	if both := old.Session.Auth == config.AuthTLS && next.Session.Auth == config.AuthTLS; both && !changes.Has("session") {
		if err := d.setAuth(next); err != nil {
			errs = append(errs, fmt.Errorf("session stays as it was: %w", err))
		}
	}
	if d.zones != nil { // the file itself may have changed without the configuration
		if err := d.zones.reload(ctx, d.device, next); err != nil {
			errs = append(errs, err)
		} else {
			merged.Zones = next.Zones
		}
	}
	d.cfg.Store(&merged)
	for _, c := range d.dialers { // whatever kept them away may be mended
		c.Wake()
	}
	d.reloaded(changes, errs)
	return errors.Join(errs...)
}

func (d *Daemon) reloadLLDP(ctx context.Context, merged, next *config.Config) error {
	limits := merged.LLDP
	merged.LLDP = next.LLDP
	merged.LLDP.MaxNeighboursPerPort, merged.LLDP.MaxHosts = limits.MaxNeighboursPerPort, limits.MaxHosts
	tx, on := transmitConfig(merged)
	return d.device.Do(ctx, func(c *Core, now time.Time) { c.SetTransmit(tx, on, now) })
}

// reloaded counts and tells the outcome.
func (d *Daemon) reloaded(changes config.Changes, errs []error) {
	text := "configuration read again: nothing has changed"
	if len(changes) > 0 {
		text = "configuration read again: " + strings.Join(changes.Sections(), ", ")
	}
	if restart := changes.Restart(); len(restart) > 0 {
		text += "; only a restart changes " + strings.Join(restart, ", ")
	}
	d.reloads.done.Add(1)
	d.reloads.trouble.Store(nil)
	d.log.Append(api.Event{Time: d.env.Now(), Kind: "config", Text: text})
	for _, err := range errs {
		d.ReloadFailed(err)
	}
}

// ReloadFailed counts and tells a configuration that could not be used; the old one
// stays in force.
func (d *Daemon) ReloadFailed(err error) {
	d.reloads.failed.Add(1)
	err = fmt.Errorf("configuration is not (wholly) used: %w", err)
	text := oneLine(err.Error())
	if before := d.reloads.trouble.Load(); before != nil { // of the same attempt
		text = *before + "; " + text
	}
	d.reloads.trouble.Store(&text)
	d.warn("config", err)
}
