package health

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/snsd"
)

// Explain gives the verdict on two hosts from what is known of them: the first thing that
// keeps them from each other, or that nothing does.
func Explain(w *api.Why) {
	defer notInStep(w)
	for _, find := range []func(*api.Why) (verdict, do string){notKnown, noZone, unreachable, notTold} {
		if w.Verdict, w.Do = find(w); w.Verdict != "" {
			w.Good = false
			return
		}
	}
	w.Good = true
	a, b := w.Hosts[0].Addr, w.Hosts[1].Addr
	w.Verdict = fmt.Sprintf("%s and %s share %s and can be reached", a, b, zonesText(w.Shared))
	if len(w.Told) == 0 {
		w.Do = "what they were told, only the devices they are attached to know: ask " + strings.Join(devicesOf(w), " or ")
		return
	}
	for i := range w.Told {
		if by := toldBy(w, &w.Told[i]); by.IsValid() {
			w.Verdict += fmt.Sprintf("; %s is told by device %s: its port here is down", w.Told[i].Host, by)
			continue
		}
		w.Verdict += fmt.Sprintf("; %s was told so and has acked", w.Told[i].Host)
	}
}

// notInStep says of a device that no reflector has answered since its start by what it decides. Its
// zones are those of then: nobody is to change any because of what it says.
func notInStep(w *api.Why) {
	if w.LastSync == nil {
		return
	}
	w.Verdict += "; not synchronized since " + w.LastSync.Format(time.DateTime) + ", deciding by what was known then: a loss is told, that a host is active again is not"
	sessions := "see the sessions: inofctl show peer"
	if w.Good = false; w.Do != "" {
		sessions = w.Do + "; " + sessions
	}
	w.Do = sessions
}

// toldBy is the other device that tells a host which has no port here over which it can be told
// and one there, as a host with a bond over two switches does.
func toldBy(w *api.Why, t *api.Told) netip.Addr {
	if t.Usable {
		return netip.Addr{}
	}
	h := &w.Hosts[0]
	if h.Addr != t.Host {
		h = &w.Hosts[1]
	}
	for _, at := range h.Attachments {
		faulty := slices.ContainsFunc(h.Faults, func(f api.WhyFault) bool { return f.Device == at.Device && f.Port == at.Port })
		if at.Device != w.Device && !at.Conflict && !faulty {
			return at.Device
		}
	}
	return netip.Addr{}
}

func notKnown(w *api.Why) (verdict, do string) {
	var missing []string
	for _, h := range w.Hosts {
		if len(h.Attachments) == 0 {
			missing = append(missing, h.Addr.String())
		}
	}
	if len(missing) == 0 {
		return "", ""
	}
	names := strings.Join(missing, " and ")
	switch {
	case w.Everything:
		return names + " is not known in the fabric", "no device has heard LLDP with that address: inofctl show lldp on its switch, and see that the host's agent runs"
	case w.LastSync != nil:
		return names + " was not known here", ""
	case !w.Synced:
		return names + " is not known here, and the device is not synchronized with a reflector", "see the sessions: inofctl show peer"
	}
	return names + " is not known here: no device has it, or it shares no zone with a host of this device", "ask a reflector, which knows all hosts: inofctl why there"
}

func noZone(w *api.Why) (verdict, do string) {
	if len(w.Shared) > 0 {
		return "", ""
	}
	a, b := &w.Hosts[0], &w.Hosts[1]
	if w.LastSync == nil { // else they may share one by now
		do = "on the reflector: inofctl zone member add ZONE ADDRESS"
	}
	return fmt.Sprintf("%s and %s share no zone: the one is in %s, the other in %s", a.Addr, b.Addr, zonesText(a.Attachments[0].Zones), zonesText(b.Attachments[0].Zones)), do
}

