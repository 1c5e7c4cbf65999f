package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

// askWithin is how long the agent's loop may take to answer.
const askWithin = 2 * time.Second

// status is what `snsd status` shows: the agent's own, and the kernel's controllers.
type status struct {
	hostagent.Status
	Controllers []controller `json:"controllers"`
	Note        string       `json:"note,omitempty"` // why there cannot be any yet
	Warnings    []string     `json:"warnings,omitempty"`
	Error       string       `json:"error,omitempty"` // of reading them
	Array       *arrayStatus `json:"array,omitempty"` // where this agent fences paths of hosts
}

type controller struct {
	Name   string           `json:"name"`
	State  hostkernel.State `json:"state"`
	NQN    string           `json:"nqn"`
	Target string           `json:"target"`
	Source string           `json:"source"`
	Owner  string           `json:"owner,omitempty"`
}

func (s *service) status(ctx context.Context) (status, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	own, err := s.agent.Status(ctx)
	st := status{Status: own, Controllers: []controller{}, Array: s.fences.status(), Warnings: s.warnings()}
	cs, kerr := s.kernel.Controllers()
	switch {
	case len(cs) == 0 && errors.Is(kerr, fs.ErrNotExist):
		st.Note = kerr.Error()
	case kerr != nil:
		st.Error = kerr.Error()
	}
	for i := range cs {
		c := &cs[i]
		st.Controllers = append(st.Controllers, controller{c.Name(), c.State, c.NQN, c.Target.String(), c.Source.String(), c.Owner})
	}
	return st, err
}

// warnings are those that are of the host as a whole.
func (s *service) warnings() (list []string) {
	o := s.actor.Policy().Options
	if doubt := (&hostkernel.Identity{NQN: o.HostNQN, ID: o.HostID}).Doubt(); doubt != "" {
		list = append(list, doubt)
	}
	return list
}

// foreseeWithin is how long arrays may take to say whether they could fence.
const foreseeWithin = 5 * time.Second

// foresight is what `snsd doctor` asks a running agent for.
type foresight struct {
	Mode        string                 `json:"mode"`
	Fence       hostagent.FenceMode    `json:"fence"`
	Ports       []hostagent.PortStatus `json:"ports"`
	Controllers []hostagent.Foresight  `json:"controllers"`
}

func (s *service) foresee(ctx context.Context) (f foresight, err error) {
	ctx, cancel := context.WithTimeout(ctx, foreseeWithin)
	defer cancel()
	st, err := s.agent.Status(ctx)
	if err != nil {
		return f, err
	}
	f.Mode, f.Fence, f.Ports = st.Mode, st.Fence, st.Ports
	f.Controllers, err = s.actor.Foresee(ctx, st.Ports)
	if len(f.Controllers) > 0 {
		err = nil // what can be read
	}
	return f, err
}

// listen serves the status and the metrics until stop is called. While another agent answers on the
// socket it is refused: two would register every address twice, and the first to end would take the
// socket of the other away.
func (s *service) listen() (stop func(), err error) {
	l, err := api.Listen(s.cfg.Socket, 0o600, "")
	if errors.Is(err, api.ErrInUse) {
		return nil, fmt.Errorf("another agent runs on this host: it answers on %s", s.cfg.Socket)
	}
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		st, err := s.status(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(st)
	})
	mux.HandleFunc("GET /foresight", func(w http.ResponseWriter, r *http.Request) {
		f, err := s.foresee(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(f)
	})
	servers := []*http.Server{{Handler: mux, ReadHeaderTimeout: askWithin}}
	go func() { _ = servers[0].Serve(l) }()
	if s.cfg.Metrics != "" {
		m, err := net.Listen("tcp", s.cfg.Metrics)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("metrics: %w", err)
		}
		reg := prometheus.NewRegistry()
		reg.MustRegister(collector{s})
		servers = append(servers, &http.Server{Handler: promhttp.HandlerFor(reg, promhttp.HandlerOpts{}), ReadHeaderTimeout: askWithin})
		go func() { _ = servers[1].Serve(m) }()
	}
	return func() {
		for _, srv := range servers {
			srv.Close()
		}
		l.Close() // also when it was not served yet
	}, nil
}

// collector gives the status as metrics.
type collector struct{ s *service }

