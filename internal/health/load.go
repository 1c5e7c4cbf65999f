package health

import (
	"fmt"
	"time"
)

const (
	// slowedShown is how long a device must have been held up to be worth a warning: a sync
	// of many hosts may be longer than a burst.
	slowedShown = 5 * time.Second
	// waitsShown is how long a message may wait to be handled without a warning.
	waitsShown = time.Second
)

// loadRules are about devices that say more than they may.
var loadRules = []Rule{
	{
		Name: "device-floods",
		When: "a device has sent more than reflector.records-per-second for five seconds and is not read any faster; others do not wait for it",
		Do:   "look at what changes there without end: inofctl show event on that device; a device with tens of thousands of hosts may need more",
		Find: func(f *Facts) (list []string) {
			for i := range f.Peers {
				if p := &f.Peers[i]; p.SlowedSince != nil && f.Now.Sub(*p.SlowedSince) >= slowedShown {
					list = append(list, fmt.Sprintf("device %s (%s) has sent more records than it may for %s and is slowed down",
						p.Device, p.Address, f.Now.Sub(*p.SlowedSince).Round(time.Second)))
				}
			}
			return list
		},
	},
	{
		Name: "messages-wait",
		When: "a message of another device has waited for a second to be handled",
		Do:   "see whether the processor is overloaded: counters.inbox of inofctl show status -o json",
		Find: func(f *Facts) []string {
			if f.Waits < waitsShown {
				return nil
			}
			return []string{fmt.Sprintf("a message of device %s has waited for %s to be handled", f.WaitsOf, f.Waits.Round(time.Millisecond))}
		},
	},
}
