package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/openinof/inof/internal/api"
)

// Hard zoning in the demo: tor1 forwards between its hosts then, as a switch does, and i2 shares
// no zone with t1.
const (
	apartFrames = 5
	apartPort   = 4420
	apartWait   = 300 * time.Millisecond // for frames that must not come
	apartLeft   = "i2"
	apartRight  = "i1"
	apartTarget = "t1"
)

// keptApart has the reflector ask for isolation, and shows a pair that passes and one that does
// not. Where the kernel does not let the switch filter it says so: nothing is wrong with that.
func (d *demo) keptApart(ctx context.Context) error {
	d.sum.Steps++
	d.say("")
	d.say("%s", d.colour(bold, fmt.Sprintf("%2d. tor1 forwards between its hosts; zones.hard-zoning: true at the reflector keeps those apart that share no zone", d.sum.Steps)))
	if out, err := d.lab.Exec(ctx, "tor1", "sh", "-c", "ip link add br0 type bridge && ip link set br0 up && for p in eth1 eth2 eth3; do ip link set $p master br0; done"); err != nil {
		d.leftOut(fmt.Sprintf("no bridge: %.200s", out))
		return nil
	}
	before, err := d.frames(apartLeft)
	if err != nil {
		return err
	}
	d.say("   before: %s to %s, no common zone: %d of %d frames arrive", apartLeft, apartTarget, before, apartFrames)
	if err := d.isolate(ctx); err != nil {
		return err
	}
	h, err := d.filtered(ctx)
	if err != nil {
		return err
	}
	if h == nil {
		return nil
	}
	passes, err := d.frames(apartRight)
	if err != nil {
		return err
	}
	blocked, err := d.frames(apartLeft)
	if err != nil {
		return err
	}
	d.say("   %s to %s, zone oltp: %d of %d frames arrive", apartRight, apartTarget, passes, apartFrames)
	d.say("   %s to %s, no common zone: %d of %d frames arrive; the filter at the ports is %s", apartLeft, apartTarget, blocked, apartFrames, h.Ports[0].Attach)
	d.sum.Apart = &Apart{Permitted: passes, Denied: blocked, Sent: apartFrames}
	switch {
	case passes != apartFrames:
		d.wrong("a pair that shares a zone lost %d of %d frames", apartFrames-passes, apartFrames)
	case blocked != 0:
		d.wrong("%d frames passed between hosts that share no zone", blocked)
	}
	return nil
}

// Apart is what hard zoning let through in the demo.
type Apart struct {
	Sent      int `json:"sent"`      // by each
	Permitted int `json:"permitted"` // that arrived from the host of the same zone
	Denied    int `json:"denied"`    // that arrived from the other one: 0
}

func (d *demo) leftOut(why string) {
	d.say("   %s", d.colour(dim, "left out here: "+why))
}

// isolate asks for hard zoning at the reflector.
func (d *demo) isolate(ctx context.Context) error {
	file := d.lab.ConfigFile("spine")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, "\nzones: {hard-zoning: true}\n"...), 0o600); err != nil {
		return err
	}
	_, err = d.inofctl(ctx, "reload")
	return err
}

// filtered waits until tor1 filters; nil: it cannot.
func (d *demo) filtered(ctx context.Context) (*api.HardZoning, error) {
	var h api.HardZoning
	err := d.until(ctx, "filters at tor1", func() (err error) {
		if h, err = api.Ask[api.HardZoning](ctx, d.client("tor1"), "hard-zoning", nil); err != nil {
			return err
		}
		n := 0
		for _, p := range h.Ports {
			if p.Attach != "" {
				n++
			}
		}
		if n < 3 && (h.State != api.HardAbnormal || len(h.Ports) > n) || h.State == api.HardOff {
			return fmt.Errorf("it is %s with %d filters", h.State, n)
		}
		return nil
	})
	if err == nil && len(h.Ports) == 0 {
		d.leftOut(fmt.Sprintf("the kernel does not let tor1 filter: %.300v", h.Why))
		return nil, nil
	}
	return &h, err
}

// frames has a host send to the target, and counts what arrives.
func (d *demo) frames(from string) (n int, err error) {
	target := d.truth.info(d.truth.of(apartTarget, "A"))
	var l *net.UDPConn
	if err := d.lab.Do(apartTarget, func() (err error) {
		l, err = net.ListenUDP("udp4", &net.UDPAddr{IP: target.Addr.AsSlice(), Port: apartPort})
		return err
	}); err != nil {
		return 0, err
	}
	defer l.Close()
	err = d.lab.Do(from, func() error {
		c, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: target.Addr.AsSlice(), Port: apartPort})
		if err != nil {
			return err
		}
		defer c.Close()
		for range apartFrames {
			if _, err := c.Write([]byte("demo")); err != nil {
				return err
			}
		}
		return nil
	})
	b := make([]byte, 64)
	_ = l.SetReadDeadline(time.Now().Add(apartWait))
	for err == nil {
		if _, _, err = l.ReadFromUDPAddrPort(b); err == nil {
			n++
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return n, err
}
