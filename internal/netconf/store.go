package netconf

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/telemetry"
	"github.com/openinof/inof/zone/tree"
)

// Device is what this door leads to.
type Device interface {
	api.ZoningSource
	api.EventSource
	Telemetry(ctx context.Context, path string) (telemetry.Tree, error)
	RecoverPort(ctx context.Context, port string) error
	ShutPort(ctx context.Context, port string) error
	Drain(ctx context.Context, o api.DrainOrder) (api.Drained, error)
}

// Datastores (RFC 6241 section 8.3).
const (
	running   = "running"
	candidate = "candidate"
)

// store is the candidate, which all sessions share, and the locks.
type store struct {
	dev Device
	// turn has one session change something at a time.
	turn chan struct{}

	mu    sync.Mutex
	draft *draft // nil: the candidate says what is in force
	locks map[string]lock
	// confirmed is the session whose commit waits for its confirmation, without persist; 0: none.
	confirmed uint32
	version   uint64 // its number
}

// draft is a candidate that was changed.
type draft struct {
	config tree.Config
	base   string // of the zones that it was made from
}

type lock struct {
	session uint32
	since   time.Time
}

func newStore(dev Device) *store {
	return &store{dev: dev, turn: make(chan struct{}, 1), locks: map[string]lock{}}
}

