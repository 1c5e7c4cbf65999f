package health

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

const (
	// slowedShown is how long a device must have been held up to be worth a warning: a sync
	// of many hosts may be longer than a burst.
	slowedShown = 5 * time.Second
	// waitsShown is how long a message may wait to be handled without a warning.
	waitsShown = time.Second
	// restsShown is how long one of a device may that rests: longer than a burst takes.
	restsShown = 5 * time.Second
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
		Name: "hosts-refused",
		When: "a reflector has no room for hosts of a device: nobody else hears of them",
		Do:   "find out why that device has so many hosts: inofctl show host; if it is right, raise reflector.max-hosts-per-device and restart",
		Find: func(f *Facts) []string {
			short := slices.DeleteFunc(slices.Clone(f.Refused), func(r Refused) bool { return r.Hosts == 0 })
			return most(short, "hosts of %d more devices are refused", func(r *Refused) string {
				if r.Own {
					return fmt.Sprintf("reflector %s refuses %d host(s) of this device, limit %d", r.Device, r.Hosts, r.Limit)
				}
				return fmt.Sprintf("%d host(s) of device %s are refused, limit %d", r.Hosts, r.Device, r.Limit)
			})
		},
	},
	{
		Name: "host-outside",
		When: "a device says a host that reflector.clients does not allow it: an address or NQN that is not its own, or the binding is too narrow",
		Do:   "see who is there: inofctl show host ADDRESS, inofctl show lldp on that device; if the host is right, widen the binding and reload",
		Find: func(f *Facts) []string {
			outside := slices.DeleteFunc(slices.Clone(f.Refused), func(r Refused) bool { return r.Outside == 0 })
			return most(outside, "hosts of %d more devices are outside of their bindings", func(r *Refused) string {
				if r.Own {
					return fmt.Sprintf("reflector %s refuses %d host(s) of this device, which it binds to others: %s", r.Device, r.Outside, named(r.Named, r.Outside))
				}
				return fmt.Sprintf("%d host(s) of device %s are outside of its binding and refused: %s", r.Outside, r.Device, named(r.Named, r.Outside))
			})
		},
	},
	{
		Name: "messages-wait",
		When: "a message of another device has waited for a second to be handled",
		Do:   "see whether the processor is overloaded: counters.inbox of inofctl show status -o json",
		Find: func(f *Facts) []string {
			return when(f.Waits >= waitsShown, "a message of device %s has waited for %s to be handled", f.WaitsOf, f.Waits.Round(time.Millisecond))
		},
	},
	{
		Name: "messages-rest",
		When: "a message of a device has waited for five seconds because the device has said more than it may; others do not wait for it, nor do its losses",
		Do:   "see what changes there: inofctl show event on that device; if it is right, raise reflector.records-per-second and reflector.records-burst and reload",
		Find: func(f *Facts) []string {
			return when(f.Rests >= restsShown, "a message of device %s has waited for %s, for it has said more than it may", f.RestsOf, f.Rests.Round(time.Millisecond))
		},
	},
}

// named lists a few of all addresses.
func named(list []netip.Addr, all int) string {
	var names []string
	for _, a := range list[:min(len(list), mostNamed)] {
		names = append(names, a.String())
	}
	text := strings.Join(names, ", ")
	if more := all - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