func zonesText(names []string) string {
	switch {
	case len(names) == 0:
		return "no zone"
	case len(names) == 1:
		return "zone " + names[0]
	case len(names) > 3:
		return fmt.Sprintf("zones %s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return "zones " + strings.Join(names, ", ")
}

// unreachable is about faults, with what the other was told of them.
func unreachable(w *api.Why) (verdict, do string) {
	for i := range w.Hosts {
		h := &w.Hosts[i]
		if h.Attachments[0].State == snsd.Active {
			continue
		}
		verdict = fmt.Sprintf("%s cannot be reached: %s", h.Addr, h.Attachments[0].Reason)
		do = "see the device it is attached to: " + strings.Join(devicesOf(w), ", ")
		if len(h.Faults) > 0 {
			verdict = fmt.Sprintf("%s cannot be reached: %s", h.Addr, FaultText(&h.Faults[0]))
			if f := &h.Faults[0]; f.Port == "" {
				do = fmt.Sprintf("look at the links and routes to device %s: inofctl show bfd %s", f.Device, f.Device)
			} else {
				do = fmt.Sprintf("on device %s: inofctl show error-down --port %s, inofctl show port %s", f.Device, f.Port, f.Port)
			}
		}
		for _, t := range w.Told {
			if t.Subject == h.Addr {
				verdict += "; " + ToldText(&t)
			}
		}
		return verdict, do
	}
	return "", ""
}

// FaultText says what a fault is, where, and since when.
func FaultText(f *api.WhyFault) string {
	text := fmt.Sprintf("%s on device %s port %s", f.Reason, f.Device, f.Port)
	if f.Port == "" {
		text = fmt.Sprintf("%s: the path to device %s fails", f.Reason, f.Device)
	}
	if f.Since != nil {
		text += " since " + f.Since.Format(time.DateTime)
	}
	return text
}

// ToldText says what a host was told, and whether it has acked.
func ToldText(t *api.Told) string {
	switch {
	case !t.Subscribes:
		return fmt.Sprintf("%s has asked for no notices", t.Host)
	case !t.Said:
		return fmt.Sprintf("%s was told nothing of %s", t.Host, t.Subject)
	case t.Waiting:
		return fmt.Sprintf("%s was told that %s is %s, and something newer is about to be sent", t.Host, t.Subject, stateText(t))
	case !t.Acked:
		return fmt.Sprintf("%s was told that %s is %s, %d time(s), and has not acked", t.Host, t.Subject, stateText(t), t.Retries+1)
	}
	return fmt.Sprintf("%s was told that %s is %s, and has acked", t.Host, t.Subject, stateText(t))
}

func stateText(t *api.Told) string {
	if t.State == snsd.Active {
		return t.State.String()
	}
	return fmt.Sprintf("%s (%s)", t.State, t.Reason)
}

// notTold is about hosts that can be reached, and of which one does not know it.
func notTold(w *api.Why) (verdict, do string) {
	for i := range w.Told {
		t := &w.Told[i]
		first := fmt.Sprintf("%s and %s share %s and can be reached, but ", w.Hosts[0].Addr, w.Hosts[1].Addr, zonesText(w.Shared))
		switch {
		case toldBy(w, t).IsValid():
		case !t.Subscribes:
			return first + ToldText(t), "its agent must ask for them in its LLDP (notice TLV); without it the host goes by itself"
		case !t.Usable:
			return first + fmt.Sprintf("%s has no port over which it can be told: its cable is out", t.Host), "it is told as soon as its port is up: inofctl show port"
		case !t.Said && !w.Hosts[0].Attachments[0].Role.Meets(w.Hosts[1].Attachments[0].Role):
			return first + fmt.Sprintf("hosts of one role (%s) are told nothing of each other", w.Hosts[0].Attachments[0].Role), "give one of them another role if that is wrong"
		case !t.Said && !w.Synced:
			return first + ToldText(t) + ": the device is not synchronized with a reflector", "see the sessions: inofctl show peer"
		case !t.Said || t.Waiting, t.Said && t.State != snsd.Active:
			return first + ToldText(t), "if that stays so, look at the notices: inofctl show notice --host " + t.Host.String()
		case !t.Acked:
			return first + ToldText(t), "see that its agent runs, and for lost frames on its port: inofctl show notice --host " + t.Host.String()
		}
	}
	return "", ""
}

// devicesOf names the devices that the two are attached to, this one excepted.
func devicesOf(w *api.Why) (list []string) {
	for i := range w.Hosts {
		for _, h := range w.Hosts[i].Attachments {
			if h.Device != w.Device && h.Device != (netip.Addr{}) {
				list = append(list, h.Device.String())
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
