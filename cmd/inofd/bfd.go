package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/bfdd"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/internal/daemon"
)

// bfdCommand is the process that holds the BFD sessions. A service manager starts it
// with a configuration, inofd with all that it needs to know.
func bfdCommand() *cobra.Command {
	var o bfdd.Options
	var path, device string
	c := &cobra.Command{
		Use: "bfd", Short: "watch paths to other devices for inofd, until SIGTERM or without inofd for the grace time", Args: cobra.NoArgs,
		Long: "Holds the BFD sessions of the device, so that inofd can be stopped, killed and started again without another device noticing. " +
			"inofd starts it by itself; as a service of its own (inofd-bfd.service) it outlives a restart of inofd's.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if path != "" {
				if ok, err := bfdFromConfig(&o, path); err != nil || !ok {
					return err
				}
			} else {
				a, err := netip.ParseAddr(device)
				if err != nil || o.Socket == "" {
					return errors.New("--config, or --socket and --device with an address, are needed")
				}
				o.Local = a.Unmap()
			}
			return runBFD(o)
		},
	}
	f := c.Flags()
	f.StringVarP(&path, "config", "c", "", "configuration file to take everything from")
	f.StringVar(&o.Socket, "socket", "", "unix socket for inofd")
	f.StringVar(&device, "device", "", "device id: the address that packets are sent from and received on")
	f.DurationVar(&o.Grace, "grace", bfdd.DefaultGrace, "how long to go on without inofd")
	f.DurationVar(&o.Wait, "wait", 0, "how long to wait for another process that has the socket; 0: as long as it takes")
	f.StringVar(&o.Format, "log-format", "text", "text or json")
	f.StringVar(&o.Level, "log-level", "info", "debug, info, warn or error")
	return c
}

// bfdFromConfig is false on a device that watches no paths.
func bfdFromConfig(o *bfdd.Options, path string) (bool, error) {
	cfg, err := config.LoadPublic(path) // the daemon says what it must know of keys
	if err != nil {
		return false, err
	}
	if !cfg.Device.Roles.Client {
		fmt.Fprintf(os.Stderr, "inofd: %s: a device that is no client watches no paths\n", path)
		return false, nil
	}
	*o = bfdOptions(cfg, cfg.BFD)
	o.Wait = 0
	return true, nil
}

// bfdOptions are those of a process for this device.
func bfdOptions(cfg *config.Config, b config.BFD) bfdd.Options {
	return bfdd.Options{Socket: b.Socket, Local: cfg.Device.ID, Grace: b.Grace, Wait: 5 * time.Second, Format: cfg.Log.Format, Level: cfg.Log.Level.String()}
}

func runBFD(o bfdd.Options) error {
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(o.Level)); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	o.Log = newLog(o.Format, level)
	o.Build = bfdd.Build(api.VersionText())
	signal.Ignore(syscall.SIGHUP) // of a terminal, and of a reload that was meant for inofd
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return bfdd.Main(ctx, o)
}

// underSystemd is how long the service manager is given to start the process.
const underSystemd = 2 * time.Second

// paths is how inofd reaches its BFD process.
func paths(cfg *config.Config) daemon.PathsEnv {
	env := daemon.PathsEnv{
		Dial: func(ctx context.Context, b config.BFD) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", b.Socket)
		},
		Start: func(b config.BFD) error { return bfdd.Start(bfdOptions(cfg, b)) },
		Build: bfdd.Build(api.VersionText()),
	}
	if os.Getenv("INVOCATION_ID") != "" { // systemd.exec(5)
		env.Patience = underSystemd
	}
	return env
}
