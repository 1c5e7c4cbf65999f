package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/openinof/inof/device"
	"github.com/openinof/inof/internal/daemon"
)

// ready tells the service manager that everything runs; it waits for that, so it is
// worth a line when it cannot be told, whatever the reason.
func ready() { tell(os.Stderr, sd.SdNotifyReady, false) }

// notify tells the service manager what else there is. Without one it does nothing, and
// neither when the one that started us was only there until we were ready.
func notify(state string) { tell(os.Stderr, state, true) }

func tell(errs io.Writer, state string, mayBeGone bool) {
	_, err := sd.SdNotify(false, state)
	if err == nil || mayBeGone && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED)) {
		return
	}
	fmt.Fprintln(errs, "inofd: service manager cannot be told:", err)
}

// reloads reads the configuration again at each SIGHUP, never by force: a signal says
// nothing about who sent it or why. It tells the service
// manager when it is stopping.
func reloads(ctx context.Context, d *daemon.Daemon, hup <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			notify(sd.SdNotifyStopping)
			return
		case <-hup:
		}
		notify(reloading())
		_, _ = d.ReloadConfig(ctx, false) // counted and told as events
		notify(sd.SdNotifyReady)
	}
}

// reloading is the message of Type=notify-reload (systemd.service(5)).
func reloading() string {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return sd.SdNotifyReloading
	}
	return fmt.Sprintf("%s\nMONOTONIC_USEC=%d", sd.SdNotifyReloading, ts.Nano()/1000)
}

// watchdog keeps the service manager's watchdog quiet as long as the owner
// goroutine answers.
func watchdog(ctx context.Context, d *daemon.Daemon) {
	interval, err := sd.SdWatchdogEnabled(false)
	if err != nil || interval == 0 {
		return
	}
	t := time.NewTicker(interval / 2)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if d.Device().Do(ctx, func(*device.Core, time.Time) {}) == nil {
				notify(sd.SdNotifyWatchdog)
			}
		}
	}
}
