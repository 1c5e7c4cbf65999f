package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openinof/inof/cluster"
	"github.com/openinof/inof/device"
	"github.com/openinof/inof/inof/link"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/audit"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/zone"
	"github.com/openinof/inof/zone/change"
)

// clusterStore has the zones of a reflector that is a member of a cluster: the log of
// the cluster. The zone file is read once, for the first start of the whole cluster.
type clusterStore struct {
	node   *cluster.Node
	device *Device
	formed chan struct{} // closed once the cluster has zones
	once   sync.Once
	broken atomic.Uint64 // committed changes that the reflector did not take

	start zone.Set // what the disk had, as of
	stamp wire.ClusterStamp
	seed  config.Zones
}

// newClusterStore opens what the disk has; nothing runs yet.
func (d *Daemon) newClusterStore(cfg *config.Config) (*clusterStore, error) {
	open := d.env.Storage
	if open == nil {
		open = cluster.OpenStorage
	}
	storage, err := open(filepath.Join(cfg.State, "cluster"))
	if err != nil {
		return nil, err
	}
	cl := cfg.Reflector.Cluster
	rules := cfg.ZoneRules()
	conf := cluster.Config{
		Self: cfg.Device.ID, Listen: cl.Listen, Storage: storage, Rules: rules,
		TLS:     func() *link.CredentialStore { return d.auth.Load().TLS },
		Applied: d.auditEntry,
		Seed: func() (zone.Set, error) {
			set, err := config.LoadZones(cfg.Zones.File, rules)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			set.AutoJoin, set.Hard = cfg.Zones.AutoJoin, cfg.Zones.Hard
			return set, err
		},
		Heartbeat: cl.Heartbeat, Election: cl.Election,
		SnapshotEntries: uint64(cl.SnapshotEntries), SnapshotInterval: cl.SnapshotInterval, Trailing: uint64(cl.KeepEntries),
		ListenOn: d.listenFor("reflector.cluster.listen"), Dial: d.env.Dial, Log: d.env.Log,
		Event: func(e cluster.Event) {
			d.log.Append(api.Event{Time: d.env.Now(), Kind: "cluster", Text: e.Text, Fields: e.Fields})
		},
	}
	for _, m := range cl.Members {
		conf.Members = append(conf.Members, cluster.Member{Device: m.Device, Address: m.Address})
	}
	s := &clusterStore{formed: make(chan struct{}), seed: cfg.Zones}
	if s.node, err = cluster.Open(conf); err != nil {
		return nil, errors.Join(err, storage.Close())
	}
	s.start, s.stamp = s.node.Zones()
	if s.stamp.Known() {
		s.once.Do(func() { close(s.formed) })
	}
	return s, nil
}

// auditEntry keeps an entry of the cluster's log, whichever member it was made at.
func (d *Daemon) auditEntry(a cluster.Applied) {
	r := audit.Record{What: "entry of the cluster's log", Result: "done", Detail: map[string]string{"entry": fmt.Sprint(a.Result.Index)}}
	switch e := a.Entry; {
	case a.Snapshot:
		r.What, r.By, r.From = "snapshot of the cluster, in place of its log up to the entry", "the leader", "cluster"
	case e == nil:
		r.By, r.From = "unknown", "cluster"
	default:
		r.By, r.From = e.Meta.By, e.Meta.From
		for key, v := range map[string]string{"kind": e.Kind.String(), "name": e.Name, "value": e.Value, "comment": e.Meta.Comment} {
			if v != "" {
				r.Detail[key] = v
			}
		}
		if r.Detail["member"] = "unknown"; e.Member.IsValid() {
			r.Detail["member"] = e.Member.String()
		}
	}
	if refused := a.Result.Refused; refused != nil {
		r.Result, r.Error = "refused", refused.Text
	}
	d.keepDeed(r)
}

// first implements zoneKeeper.
func (s *clusterStore) first() zone.Set { return s.start }

// Run brings into force what the cluster commits, in order.
func (s *clusterStore) Run(ctx context.Context) error {
	for {
		b, err := s.node.Next(ctx)
		if err != nil {
			return nil
		}
		err = s.device.Do(ctx, func(c *device.Core, now time.Time) { s.broken.Add(b.InForce(c, now)) })
		if err != nil {
			return nil // the device stops
		}
		s.node.Done(b.Stamp.Index)
		if b.Stamp.Known() {
			s.once.Do(func() { close(s.formed) })
		}
	}
}

func (s *clusterStore) String() string { return "zones of the cluster" }

// kinds of refusals as the management API tells them.
var refusals = map[cluster.Code]error{
	cluster.CodeInvalid: api.ErrInvalid, cluster.CodeExists: api.ErrExists, cluster.CodeNotFound: api.ErrNotFound, cluster.CodeLimit: api.ErrLimit,
	cluster.CodeConflict: api.ErrConflict,
}