var (
	descActions  = prometheus.NewDesc("snsd_actions_total", "What was done about paths, by kind and outcome.", []string{"kind", "result"}, nil)
	descLink     = prometheus.NewDesc("snsd_link_up", "Whether a port has its link.", []string{"interface"}, nil)
	descNotices  = prometheus.NewDesc("snsd_notices_total", "Notices received, by port.", []string{"interface"}, nil)
	descRefused  = prometheus.NewDesc("snsd_notices_refused_total", "Notices and frames that were malformed or not for this host, by port.", []string{"interface"}, nil)
	descRepeated = prometheus.NewDesc("snsd_notices_repeated_total", "Notices that were received before, by port.", []string{"interface"}, nil)
	descDropped  = prometheus.NewDesc("snsd_notices_dropped_total", "Notices of new targets for which there was no room: neither acked nor acted upon, by port.", []string{"interface"}, nil)
	descPeers    = prometheus.NewDesc("snsd_peers", "Targets by the last word about them.", []string{"interface", "state"}, nil)
	descFences   = prometheus.NewDesc("snsd_fences_total", "Paths that were left, by level and way of their fence.", []string{"level", "way"}, nil)
	descForged   = prometheus.NewDesc("snsd_frames_refused_total", "Frames of EtherType 0x88A7 that were not read because of their source or destination, by port.", []string{"interface", "why"}, nil)
	descObserve  = prometheus.NewDesc("snsd_observe", "Whether the agent only observes (mode: observe).", nil, nil)
	descHooks    = prometheus.NewDesc("snsd_hooks_total", "Calls of hooks, by outcome.", []string{"result"}, nil)
	descFenced   = prometheus.NewDesc("snsd_array_fences_total", "Fences of hosts' paths at this array, by outcome.", []string{"result"}, nil)
	descCallers  = prometheus.NewDesc("snsd_array_callers_total", "Connections of hosts that ask this array for fences, by outcome.", []string{"result"}, nil)
	descStates   = prometheus.NewDesc("snsd_controllers", "NVMe controllers over fabrics, by state.", []string{"state"}, nil)
)

// Describe implements prometheus.Collector.
func (collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descActions, descLink, descNotices, descRefused, descRepeated, descDropped, descPeers, descHooks, descFenced, descCallers, descStates, descFences, descForged, descObserve} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	st, err := c.s.status(context.Background())
	if err != nil {
		return
	}
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	for kind, n := range st.Counts {
		count(descActions, n.Done-n.Failed, kind, "done")
		count(descActions, n.Failed, kind, "failed")
	}
	for _, p := range st.Ports {
		up := 0
		if p.Link == "up" {
			up = 1
		}
		gauge(descLink, up, p.Interface)
		count(descNotices, p.Counters.Received.Notices, p.Interface)
		count(descRefused, p.Counters.NotOurs+p.Counters.Received.Malformed+p.Counters.Received.BadRoots+p.Counters.Received.NewerVersion, p.Interface)
		count(descRepeated, p.Counters.Duplicates, p.Interface)
		count(descDropped, p.Counters.TableFull, p.Interface)
		states := map[string]int{"active": 0, "inactive": 0}
		for _, n := range p.Peers {
			states[n.State.String()]++
		}
		for state, n := range states {
			gauge(descPeers, n, p.Interface, state)
		}
	}
	for _, f := range st.Fences {
		count(descFences, f.Count, f.Level.String(), f.Way.String())
	}
	for _, p := range st.Ports {
		count(descForged, p.Refusals.Destination, p.Interface, "destination")
		count(descForged, p.Refusals.Source, p.Interface, "source")
		count(descForged, p.Refusals.NoSwitch, p.Interface, "no-switch")
	}
	observe := 0
	if st.Mode == string(hostagent.ModeObserve) {
		observe = 1
	}
	gauge(descObserve, observe)
	if a := st.Array; a != nil {
		for result, n := range map[string]uint64{"fenced": a.Fences.Fenced, "failed": a.Fences.Failed, "unasked": a.Fences.Unasked, "confirmed": a.Fences.Confirmed, "expired": a.Fences.Expired} {
			count(descFenced, n, result)
		}
		c := &a.Callers
		turned := c.TooMany + c.Handshakes + c.Malformed + c.Denied
		for result, n := range map[string]uint64{"accepted": c.Connections - min(turned, c.Connections), "too-many": c.TooMany, "no-identity": c.Handshakes, "malformed": c.Malformed, "denied": c.Denied} {
			count(descCallers, n, result)
		}
	}
	states := map[hostkernel.State]int{}
	for _, c := range st.Controllers {
		states[c.State]++
	}
	for state, n := range states {
		gauge(descStates, n, string(state))
	}
	count(descHooks, st.Hooks.Done-st.Hooks.Failed, "done")
	count(descHooks, st.Hooks.Failed, "failed")
	count(descHooks, st.Hooks.Skipped, "skipped")
}

