package linux

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/vishvananda/netns"
)

// inNetNS runs fn in a network namespace (see Config.NetNS); what fn opens stays
// there. An empty name means right here.
func inNetNS(name string, fn func() error) error {
	if name == "" {
		return fn()
	}
	path := name
	if !strings.Contains(name, "/") {
		path = "/run/netns/" + name
	}
	target, err := netns.GetFromPath(path)
	if err != nil {
		return fmt.Errorf("network namespace %q: open %s: %w", name, path, err)
	}
	defer target.Close()

	done := make(chan error, 1)
	go func() {
		// The thread is never unlocked unless it is back home: the runtime ends a
		// thread whose goroutine ended while locked to it.
		runtime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			done <- fmt.Errorf("own network namespace: %w", err)
			return
		}
		defer home.Close()
		if err := netns.Set(target); err != nil {
			done <- fmt.Errorf("network namespace %q: enter: %w", name, err)
			return
		}
		err = fn()
		if netns.Set(home) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}
