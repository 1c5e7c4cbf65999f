// Command snsd is the SNSD agent of a storage host: it registers the host's
// addresses with the access switch by LLDP, queries its zones, acks notices, and
// prints what it is told. With --fail-over it leaves dead paths over NVMe/TCP; it makes no NVMe
// connections itself: a line says what an agent of the existing kind would do, and when.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "snsd:", explain(err))
		os.Exit(1)
	}
}

func command() *cobra.Command {
	o := options{role: "initiator", protocol: "roce"}
	cmd := &cobra.Command{
		Use: "snsd --interface IFNAME --address ADDRESS [flags]", Short: "SNSD agent of a storage host",
		Long: `snsd registers addresses of this host with its access switch (LLDP), asks for the
state of its zones, acks what it is told and prints one line for each event:
link, registered, query, notice, duplicate, ack, connect, disconnect, probe,
refused, deaf, queue-full, withdrawn, dropped (a frame that the driver did not take), failover, error.
Times of notices are those at which the kernel received the frame.`,
		Example: `  snsd --interface eth1 --address 192.0.2.1
  snsd --interface eth1 --address 192.0.2.7 --role target --nqn nqn.2026-01.net.example:array1 --output json`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true, Version: api.VersionText(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return run(ctx, o, cmd.OutOrStdout())
		},
	}
	cmd.SetContext(context.Background())
	f := cmd.Flags()
	f.StringVarP(&o.ifname, "interface", "i", "", "network interface (required)")
	f.StringSliceVarP(&o.addresses, "address", "a", nil, "address to register, up to 64; repeat or separate by commas (required)")
	f.StringVar(&o.role, "role", o.role, "target, initiator or both")
	f.StringVar(&o.protocol, "protocol", o.protocol, "roce, tcp or iscsi")
	f.Uint16Var(&o.servicePort, "service-port", 0, "port of the storage service; 0 is the protocol's default")
	f.StringVar(&o.nqn, "nqn", "", "NVMe qualified name, up to 255 bytes")
	f.DurationVar(&o.interval, "interval", snsd.DefaultRegisterInterval, "time between registrations, at least 100ms")
	f.Uint16Var(&o.ttl, "ttl", snsd.DefaultRegisterTTL, "how long the switch keeps a registration, in seconds")
	f.DurationVar(&o.restraint, "restraint", snsd.DefaultRestraint, "time from an active notice to the connection")
	f.BoolVar(&o.subscribe, "subscribe", true, "ask for notices")
	f.BoolVar(&o.noAck, "no-ack", false, "register, but ack nothing")
	f.BoolVar(&o.silent, "silent", false, "listen only: neither register nor ack")
	f.Float64Var(&o.loseAcks, "lose-acks", 0, "share of acks not sent, 0..1")
	f.BoolVar(&o.likeAgent, "like-agent", false, "have the habits of the existing agent, such as a slow queue and silence when the link comes back (for labs)")
	f.BoolVar(&o.legacy, "legacy", false, "send version 0 of the NTS format")
	f.StringVarP(&o.output, "output", "o", "text", "text or json (one object a line)")
	f.DurationVar(&o.lasts, "for", 0, "stop after this time; 0 runs until SIGTERM")
	f.BoolVar(&o.shutdownPDU, "shutdown-pdu", false, "withdraw the registration (LLDP TTL 0) when stopping")
	f.BoolVar(&o.failOver, "fail-over", false, "leave paths that a notice calls dead: destroy the TCP sockets of their NVMe controllers, so that multipath moves the I/O at once")
	_ = cmd.MarkFlagRequired("interface")
	_ = cmd.MarkFlagRequired("address")
	return cmd
}

// run checks the options and works until the context ends, or the time given by --for is over.
func run(ctx context.Context, o options, out writer) error {
	cfg, err := o.agent()
	if err != nil {
		return err
	}
	printLine, err := newPrinter(o.output, out)
	if err != nil {
		return err
	}
	if err := checkInterface(o.ifname); o.netns == "" && err != nil {
		return err
	}
	if o.lasts > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.lasts)
		defer cancel()
	}
	h := &host{opts: o, cfg: cfg, print: printLine, ignored: make(map[pairKey]uint32), now: time.Now}
	if o.failOver {
		h.mover = newMover()
		go h.mover.run(ctx)
	}
	return h.run(ctx)
}

// explain adds what to do about an error that has one well-known cure.
func explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w\nRun it as root, or give it the right once: setcap cap_net_raw+ep $(command -v snsd)", err)
	}
	return err
}
