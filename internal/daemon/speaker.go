package daemon

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/config"
	"github.com/openinof/inof/lldp"
)

// transmitConfig is what the device says about itself by LLDP, and whether it speaks: not where
// that is left to it and another daemon does.
func transmitConfig(cfg *config.Config, other bool) (tx lldp.TxConfig, on bool) {
	on = cfg.LLDP.Transmit == config.TransmitOn || cfg.LLDP.Transmit == config.TransmitAuto && !other
	mgmt := cfg.LLDP.ManagementAddress
	if !mgmt.IsValid() {
		mgmt = cfg.Device.ID
	}
	return lldp.TxConfig{
		Local: lldp.Local{
			SysName:      cfg.Device.Name,
			SysDesc:      "inofd " + api.Version,
			Capabilities: lldp.Capabilities{System: lldp.CapBridge | lldp.CapRouter, Enabled: lldp.CapBridge | lldp.CapRouter},
			Mgmt:         []netip.Addr{mgmt},
		},
		Interval: cfg.LLDP.Interval,
		Hold:     int((cfg.LLDP.TTL + cfg.LLDP.Interval - 1) / cfg.LLDP.Interval),
	}, on
}

// speakerWatch looks from time to time whether another LLDP daemon speaks on this device. When the
// machine starts it comes after this one, and that of SONiC minutes after.
type speakerWatch struct{ d *Daemon }

// speakerEvery is how often it looks.
const speakerEvery = 10 * time.Second

func (w speakerWatch) String() string { return "watch for other LLDP daemons" }

// Run implements task.
func (w speakerWatch) Run(ctx context.Context) error {
	return every(ctx, speakerEvery, func() { w.look(ctx) })
}

// look begins or ends the device's own LLDPDUs where that is left to it.
func (w speakerWatch) look(ctx context.Context) {
	d := w.d
	d.reloads.one.Lock() // the settings stay what they are meanwhile
	defer d.reloads.one.Unlock()
	cfg := d.cfg.Load()
	if cfg.LLDP.Transmit != config.TransmitAuto {
		return
	}
	other := d.env.OtherLLDP()
	if other == d.otherLLDP {
		return
	}
	d.otherLLDP = other
	tx, on := transmitConfig(cfg, other)
	if err := d.device.Do(ctx, func(c *device.Core, now time.Time) { c.SetTransmit(tx, on, now) }); err != nil {
		return // the device stops
	}
	text := "another LLDP daemon speaks on this device: inofd sends no LLDPDUs of its own any more (lldp.transmit: auto)"
	if on {
		text = "no other LLDP daemon speaks on this device any more: inofd sends its own LLDPDUs (lldp.transmit: auto)"
	}
	d.log.Append(api.Event{Time: d.env.Now(), Kind: "config", Text: text, Fields: map[string]string{"room": "lldp"}})
}

// otherLLDPDaemon reports whether lldpd runs in our network namespace: two speakers
// on one port would make two neighbours of one switch. One whose namespace we may not
// look at, because we do not run as root, is taken for one of ours.
func otherLLDPDaemon() bool {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return false
	}
	comms, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return false
	}
	for _, path := range comms {
		b, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(b)) != "lldpd" {
			continue
		}
		ns, err := os.Readlink(filepath.Join(filepath.Dir(path), "ns/net"))
		if err == nil && ns == own || errors.Is(err, os.ErrPermission) {
			return true
		}
	}
	return false
}
