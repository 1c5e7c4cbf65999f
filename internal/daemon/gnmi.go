package daemon

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/openinof/inof/internal/gnmi"
	"github.com/openinof/inof/internal/telemetry"
)

// Snapshot implements gnmi.Source.
func (d *Daemon) Snapshot(ctx context.Context, need telemetry.Need, after time.Time) (*telemetry.Snapshot, error) {
	return d.known.Snapshot(ctx, need, after)
}

// Quick implements gnmi.Source.
func (d *Daemon) Quick(ctx context.Context) (*telemetry.Snapshot, error) { return d.known.Quick(ctx) }

// Hasten implements gnmi.Source.
func (d *Daemon) Hasten(p telemetry.Pace) (end func()) { return d.known.Hasten(p) }

// telemetryTask serves gNMI on a network.
type telemetryTask struct {
	d      *Daemon
	server *gnmi.Server
}

func (d *Daemon) newGNMI() *telemetryTask {
	return &telemetryTask{d, gnmi.New(d, d.door("management.gnmi"), d.env.Now)}
}

func (t *telemetryTask) String() string { return "gNMI" }

func (t *telemetryTask) Run(ctx context.Context) error {
	return t.d.again(ctx, "management.gnmi", func(ctx context.Context) error {
		m := t.d.cfg.Load().Management
		l, err := t.d.visitors(ctx, m.GNMI)
		if err != nil {
			return err
		}
		cert, err := shown(m.HTTP)
		if err != nil {
			l.Close()
			return err
		}
		var conf *tls.Config
		if cert != nil {
			conf = tlsWith(cert, m.HTTP, "h2")
		}
		return t.server.Serve(ctx, l, conf)
	})
}
