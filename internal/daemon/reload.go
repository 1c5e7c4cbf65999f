package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/audit"
	"github.com/openinof/inof/internal/config"
)

// reloads keeps what became of the configurations that were read again.
type reloads struct {
	one turns // one at a time

	mu                    sync.Mutex
	done, failed, refused uint64
	trouble               string // why the last one is not in force; empty: it is
}

func (r *reloads) note(n *uint64, trouble string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*n++
	r.trouble = trouble
}

// stale says why the file is not what is in force, until the next reload.
func (r *reloads) stale(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trouble = why
}

// warning says in one line why the file is not what is in force; empty: it is.
func (r *reloads) warning() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trouble
}

func (r *reloads) counters() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return map[string]uint64{"reloads": r.done, "reload_errors": r.failed, "reloads_refused": r.refused}
}

// accessSetter is a dataplane whose ports can be named anew.
type accessSetter interface {
	SetAccess(globs []string) error
}

// Reload brings into force what differs in a new configuration and touches nothing
// else. Settings that only a restart can change keep their old value; they are
// named in the event. On an error in one section the others are still done, and
// that section stays as it was. A configuration that would take hosts away is refused
// as a whole, with an error that wraps api.ErrRefused and names them, unless it is
// forced.
func (d *Daemon) Reload(ctx context.Context, next *config.Config, force bool) error {
	d.configs.one.Lock()
	defer d.configs.one.Unlock()
	err := d.configs.free()
	if err == nil {
		text, _ := config.ReadText(next.File) // it was read a moment ago
		if _, err = d.reload(ctx, next, force); err == nil {
			d.configs.loaded(text)
		}
	} else {
		d.ReloadFailed(err)
	}
	r := audit.Record{By: "SIGHUP", From: "signal, which has no sender", What: "reload", Result: "done"}
	if err != nil {
		r.Result, r.Error = "refused", err.Error()
	}
	d.keepDeed(r)
	return err
}

