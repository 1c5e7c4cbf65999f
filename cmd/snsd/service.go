package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux"
	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/internal/journald"
	"github.com/openinof/inof/internal/logbound"
	"github.com/openinof/inof/snsd"
)

// Where the configuration is looked for.
type files struct{ yaml, existing string }

func (f *files) flags(c *cobra.Command) {
	c.Flags().StringVarP(&f.yaml, "config", "c", hostagent.DefaultFile, "configuration")
	c.Flags().StringVar(&f.existing, "existing", hostagent.ExistingFile, "configuration of the existing agent, read before the other one; empty: not read")
}

// Times of the service.
const (
	servedEvery = time.Second     // what nvmet serves is looked at: it tells nobody
	linger      = 2 * time.Second // after the good-bye of a target, so that hosts leave before it is gone
	frameRate   = 20_000          // frames a second that are taken from a port: those of a storm
)

func runCmd() *cobra.Command {
	var f files
	c := &cobra.Command{Use: "run", Short: "Run the agent by its configuration, as a service does", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			lines := func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) }
			handler := lines(cmd.ErrOrStderr())
			if journald.Here() {
				handler = journald.New(cmd.ErrOrStderr(), lines)
			}
			return serve(ctx, f, slog.New(logbound.New(handler)))
		}}
	f.flags(c)
	return c
}

// service is the running agent.
type service struct {
	files   files
	kernel  hostkernel.Linux
	log     *slog.Logger
	cfg     hostagent.Config
	agent   *hostagent.Agent
	actor   *hostagent.Actor
	dp      *linux.Dataplane
	ports   []hostagent.Port
	direct  map[hostkey]bool // that were handed to the actor
	missing []string
	fences  fences
}

type hostkey struct{ host, target string }

func serve(ctx context.Context, f files, log *slog.Logger) error {
	s := &service{files: f, kernel: kernel(), log: log, direct: map[hostkey]bool{}}
	cfg, notes, err := hostagent.Load(f.yaml, f.existing)
	if err != nil {
		return err
	}
	for _, n := range notes {
		log.Info("configuration", "note", n)
	}
	s.cfg = cfg
	policy, err := s.policy()
	if err != nil {
		return err
	}
	if err := lockMemory(); err != nil {
		log.Info("memory is not locked", "error", err)
	}
	if err := s.kernel.Writer.Start(); err != nil { // at once: it is needed when there is no time to start it
		log.Warn("controllers cannot be reset", "error", err)
	}
	s.warnOfOthers()
	if err := s.look(); err != nil {
		return err
	}
	if s.dp, err = linux.New(linux.Config{Access: names(s.ports), FrameRate: frameRate, CarrierPoll: -1, Carrier: fabric.CarrierNetlink}); err != nil {
		return err
	}
	s.agent = hostagent.New(s.dp, s.ports, hostagent.NewHooks(cfg.Hooks.OnActive, cfg.Hooks.OnInactive), s.say)
	events, err := hostkernel.Events(ctx)
	if err != nil {
		log.Warn("controllers are looked at each second only", "error", err)
	}
	s.actor = hostagent.NewActor(s.kernel, policy, hostagent.Discover, events, s.agent.Report)
	s.agent.Act(s.actor)
	endFences, err := s.startFences(ctx)
	if err != nil {
		return err
	}
	defer endFences()
	changes, err := hostkernel.WatchInterfaces(ctx)
	if err != nil {
		return err
	}
	stop, err := s.listen()
	if err != nil {
		return err
	}
	defer stop()
	go s.actor.Run(ctx)
	done := make(chan error, 1)
	go func() { done <- s.agent.Run(ctx) }()
	s.connectDirect()
	_, _ = sd.SdNotify(false, sd.SdNotifyReady)
	err = s.follow(ctx, changes, done)
	_, _ = sd.SdNotify(false, sd.SdNotifyStopping)
	if err == nil && slices.ContainsFunc(s.ports, func(p hostagent.Port) bool { return p.Farewell && serves(&p) }) {
		time.Sleep(linger)
	}
	return err
}

// serves reports whether a port has an address of a target.
func serves(p *hostagent.Port) bool {
	for _, svc := range p.Services {
		if svc.Role == snsd.RoleTarget || svc.Role == snsd.RoleBoth {
			return true
		}
	}
	return false
}

// follow takes changes of interfaces, of what nvmet serves and of the configuration until the agent
// ends.
func (s *service) follow(ctx context.Context, changes <-chan struct{}, done <-chan error) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	served := time.NewTicker(servedEvery)
	defer served.Stop()
	var watchdog <-chan time.Time
	if every, err := sd.SdWatchdogEnabled(false); err == nil && every > 0 {
		t := time.NewTicker(every / 3)
		defer t.Stop()
		watchdog = t.C
	}
	for {
		select {
		case err := <-done:
			return err
		case <-changes:
		case <-served.C:
			if !s.cfg.Target.Nvmet {
				continue
			}
		case <-hup:
			s.reload()
		case <-watchdog:
			// Its loop answers, or the dog is not fed.
			ask, cancel := context.WithTimeout(ctx, time.Second)
			if _, err := s.agent.Status(ask); err == nil {
				_, _ = sd.SdNotify(false, sd.SdNotifyWatchdog)
			}
			cancel()
			continue
		}
		if err := s.look(); err != nil {
			s.log.Warn("interfaces", "error", err)
			continue
		}
		s.agent.Change(ctx, s.ports)
		if err := s.dp.SetAccess(names(s.ports)); err != nil {
			s.log.Warn("interfaces", "error", err)
		}
		s.connectDirect()
	}
}