// kindError is a text with the kind that decides on the status of an answer.
type kindError struct {
	text string
	kind error
}

func (e *kindError) Error() string { return e.text }
func (e *kindError) Unwrap() error { return e.kind }

// clusterError gives an error of the cluster its kind.
func clusterError(err error) error {
	var r *cluster.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r):
		kind := refusals[r.Code]
		if kind == nil {
			kind = api.ErrRefused
		}
		return &kindError{r.Text, kind}
	case errors.Is(err, cluster.ErrNoLeader), errors.Is(err, cluster.ErrUncertain):
		return &kindError{err.Error(), api.ErrUnavailable}
	case errors.Is(err, cluster.ErrMemberExists):
		return &kindError{err.Error(), api.ErrExists}
	case errors.Is(err, cluster.ErrMemberNotFound):
		return &kindError{err.Error(), api.ErrNotFound}
	case errors.Is(err, cluster.ErrMemberLimit):
		return &kindError{err.Error(), api.ErrLimit}
	case errors.Is(err, cluster.ErrMemberState):
		return &kindError{err.Error(), api.ErrRefused}
	}
	return err
}

// change implements zoneKeeper.
func (s *clusterStore) change(ctx context.Context, _ *Device, e zoneEdit, m change.Meta) error {
	kind := map[api.ZoneDo]cluster.Kind{api.ZoneAdd: cluster.KindAddZone, api.ZoneRemove: cluster.KindRemoveZone,
		api.MembersAdd: cluster.KindAddMembers, api.MembersRemove: cluster.KindRemoveMembers}[e.do]
	return s.enter(ctx, cluster.Entry{Kind: kind, Name: e.name, Members: e.members, Meta: m})
}

func (s *clusterStore) enter(ctx context.Context, e cluster.Entry) error {
	_, err := s.node.Change(ctx, e)
	return clusterError(err)
}

// zoning implements zoneKeeper.
func (s *clusterStore) zoning() *change.Book { return s.node.Book() }

// commit implements zoneKeeper.
func (s *clusterStore) commit(ctx context.Context, _ *Device, o change.Order) (change.Version, bool, error) {
	was := s.node.Book()
	if err := s.enter(ctx, cluster.Entry{Kind: cluster.KindCommit, Delta: o.Delta, Base: o.Base, Deadline: o.Deadline, Number: o.Extends, Meta: o.Meta}); err != nil {
		return change.Version{}, false, err
	}
	is := s.node.Book()
	return is.Last(), is.Last().Number != was.Last().Number || o.Extends != 0, nil
}

// settle implements zoneKeeper.
func (s *clusterStore) settle(ctx context.Context, _ *Device, number uint64, stay bool, m change.Meta) (change.Version, error) {
	if err := s.enter(ctx, cluster.Entry{Kind: cluster.KindSettle, Number: number, Stay: stay, Meta: m}); err != nil {
		return change.Version{}, err
	}
	return s.node.Book().Last(), nil
}

// returns implements zoneKeeper: the leader does it, whoever that is then.
func (s *clusterStore) returns(ctx context.Context, d *Device, now time.Time, m change.Meta) (v change.Version, done bool, err error) {
	book := s.node.Book()
	if !book.Due(now) || !s.node.Leads() {
		return v, false, nil
	}
	v, err = s.settle(ctx, d, book.Pending().Number, false, m)
	if err != nil {
		return v, false, nil // it has lost the lead, or somebody was faster: the next turn knows
	}
	return v, true, nil
}

// reload implements zoneKeeper: the configuration has no say once there is a cluster.
func (s *clusterStore) reload(_ context.Context, _ *Device, cfg *config.Config) error {
	seed := s.seed
	seed.BoundNQNs, seed.MaxLoss = cfg.Zones.BoundNQNs, cfg.Zones.MaxLoss // of this device: which changes it takes
	if cfg.Zones == seed {
		return nil
	}
	return errors.New("zones: these settings are only the seed of the first start of the cluster; change them with inofctl zone and inofctl cluster set")
}

// warning implements zoneKeeper.
func (s *clusterStore) warning() string { return s.node.Trouble() }

// addCounters implements zoneKeeper.
func (s *clusterStore) addCounters(m map[string]any) {
	m["cluster"], m["cluster_transport"] = s.node.Counters()
	m["cluster_zones"] = map[string]uint64{"not_taken": s.broken.Load()}
}

// gated is a task that begins when the cluster has zones: before that this reflector
// has nothing to say, and its silence must not be taken for an answer.
type gated struct {
	task
	gate <-chan struct{}
}

func (g gated) Run(ctx context.Context) error {
	select {
	case <-g.gate:
		return g.task.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}