// begin waits for the turn.
func (s *store) begin(ctx context.Context) (end func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// running gives what is in force; on a device that has no zones of its own, nothing.
func (s *store) running(ctx context.Context) (tree.Config, api.ZoneVersion, error) {
	z, err := s.dev.Zoning(ctx)
	return tree.Config{Plan: z.Plan}, z.Version, err
}

// read gives a datastore.
func (s *store) read(ctx context.Context, name string) (tree.Config, error) {
	s.mu.Lock()
	d := s.draft
	s.mu.Unlock()
	if name == candidate && d != nil {
		return d.config, nil
	}
	c, _, err := s.running(ctx)
	if errors.Is(err, api.ErrRefused) {
		return tree.Config{}, nil // a client has none of its own
	}
	return c, err
}

// mayChange refuses what another session has locked.
func (s *store) mayChange(session uint32, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, locked := s.locks[name]; locked && l.session != session {
		return refusef(tagInUse, "session %d has locked %s since %s", l.session, name, l.since.UTC().Format(time.RFC3339))
	}
	return nil
}

// lock is that of a datastore (RFC 6241 section 7.5).
func (s *store) lock(session uint32, name string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	denied := func(holder uint32, format string, args ...any) error {
		e := refusef(tagLockDenied, format, args...)
		e.info = []*element{leafOf(nsBase, "session-id", fmt.Sprint(holder))}
		return e
	}
	l, locked := s.locks[name]
	switch {
	case locked:
		return denied(l.session, "session %d has locked %s since %s", l.session, name, l.since.UTC().Format(time.RFC3339))
	case name == candidate && s.draft != nil:
		return denied(0, "the candidate was changed and neither committed nor discarded")
	case name == running && s.confirmed != 0 && s.confirmed != session:
		return denied(s.confirmed, "a commit of session %d waits for its confirmation", s.confirmed)
	}
	s.locks[name] = lock{session, now}
	return nil
}

// unlock ends a lock; of the candidate what was not committed goes with it (section 8.3.5.2).
func (s *store) unlock(session uint32, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, locked := s.locks[name]; !locked || l.session != session {
		return refusef(tagFailed, "this session has not locked %s", name)
	}
	s.release(name)
	return nil
}

func (s *store) release(name string) {
	delete(s.locks, name)
	if name == candidate {
		s.draft = nil
	}
}

// edit changes the candidate; a test alone does not.
func (s *store) edit(ctx context.Context, n *tree.Node, def tree.Op, test bool) error {
	d, err := s.candidate(ctx)
	if err != nil {
		return err
	}
	next, err := d.config.Apply(n, def)
	if err != nil {
		return err
	}
	if test {
		return s.check(ctx, &draft{next, d.base})
	}
	s.mu.Lock()
	s.draft = &draft{next, d.base}
	s.mu.Unlock()
	return nil
}

// discard has the candidate say what is in force.
func (s *store) discard() {
	s.mu.Lock()
	s.draft = nil
	s.mu.Unlock()
}

// candidate gives the draft there is, or one that changes nothing.
func (s *store) candidate(ctx context.Context) (*draft, error) {
	s.mu.Lock()
	d := s.draft
	s.mu.Unlock()
	if d != nil {
		return d, nil
	}
	c, v, err := s.running(ctx)
	return &draft{c, v.Base}, err
}

// check says what is wrong with a draft.
func (s *store) check(ctx context.Context, d *draft) error {
	if err := references(d.config); err != nil {
		return err
	}
	r, err := s.dev.CheckZones(ctx, api.ZoneCandidate{Plan: d.config.Plan, Base: d.base})
	if err != nil {
		return err
	}
	if len(r.Errors) > 0 {
		return fmt.Errorf("%w: %s", api.ErrInvalid, strings.Join(r.Errors, "\n"))
	}
	return nil
}

// references says what refers to nothing.
func references(c tree.Config) error {
	var list several
	for _, e := range c.Check() {
		list = append(list, editError(e))
	}
	if len(list) > 0 {
		return list
	}
	return nil
}

// order is a commit.
type order struct {
	confirm   time.Duration // 0: it stays
	persist   string        // the confirmation names it then, and may come from another session
	persistID string        // that of the commit that is confirmed
	force     bool
}

// persistWord begins the comment of a version that waits for a confirmation with that persist-id:
// so another member of a cluster knows it too, and the daemon after a restart.
const persistWord = "persist-id "

// commit brings the candidate into force, confirms a commit, or both (section 8.4). One that
// fails leaves the candidate as it is: other sessions have edited it too.
func (s *store) commit(ctx context.Context, session uint32, o order) error {
	d, err := s.candidate(ctx)
	if err != nil {
		return err
	}
	now, version, err := s.running(ctx)
	if err != nil {
		return err
	}
	if version.Confirm != nil {
		if err := s.mayConfirm(session, version, o.persistID); err != nil {
			return err
		}
		if o.confirm > 0 {
			return s.extend(ctx, session, d, &now, &version, o)
		}
		if _, err := s.dev.SettleZones(ctx, version.Number, true); err != nil {
			return err
		}
		s.waits(0, 0)
	} else if o.persistID != "" {
		return &rpcError{tag: string(tree.TagInvalidValue), message: "no commit waits for a confirmation"}
	}
	if !d.config.Plan.Equal(now.Plan) {
		done, err := s.put(ctx, d, 0, o)
		if err != nil {
			return err
		}
		if o.confirm > 0 && o.persist == "" && done.Changed {
			s.waits(session, done.Version.Number)
		}
	}
	s.discard()
	return nil
}

// put brings a draft into force, as a part of the version that it extends; 0: of none.
func (s *store) put(ctx context.Context, d *draft, extends uint64, o order) (api.ZoneCommitted, error) {
	if err := references(d.config); err != nil {
		return api.ZoneCommitted{}, err
	}
	c := api.ZoneCandidate{Plan: d.config.Plan, Base: d.base, Confirm: api.Duration(o.confirm), Extends: extends, Force: o.force}
	if o.persist != "" {
		c.Comment = persistWord + o.persist
	}
	done, err := s.dev.CommitZones(ctx, c)
	if errors.Is(err, api.ErrConflict) {
		err = fmt.Errorf("%w\nthe candidate is as it was; discard-changes makes one of what is in force", err)
	}
	return done, err
}

// extend gives what waits more time, with what the candidate changes as a part of it: without a
// confirmation all of it is taken back (section 8.4.1).
func (s *store) extend(ctx context.Context, session uint32, d *draft, now *tree.Config, version *api.ZoneVersion, o order) error {
	word, persisted := strings.CutPrefix(version.Comment, persistWord)
	if o.persist == "" && persisted {
		o.persist = word
	}
	if d.config.Plan.Equal(now.Plan) && o.persist != word {
		return &rpcError{tag: string(tree.TagInvalidValue), message: "persist: what waits has another one, and nothing is changed that could have a new one"}
	}
	done, err := s.put(ctx, d, version.Number, o)
	if err != nil {
		return err
	}
	if o.persist == "" {
		s.waits(session, done.Version.Number)
	}
	s.discard()
	return nil
}

// mayConfirm reports whether a commit of a session is about the version that waits.
func (s *store) mayConfirm(session uint32, v api.ZoneVersion, persistID string) error {
	if word, ok := strings.CutPrefix(v.Comment, persistWord); ok {
		if word == persistID {
			return nil
		}
		return &rpcError{tag: string(tree.TagInvalidValue), message: "the commit that waits for its confirmation has another persist-id"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.confirmed == session && s.version == v.Number && persistID == "" {
		return nil
	}
	return refusef(tagInUse, "version %d by %s waits for its confirmation until %s", v.Number, v.By, v.Confirm.UTC().Format(time.RFC3339))
}

func (s *store) waits(session uint32, number uint64) {
	s.mu.Lock()
	s.confirmed, s.version = session, number
	s.mu.Unlock()
}

// cancel takes a confirmed commit back.
func (s *store) cancel(ctx context.Context, session uint32, persistID string) error {
	_, v, err := s.running(ctx)
	if err != nil {
		return err
	}
	if v.Confirm == nil {
		return &rpcError{tag: tagFailed, message: "no commit waits for a confirmation"}
	}
	if err := s.mayConfirm(session, v, persistID); err != nil {
		return err
	}
	if _, err := s.dev.SettleZones(ctx, v.Number, false); err != nil {
		return err
	}
	s.waits(0, 0)
	return nil
}

// left reports whether a session that ends leaves a commit that has to be taken back (section
// 8.4.1), and ends its locks.
func (s *store) left(session uint32) (number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, l := range s.locks {
		if l.session == session {
			s.release(name)
		}
	}
	if s.confirmed == session {
		number = s.version
		s.confirmed, s.version = 0, 0
	}
	return number
}
