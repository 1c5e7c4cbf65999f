package daemon

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/hardzone"
	"github.com/openinof/inof/internal/api"
)

// fakeFilter has the rows that it was given.
type fakeFilter struct {
	mu        sync.Mutex
	hosts     map[netip.Addr]hardzone.Host
	pairs     map[hardzone.PairKey]bool
	ports     []hardzone.Port
	early     bool // ports had filters before they had rows
	suspended bool
	removed   bool
	reading   bool // of samples
	cut       bool // what is read was closed
}

func newFakeFilter() *fakeFilter {
	return &fakeFilter{hosts: map[netip.Addr]hardzone.Host{}, pairs: map[hardzone.PairKey]bool{}}
}

func (f *fakeFilter) Adopted() ([]hardzone.Host, []hardzone.PairKey, bool) { return nil, nil, false }
func (f *fakeFilter) Configure(hardzone.Config, []hardzone.Bound) error    { return nil }
func (f *fakeFilter) Suspend(on bool) error                                { f.set(&f.suspended, on); return nil }
func (f *fakeFilter) Audit() (hardzone.Audited, error)                     { return hardzone.Audited{}, nil }
func (f *fakeFilter) Counts() (hardzone.Counts, error)                     { return hardzone.Counts{}, nil }

func (f *fakeFilter) Remove() error {
	f.set(&f.removed, true)
	return f.Close()
}

func (f *fakeFilter) Close() error {
	f.set(&f.cut, f.is(&f.cut) || f.is(&f.reading))
	return nil
}

func (f *fakeFilter) set(what *bool, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*what = on
}

func (f *fakeFilter) is(what *bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *what
}

func (f *fakeFilter) Samples(ctx context.Context, _ func(hardzone.Sample)) error {
	f.set(&f.reading, true)
	<-ctx.Done()
	time.Sleep(time.Millisecond) // it looks something up still
	f.set(&f.reading, false)
	return nil
}

func (f *fakeFilter) Apply(steps []hardzone.Step) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range steps {
		switch s.Op {
		case hardzone.PutPair:
			f.pairs[s.Pair.Key] = true
		case hardzone.PutHost:
			f.hosts[s.Host.Addr] = s.Host
		case hardzone.DeleteHost:
			delete(f.hosts, s.Host.Addr)
		case hardzone.DeletePair:
			delete(f.pairs, s.Pair.Key)
		}
	}
	return nil
}

func (f *fakeFilter) SetPorts(ports []hardzone.Port) (list []hardzone.PortState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.early = f.early || len(f.hosts) == 0
	f.ports = ports
	for _, p := range ports {
		list = append(list, hardzone.PortState{Port: p.Name, Attach: hardzone.AttachNative})
	}
	return list
}

func (f *fakeFilter) Look(a, b netip.Addr) (s hardzone.Seen, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.A, s.B, s.Suspended = f.hosts[a].Number, f.hosts[b].Number, f.suspended
	s.Open = s.A != 0 && s.B != 0 && f.pairs[hardzone.KeyOf(s.A, s.B)]
	return s, nil
}

// isolate has the reflector ask for hard zoning, or no longer.
func (f *testFabric) isolate(on bool) {
	f.t.Helper()
	n := f.nodes["spine"]
	cfg := *n.d.cfg.Load()
	cfg.Zones.Hard = on
	if err := n.d.Reload(f.t.Context(), &cfg, true); err != nil {
		f.t.Fatal(err)
	}
	time.Sleep(time.Second)
}

func TestASwitchThatCannotFilterSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		f.isolate(true)
		n := f.nodes["tor1"]
		h, err := n.d.HardZoning(t.Context())
		if err != nil || h.State != api.HardAbnormal || !strings.Contains(strings.Join(h.Why, " "), "cannot filter") {
			t.Fatalf("%+v %v", h, err)
		}
		s, err := n.d.Status(t.Context())
		if err != nil || !slices.ContainsFunc(s.Warnings, func(w api.Warning) bool { return w.Rule == "hard-zoning-abnormal" }) {
			t.Errorf("%+v %v", s.Warnings, err)
		}
		f.isolate(false)
		if h, err := n.d.HardZoning(t.Context()); err != nil || h.State != api.HardOff {
			t.Errorf("%+v %v", h, err)
		}
	})
}