// look works out what is to be registered over which cable now.
func (s *service) look() error {
	have, err := hostkernel.Interfaces()
	if err != nil {
		return err
	}
	cfg := s.cfg
	if cfg.Target.Nvmet || s.fences.target != nil {
		served, err := s.kernel.Served()
		if err != nil {
			s.log.Warn("target", "error", err) // what was read counts
		}
		if cfg.Target.Nvmet {
			cfg = cfg.WithServed(served, have)
		}
		s.fences.follow(served, have, s.log)
	}
	ports, missing := cfg.Cables(have)
	if !slices.Equal(missing, s.missing) {
		for _, m := range missing {
			s.log.Warn("nothing is registered yet", "reason", m)
		}
		s.missing = missing
	}
	s.ports = ports
	return nil
}

// names are the cables that the dataplane is to have: there may be none yet, but never the
// loopback.
func names(ports []hostagent.Port) []string {
	list := []string{"!lo"}
	for _, p := range ports {
		list = append(list, p.Interface)
	}
	return list
}

func (s *service) policy() (hostagent.Policy, error) {
	id := hostkernel.Identity{NQN: s.cfg.Host.NQN, ID: s.cfg.Host.ID}
	if id.NQN == "" {
		var err error
		if id, err = s.kernel.Identity(); err != nil {
			return hostagent.Policy{}, err
		}
	}
	if doubt := id.Doubt(); doubt != "" {
		s.log.Warn(doubt)
	}
	return s.cfg.Policy(id), nil
}

// reload takes a new configuration, and keeps the old one if it is wrong. Nothing is disconnected.
func (s *service) reload() {
	_, _ = sd.SdNotify(false, sd.SdNotifyReloading)
	defer func() { _, _ = sd.SdNotify(false, sd.SdNotifyReady) }()
	cfg, _, err := hostagent.Load(s.files.yaml, s.files.existing)
	if err != nil {
		s.log.Error("reload: the old configuration stays", "error", err)
		return
	}
	old := s.cfg
	s.cfg = cfg
	policy, err := s.policy()
	if err != nil {
		s.cfg = old
		s.log.Error("reload: the old configuration stays", "error", err)
		return
	}
	s.actor.SetPolicy(policy)
	if old.Socket != cfg.Socket || old.Metrics != cfg.Metrics || !reflect.DeepEqual(old.Hooks, cfg.Hooks) || !reflect.DeepEqual(old.FenceService, cfg.FenceService) {
		s.log.Warn("reload: socket, metrics, hooks and fence-service wait for a restart")
	}
	s.log.Info("reloaded")
}

// connectDirect hands the targets that no switch tells of to the actor, each once.
func (s *service) connectDirect() {
	for _, d := range s.cfg.Direct {
		k := hostkey{d.Host.String(), d.Target.String()}
		if s.direct[k] {
			continue
		}
		s.direct[k] = true
		s.actor.Connect(snsd.Notice{Subject: d.Target, Host: d.Host, State: snsd.Active,
			Service: snsd.Service{Role: snsd.RoleTarget, Protocol: d.Protocol, Port: d.Port, NQN: d.NQN}}, time.Now())
	}
}

// warnOfOthers says what else on this host may delete controllers.
func (s *service) warnOfOthers() {
	if _, err := os.Stat("/run/nvme-stas"); err == nil {
		s.log.Warn("nvme-stas runs here: with all connections in its scope it deletes controllers that are in no discovery log")
	}
	if on, err := s.kernel.Multipath(); err != nil {
		s.log.Warn("this kernel has no NVMe yet: modprobe nvme-tcp", "error", err)
	} else if !on {
		s.log.Warn("native multipath is off (nvme_core.multipath=N): I/O of a dead path has nowhere to go")
	}
}

// say logs what an operator wants to know.
func (s *service) say(l line) error {
	switch {
	case l.Action != nil && l.Action.Error != "":
		s.log.Warn(l.Action.Text())
	case l.Action != nil:
		s.log.Info(l.Action.Text())
	case l.Event == "notice" || l.Event == "link" || l.Event == "withdrawn":
		s.log.Info(oneLine(&l))
	case l.Event == "refused" || l.Event == "no-room" || l.Event == "error":
		s.log.Warn(oneLine(&l))
	}
	return nil
}

var errStopped = errors.New("the agent does not run here")