func (d *Daemon) reload(ctx context.Context, next *config.Config, force bool) (config.Changes, error) {
	d.reloads.one.Lock()
	defer d.reloads.one.Unlock()
	old := d.cfg.Load()
	changes := config.Diff(old, next)
	if !force {
		switch losses, err := d.losses(ctx, old, next, changes); {
		case err != nil:
			return nil, err
		case losses != "":
			return nil, d.reloadRefused(next, losses)
		}
	}
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
	step("mode", func() error {
		merged.Mode = next.Mode
		return d.device.Do(ctx, func(c *device.Core, now time.Time) { c.SetObserve(next.Observe(), now) })
	})
	step("ports", func() error { return d.reloadPorts(ctx, &merged, next, changes.Has("ports.access")) })
	step("lldp", func() error { return d.reloadLLDP(ctx, &merged, next) })
	step("hosts", func() error {
		merged.Hosts = next.Hosts
		return d.device.Do(ctx, func(c *device.Core, now time.Time) { c.SetHosts(hostsConfig(next), now) })
	})
	if d.hard != nil && (changes.Has("hard-zoning") || changes.Has("hosts")) {
		merged.HardZoning = next.HardZoning
		merged.HardZoning.MaxPairs, merged.HardZoning.Pins = old.HardZoning.MaxPairs, old.HardZoning.Pins
		h := merged.HardZoning
		if err := d.device.Do(ctx, func(c *device.Core, _ time.Time) { c.SetHardConfig(h) }); err != nil {
			errs = append(errs, err)
		}
		d.hard.configure(&merged)
	}
	if changes.Has("client.fence") || changes.Has("fence") {
		merged.Client.Fence, merged.Fence = next.Client.Fence, next.Fence
		if err := d.device.Do(ctx, func(c *device.Core, now time.Time) { c.SetFence(fenceConfig(next), now) }); err != nil {
			errs = append(errs, err)
		}
	}
	step("error-down", func() error {
		merged.ErrorDown = next.ErrorDown
		return d.device.Do(ctx, func(c *device.Core, now time.Time) { c.SetErrorDown(next.ErrorDown, now) })
	})
	step("bfd", func() error { return d.reloadBFD(ctx, &merged, next) })
	step("reflector.clients", func() error {
		merged.Reflector.Clients = next.Reflector.Clients
		return d.device.Do(ctx, func(c *device.Core, now time.Time) { c.SetBindings(bindingsOf(next), now) })
	})
	step("reflector.hosts", func() error {
		merged.Reflector.Hosts = next.Reflector.Hosts
		return d.device.Do(ctx, func(c *device.Core, now time.Time) { c.SetDeclared(declaredOf(next), now) })
	})
	step("reflector", func() error {
		merged.Reflector.RecordsPerSecond, merged.Reflector.RecordsBurst = next.Reflector.RecordsPerSecond, next.Reflector.RecordsBurst
		if d.server != nil {
			d.server.SetPace(paceOf(next))
		}
		return nil
	})
	step("reflector.monitors", func() error { merged.Reflector.Monitors = next.Reflector.Monitors; return nil })
	step("session", func() error {
		if next.Session.Auth != old.Session.Auth {
			return nil // named below
		}
		if err := d.setAuth(next); err != nil {
			return err
		}
		s := &merged.Session
		// A password that simply replaces another one counts for sessions that come; with two
		// the operator has said which are to move, or to end.
		rotated := s.OldPassword != next.Session.OldPassword
		s.Password, s.OldPassword, s.PasswordFrom = next.Session.Password, next.Session.OldPassword, next.Session.PasswordFrom
		s.TLS = next.Session.TLS
		if rotated {
			d.recheck("their password is not the newest any more")
		}
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
	d.reloaded(ctx, changes, errs)
	return changes, errors.Join(errs...)
}

// reloadPorts changes which ports the configuration names. The owner goroutine knows
// before the dataplane tells which ports have gone for that reason.
func (d *Daemon) reloadPorts(ctx context.Context, merged, next *config.Config, access bool) error {
	set := func(p config.Ports) error {
		names, err := fabric.ParseNames(p.Access)
		if err != nil {
			return err
		}
		return d.device.Do(ctx, func(c *device.Core, _ time.Time) { c.SetAccess(names, p.RemovalHold) })
	}
	ports := merged.Ports
	ports.RemovalHold = next.Ports.RemovalHold
	dp, ok := d.env.Dataplane.(accessSetter)
	if !access || !ok {
		merged.Ports = ports
		if err := set(ports); err != nil || !access {
			return err
		}
		return errors.New("this dataplane cannot change its ports; restart the daemon")
	}
	ports.Access = next.Ports.Access
	if err := set(ports); err != nil {
		return err
	}
	if err := dp.SetAccess(ports.Access); err != nil {
		return errors.Join(err, set(merged.Ports))
	}
	merged.Ports = ports
	return nil
}

func (d *Daemon) reloadLLDP(ctx context.Context, merged, next *config.Config) error {
	limits := merged.LLDP
	merged.LLDP = next.LLDP
	merged.LLDP.MaxNeighboursPerPort, merged.LLDP.MaxHosts = limits.MaxNeighboursPerPort, limits.MaxHosts
	d.otherLLDP = d.env.OtherLLDP()
	tx, on := transmitConfig(merged, d.otherLLDP)
	return d.device.Do(ctx, func(c *device.Core, now time.Time) { c.SetTransmit(tx, on, now) })
}

// reloaded counts and tells the outcome.
func (d *Daemon) reloaded(ctx context.Context, changes config.Changes, errs []error) {
	by := ""
	if c, ok := api.CallerOf(ctx); ok {
		by = " for " + c.String()
	}
	text := "configuration read again" + by + ": nothing has changed"
	if len(changes) > 0 {
		text = "configuration read again" + by + ": " + strings.Join(changes.Sections(), ", ")
	}
	if restart := changes.Restart(); len(restart) > 0 {
		text += "; only a restart changes " + strings.Join(restart, ", ")
	}
	d.reloads.note(&d.reloads.done, "")
	d.log.Append(api.Event{Time: d.env.Now(), Kind: "config", Text: text, Fields: callerFields(ctx)})
	if err := errors.Join(errs...); err != nil {
		d.ReloadFailed(fmt.Errorf("configuration is not wholly used: %w", err))
	}
}

// reloadRefused counts and tells a configuration that would take hosts away.
func (d *Daemon) reloadRefused(next *config.Config, losses string) error {
	err := fmt.Errorf("%w: %s; nothing was changed: correct %s, or say that it is meant: inofctl reload --force", api.ErrRefused, losses, next.File)
	now := d.env.Now()
	d.reloads.note(&d.reloads.refused, fmt.Sprintf("the reload at %s was refused: %s; if it is meant: inofctl reload --force", now.Format(time.RFC3339), losses))
	d.log.Append(api.Event{Time: now, Kind: "error", Text: "reload: " + err.Error(), Fields: map[string]string{"room": "config"}})
	return err
}

// ReloadFailed counts and tells a configuration that could not be used, or not all of it;
// the rest stays as it was.
func (d *Daemon) ReloadFailed(err error) {
	d.reloads.note(&d.reloads.failed, oneLine(err.Error()))
	d.warn("config", err)
}

// ReloadConfig implements api.Source.
func (d *Daemon) ReloadConfig(ctx context.Context, force bool) (api.Reloaded, error) {
	d.configs.one.Lock() // a commit between here and the end would lose its deadline
	defer d.configs.one.Unlock()
	if err := d.configs.free(); err != nil {
		return api.Reloaded{}, err
	}
	text, _ := config.ReadText(d.cfg.Load().File) // what cannot be read cannot be loaded either
	next, err := d.env.Load()
	if err != nil {
		d.ReloadFailed(fmt.Errorf("configuration is not used: %w", err))
		return api.Reloaded{}, fmt.Errorf("%w: the configuration in force stays: %w", api.ErrInvalid, err)
	}
	changes, err := d.reload(ctx, next, force)
	if err == nil {
		d.configs.loaded(text)
	}
	switch {
	case errors.Is(err, api.ErrRefused):
		return api.Reloaded{}, err
	case changes == nil && err != nil:
		return api.Reloaded{}, err
	}
	r := api.Reloaded{File: next.File, Changed: []string{}, Restart: changes.Restart(), Problems: []string{}}
	for _, ch := range changes {
		if !ch.Restart {
			r.Changed = append(r.Changed, ch.Key)
		}
	}
	if err != nil {
		r.Problems = strings.Split(err.Error(), "\n")
	}
	return r, nil
}