// hostsAre sees what show host says of hard zoning.
func hostsAre(t *testing.T, d *Daemon, state api.HardState, why string) {
	t.Helper()
	hosts, err := ask[[]api.Host](t.Context(), d, "hosts")
	if err != nil || len(hosts) == 0 {
		t.Fatalf("%d hosts, %v", len(hosts), err)
	}
	for _, h := range hosts {
		if h.Hard != state || strings.Join(h.HardWhy, " ") != why {
			t.Errorf("host %s: %s %q, want %s %q", h.Addr, h.Hard, h.HardWhy, state, why)
		}
	}
}

func TestTheRowsAreInTheKernelBeforeTheFiltersAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeSwitches(t)
		n, filter, tries := f.nodes["tor1"], newFakeFilter(), 0
		n.halt()
		n.tune = func(e *Env) {
			e.HardZoning = func(hardzone.Config) (hardzone.Dataplane, error) {
				if tries++; tries == 1 {
					return nil, errors.New("not yet")
				}
				return filter, nil
			}
		}
		n.start()
		time.Sleep(3 * time.Second)
		f.isolate(true)
		if h, err := n.d.HardZoning(t.Context()); err != nil || h.State != api.HardAbnormal || h.Why[0] != "not yet" {
			t.Errorf("%+v %v", h, err)
		}
		hostsAre(t, n.d, api.HardAbnormal, "not yet")
		time.Sleep(2 * hardRetry)
		hostsAre(t, n.d, api.HardNormal, "")
		_ = n.d.device.Do(t.Context(), func(c *device.Core, now time.Time) { // before the rows are looked at
			c.CloseHardNow(now)
			if state, _ := c.HardState(); state != api.HardProcessing {
				t.Errorf("all rows are to be looked at: %s", state)
			}
		})
		time.Sleep(time.Second)
		hostsAre(t, n.d, api.HardNormal, "")
		h, err := n.d.HardZoning(t.Context())
		if err != nil || h.State != api.HardNormal || h.Local == 0 || h.Pairs == 0 || len(h.Ports) == 0 {
			t.Fatalf("%+v %v", h, err)
		}
		filter.mu.Lock()
		if filter.early || len(filter.hosts) != h.Hosts || len(filter.pairs) != h.Pairs {
			t.Errorf("early: %t, %d hosts, %d pairs; want %+v", filter.early, len(filter.hosts), len(filter.pairs), h)
		}
		filter.mu.Unlock()
		var pair [2]netip.Addr
		_ = n.d.device.Do(t.Context(), func(c *device.Core, _ time.Time) {
			d := c.Directory()
			for a := range d.Addrs() {
				for b := range d.Peers(a) {
					if len(d.PortsAt(a, d.Self())) > 0 && d.MayExchange(a, b) {
						pair = [2]netip.Addr{a, b}
						return
					}
				}
			}
		})
		w, err := n.d.Why(t.Context(), pair[0], pair[1])
		if err != nil || w.Hard == nil || !w.Hard.May || w.Hard.Kernel != api.HardKernelPasses || !w.Hard.Agrees {
			t.Errorf("%+v %v", w.Hard, err)
		}
		if err := n.d.OrderHardZoning(t.Context(), api.HardSuspend); err != nil || !filter.is(&filter.suspended) {
			t.Error(err)
		}
		if err := n.d.OrderHardZoning(t.Context(), "away"); !errors.Is(err, api.ErrInvalid) {
			t.Error(err)
		}
		f.isolate(false)
		if !filter.is(&filter.removed) {
			t.Error("the filter is still there")
		}
		if filter.is(&filter.cut) {
			t.Error("what the reader of samples reads was closed before it had ended")
		}
	})
}
