package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/audit"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/keep"
)

// configs knows the configuration before the last commit, and until when that one has to be
// confirmed. The file is the operator's: it is never written.
type configs struct {
	one  turns // one commit, confirmation, way back or reload at a time
	keep *keep.Keeper

	mu       sync.Mutex
	text     []byte    // of the file whose configuration is in force
	sum      []byte    // of the file that was committed last
	previous []byte    // what was in force before; nil: not known
	deadline time.Time // zero: nothing waits
	back     bool      // previous is in force, although the file says what was committed
	told     bool      // that the way back fails
}

// tableConfig has the same, under these keys. The deadline is text (RFC 3339).
const tableConfig keep.Table = "config"

var keySum, keyPrevious, keyDeadline, keyBackAgain = []byte("sum"), []byte("previous"), []byte("deadline"), []byte("back")

func textSum(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

// open reads what was kept. A file that has been edited since is another one: nothing waits then.
func (c *configs) open(k *keep.Keeper, rows []keep.Row, file string) {
	c.keep = k
	c.text, _ = config.ReadText(file) // it was read a moment ago
	for i := range rows {
		r := &rows[i]
		if r.Table != tableConfig {
			continue
		}
		switch {
		case bytes.Equal(r.Key, keySum):
			c.sum = r.Value
		case bytes.Equal(r.Key, keyPrevious):
			c.previous = r.Value
		case bytes.Equal(r.Key, keyDeadline):
			c.deadline, _ = time.Parse(time.RFC3339Nano, string(r.Value))
		case bytes.Equal(r.Key, keyBackAgain):
			c.back = len(r.Value) > 0
		}
	}
	if !bytes.Equal(c.sum, textSum(c.text)) {
		c.sum, c.previous, c.deadline, c.back = nil, nil, time.Time{}, false
	}
	if c.back { // what this process began with is the file; it goes back at once
		c.deadline, c.back = time.Unix(1, 0), false
	}
}

// put sets all of it, and waits for the disk.
func (c *configs) put(ctx context.Context, text, sum, previous []byte, deadline time.Time, back bool) error {
	c.mu.Lock()
	c.text, c.sum, c.previous, c.deadline, c.back, c.told = text, sum, previous, deadline, back, false
	c.mu.Unlock()
	row := func(key, value []byte) {
		c.keep.Later(func() keep.Row { return keep.Row{Table: tableConfig, Key: key, Value: value} })
	}
	var until, again []byte
	if !deadline.IsZero() {
		until = []byte(deadline.Format(time.RFC3339Nano))
	}
	if back {
		again = []byte{1}
	}
	row(keySum, sum)
	row(keyPrevious, previous)
	row(keyDeadline, until)
	row(keyBackAgain, again)
	return c.keep.Wait(ctx)
}

// free refuses what may not be done while a configuration waits.
func (c *configs) free() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadline.IsZero() {
		return nil
	}
	return &kindError{fmt.Sprintf("a configuration waits for its confirmation until %s: inofctl config confirm, or undo, first", c.deadline.UTC().Format(time.RFC3339)), api.ErrConflict}
}

// loaded notes what a reload has brought into force: nothing waits, and the way back is that
// before.
func (c *configs) loaded(text []byte) {
	c.mu.Lock()
	same := bytes.Equal(text, c.text) && !c.back
	previous := c.text
	c.mu.Unlock()
	if !same {
		_ = c.put(context.Background(), text, textSum(text), previous, time.Time{}, false) // told by the keeper
	}
}

// CheckConfig implements api.ConfigSource.
func (d *Daemon) CheckConfig(ctx context.Context) (api.ConfigReview, error) {
	r, _, _, err := d.reviewConfig(ctx)
	return r, err
}