func statusCmd() *cobra.Command {
	socket, output := hostagent.DefaultSocket, "text"
	c := &cobra.Command{Use: "status", Short: "What the running agent registers, was told and did, with times", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output %q: want text or json", output)
			}
			st, err := askStatus(cmd.Context(), socket)
			if err != nil {
				return err
			}
			if output == "json" {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				if err := enc.Encode(st); err != nil {
					return err
				}
			} else {
				printStatus(cmd.OutOrStdout(), st)
			}
			return st.trouble()
		}}
	c.Flags().StringVar(&socket, "socket", socket, "of the agent")
	c.Flags().StringVarP(&output, "output", "o", output, "text or json")
	return c
}

func askStatus(ctx context.Context, socket string) (*status, error) {
	st := new(status)
	return st, ask(ctx, socket, "status", 2*askWithin, st)
}

// ask reads what the agent that runs here says.
func ask(ctx context.Context, socket, what string, within time.Duration, reply any) error {
	client := &http.Client{Timeout: within, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://snsd/"+what, nil)
	if err != nil {
		return err
	}
	r, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%w: systemctl status snsd: %w", errStopped, err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(r.Body, 1024))
		return fmt.Errorf("the agent answers: %s", b)
	}
	return json.NewDecoder(r.Body).Decode(reply)
}

// trouble is what the agent could not do.
func (st *status) trouble() error {
	var errs []error
	if st.Error != "" {
		errs = append(errs, errors.New("controllers: "+st.Error))
	}
	if st.Array != nil && st.Array.Error != "" {
		errs = append(errs, errors.New("array: no fence: "+st.Array.Error))
	}
	return errors.Join(errs...)
}

func printStatus(w io.Writer, st *status) {
	fmt.Fprintf(w, "mode %s, fence %s\n", st.Mode, st.Fence)
	if st.Note != "" {
		fmt.Fprintln(w, st.Note)
	}
	for _, warning := range st.Warnings {
		fmt.Fprintln(w, "warning:", warning)
	}
	for _, p := range st.Ports {
		fmt.Fprintf(w, "%s %s %v %s %s: %d notices, %d repeated\n", p.Interface, p.Link, p.Addresses, p.Service.Role, p.Service.Protocol, p.Counters.Received.Notices, p.Counters.Duplicates)
		fmt.Fprintf(w, "  switch %v, fences announced: %v, frames refused: %d by source, %d by destination, %d without a known switch\n",
			p.Switches, p.Fences, p.Refusals.Source, p.Refusals.Destination, p.Refusals.NoSwitch)
		for _, warning := range p.Warnings {
			fmt.Fprintln(w, "  warning:", warning)
		}
		for _, n := range p.Peers {
			fmt.Fprintf(w, "  %v %s (%s) %s", n.Subject, n.State, n.Reason, n.Service.NQN)
			if n.Fence != nil {
				fmt.Fprintf(w, " fence %v", n.Fence)
			}
			fmt.Fprintln(w)
		}
	}
	for _, c := range st.Controllers {
		fmt.Fprintf(w, "%s %s %s from %s %s owner %q\n", c.Name, c.State, c.Target, c.Source, c.NQN, c.Owner)
	}
	for _, f := range st.Fences {
		if f.Level == snsd.FenceNone {
			fmt.Fprintf(w, "not fenced: %d paths\n", f.Count)
		} else {
			fmt.Fprintf(w, "fenced: %v by %v: %d paths\n", f.Level, f.Way, f.Count)
		}
	}
	if a := st.Array; a != nil {
		fmt.Fprintf(w, "array: %d paths fenced (%d unasked), %d not; %d confirmed by their hosts, %d blocks ended by time\n", a.Fences.Fenced, a.Fences.Unasked, a.Fences.Failed, a.Fences.Confirmed, a.Fences.Expired)
	}
	for i := range st.Actions {
		fmt.Fprintf(w, "%s %s\n", st.Actions[i].Done.Format("2006-01-02 15:04:05.000"), st.Actions[i].Text())
	}
}
