// Command snsd is the SNSD agent of a storage host: it registers the host's
// addresses with the access switch by LLDP, queries its zones, acks notices, and acts on the host's
// NVMe controllers. `snsd run` is the service, by its configuration; without a command it is one
// interface of a lab, by its flags, and prints what it is told.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/fabric/linux"
	"github.com/openinof/inof/hostagent"
	"github.com/openinof/inof/hostkernel"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/manual"
	"github.com/openinof/inof/snsd"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "snsd:", explain(err))
		os.Exit(1)
	}
}

func command() *cobra.Command {
	o := options{role: "initiator", protocol: "roce", fence: hostagent.FencePrefer.String()}
	cmd := &cobra.Command{
		Use: "snsd --interface IFNAME --address ADDRESS [flags]", Short: "SNSD agent of a storage host",
		Long: `snsd registers addresses of this host with its access switch (LLDP), asks for the
state of its zones, acks what it is told and prints one line for each event:
link, registered, query, notice, duplicate, ack, connect, disconnect, probe,
switch (that LLDP shows), refused, fenced, deaf, no-room, withdrawn, dropped (a frame that the driver did not take), failover, error.
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
	cmd.AddCommand(runCmd(), checkCmd(), statusCmd(), doctorCmd(), writeFilesCmd(), manual.Command("8", api.Version))
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
	f.BoolVar(&o.failOver, "fail-over", false, "leave paths that a notice calls dead: destroy the TCP sockets of their NVMe controllers, so that multipath moves the I/O at once; with --like-agent by the existing agent's method")
	f.StringVar(&o.fence, "fence", o.fence, "with --fail-over: what must be known of writes under way before a path is left: prefer, require or off")
	f.StringSliceVar(&o.switches, "switch", nil, "MAC address of the switch whose notices count; without it the one that LLDP shows on the link")
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
	switches, err := o.trusted()
	if err != nil {
		return err
	}
	policy, err := o.policy()
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
	dp, err := linux.New(linux.Config{Access: []string{o.ifname}, NetNS: o.netns, Carrier: fabric.CarrierNetlink})
	if err != nil {
		return fmt.Errorf("--interface %q: %w", o.ifname, err)
	}
	port := hostagent.Port{AgentConfig: cfg, Like: o.likeAgent, Farewell: o.shutdownPDU, Switch: switches}
	a := hostagent.New(dp, []hostagent.Port{port}, nil, printLine)
	if o.failOver {
		k := kernel()
		if err := k.Writer.Start(); err != nil {
			return err
		}
		actor := hostagent.NewActor(k, policy, nil, nil, a.Report)
		a.Act(actor)
		go actor.Run(ctx)
	}
	return a.Run(ctx)
}

// kernel is the running one.
func kernel() hostkernel.Linux {
	return hostkernel.Linux{Writer: hostkernel.NewWriter("/proc/self/exe", "write-files")}
}

// explain adds what to do about an error that has one well-known cure.
func explain(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%w\nRun it as root, or give it the right once: setcap cap_net_raw+ep $(command -v snsd)", err)
	}
	return err
}

// writeFilesCmd writes files of the kernel for another snsd: writes that block and cannot be ended.
func writeFilesCmd() *cobra.Command {
	return &cobra.Command{Use: "write-files", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// It is needed while I/O stands still.
			_ = lockMemory()
			return hostkernel.ServeWrites(cmd.InOrStdin(), cmd.OutOrStdout())
		}}
}