// reviewConfig compares the file with what is in force; next is nil when it has errors.
func (d *Daemon) reviewConfig(ctx context.Context) (r api.ConfigReview, next *config.Config, text []byte, err error) {
	old := d.cfg.Load()
	r = api.ConfigReview{File: old.File}
	d.configs.mu.Lock()
	if r.Back = d.configs.back; !d.configs.deadline.IsZero() {
		until := d.configs.deadline
		r.Confirm = &until
	}
	d.configs.mu.Unlock()
	if text, err = config.ReadText(old.File); err != nil {
		return r, nil, nil, fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	next, err = config.LoadText(old.File, text, old.Given)
	if err != nil {
		r.Problems = strings.Split(err.Error(), "\n")
		return r, nil, text, nil
	}
	changes := config.Diff(old, next)
	for _, c := range changes {
		r.Changes = append(r.Changes, api.ConfigChange{Key: c.Key, Old: c.Old, New: c.New, Restart: c.Restart})
	}
	r.Loss, err = d.losses(ctx, old, next, changes)
	return r, next, text, err
}

// CommitConfig implements api.ConfigSource.
func (d *Daemon) CommitConfig(ctx context.Context, o api.ConfigOrder) (api.ConfigReview, error) {
	c := &d.configs
	c.one.Lock()
	defer c.one.Unlock()
	if err := c.free(); err != nil {
		return api.ConfigReview{}, err
	}
	r, next, text, err := d.reviewConfig(ctx)
	if err != nil {
		return r, err
	}
	var restart []string
	for _, x := range r.Changes {
		if x.Restart {
			restart = append(restart, x.Key)
		}
	}
	switch {
	case len(r.Problems) > 0:
		return r, &kindError{strings.Join(r.Problems, "\n"), api.ErrInvalid}
	case len(restart) > 0:
		return r, &kindError{"only a restart changes " + strings.Join(restart, ", ") + ": take that out of the file, or restart the daemon", api.ErrRefused}
	}
	var until time.Time
	if o.Confirm > 0 {
		until = d.env.Now().Add(time.Duration(o.Confirm)).UTC()
	}
	was, sum, previous, back := c.text, c.sum, c.previous, c.back
	if err := c.put(ctx, text, textSum(text), was, until, false); err != nil && o.Confirm > 0 {
		_ = c.put(ctx, was, sum, previous, time.Time{}, back)
		return r, fmt.Errorf("%w: that the configuration waits for a confirmation cannot be kept, so nothing was changed: %w", api.ErrUnavailable, err)
	}
	if _, err := d.reload(ctx, next, o.Force); err != nil {
		if errors.Is(err, api.ErrRefused) {
			return r, errors.Join(err, c.put(ctx, was, sum, previous, time.Time{}, back))
		}
		// Not all of it is in force: the whole goes back.
		return r, errors.Join(fmt.Errorf("%w: nothing of it stays: %w", api.ErrUnavailable, err), d.configBack(ctx))
	}
	r.Confirm = nil
	if o.Confirm > 0 {
		r.Confirm = &until
	}
	r.Back = false
	return r, nil
}

// ConfirmConfig implements api.ConfigSource.
func (d *Daemon) ConfirmConfig(ctx context.Context) (api.ConfigReview, error) {
	c := &d.configs
	c.one.Lock()
	defer c.one.Unlock()
	if c.deadline.IsZero() {
		return api.ConfigReview{}, fmt.Errorf("%w: no configuration waits for a confirmation", api.ErrRefused)
	}
	until := c.deadline
	if err := c.put(ctx, c.text, c.sum, c.previous, time.Time{}, false); err != nil {
		_ = c.put(ctx, c.text, c.sum, c.previous, until, false) // it waits on: the disk may say so
		return api.ConfigReview{}, fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	return d.CheckConfig(ctx)
}

// UndoConfig implements api.ConfigSource.
func (d *Daemon) UndoConfig(ctx context.Context) (api.ConfigReview, error) {
	c := &d.configs
	c.one.Lock()
	defer c.one.Unlock()
	if c.previous == nil || c.back {
		return api.ConfigReview{}, fmt.Errorf("%w: no configuration before this one is known", api.ErrRefused)
	}
	if err := d.configBack(ctx); err != nil {
		return api.ConfigReview{}, err
	}
	return d.CheckConfig(ctx)
}

// configBack brings the configuration before the last commit into force; configs.one is held.
func (d *Daemon) configBack(ctx context.Context) error {
	c := &d.configs
	old := d.cfg.Load()
	prev, err := config.LoadText(old.File, c.previous, old.Given)
	if err != nil {
		return fmt.Errorf("%w: the configuration before cannot be used any more: %w", api.ErrUnavailable, err)
	}
	if _, err := d.reload(ctx, prev, true); err != nil {
		return fmt.Errorf("%w: the configuration before: %w", api.ErrUnavailable, err)
	}
	d.reloads.stale(fmt.Sprintf("%s was taken back: what is in force is the configuration before it; correct the file, then inofctl config commit", old.File))
	return c.put(ctx, c.previous, c.sum, c.previous, time.Time{}, true)
}

// configReturns takes a configuration back that nobody confirmed.
type configReturns struct{ d *Daemon }

// Run implements task.
func (r configReturns) Run(ctx context.Context) error {
	return every(ctx, returnsEvery, func() { r.d.returnConfig(ctx) })
}

func (r configReturns) String() string { return "unconfirmed configuration" }

func (d *Daemon) returnConfig(ctx context.Context) {
	c := &d.configs
	c.one.Lock()
	defer c.one.Unlock()
	c.mu.Lock()
	due := !c.deadline.IsZero() && !d.env.Now().Before(c.deadline)
	c.mu.Unlock()
	if !due {
		return
	}
	err := d.configBack(ctx)
	if err != nil && c.told {
		return // tried again
	}
	rec := audit.Record{By: "no confirmation", From: "this device", What: "return of the configuration", Result: "done"}
	if err != nil {
		c.told, rec.Result, rec.Error = true, "failed", err.Error()
		d.warn("config", fmt.Errorf("the configuration was not confirmed and cannot be taken back, it is tried again: %w", err))
	} else {
		d.log.Append(api.Event{Time: d.env.Now(), Kind: "config", Text: "the configuration was not confirmed in time: the one before it is in force again, the file is as it was"})
	}
	d.keepDeed(rec)
}
