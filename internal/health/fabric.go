package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openinof/inof/bfd"
	"github.com/openinof/inof/internal/api"
)

// fabricRules are about hosts and paths of the fabric.
var fabricRules = []Rule{
	{
		Name: "address-conflict",
		When: "two hosts claim one address",
		Do:   "give one of them another address: inofctl show host says where both are",
		Find: func(f *Facts) []string {
			return when(f.Counts.Conflicts > 0, "%d address(es) are claimed by two hosts", f.Counts.Conflicts)
		},
	},
	{
		Name: "declared-misplaced",
		When: "a declared host answers on a port that its declaration does not name, and on none that it names: it is refused there",
		Do:   "move the cable to a port that is named, or name this one (hosts.bindings, reflector.hosts) and reload",
		Find: func(f *Facts) []string {
			stray := slices.DeleteFunc(slices.Clone(f.Declared), func(d Declared) bool { return d.Stray == "" })
			return most(stray, "%d more declared hosts answer on ports that are not named", func(d *Declared) string {
				return fmt.Sprintf("declared host %s answers on port %s, and may be on %s only", d.Host, d.Stray, d.Ports)
			})
		},
	},
	{
		Name: "declared-twice",
		When: "a declared host answers on two of its ports at once: it stays on the first one",
		Do:   "name one of the ports only, or see which machine has the address by mistake: inofctl show host ADDRESS",
		Find: func(f *Facts) []string {
			twice := slices.DeleteFunc(slices.Clone(f.Declared), func(d Declared) bool { return d.Second == "" })
			return most(twice, "%d more declared hosts answer on two ports", func(d *Declared) string {
				return fmt.Sprintf("declared host %s answers on ports %s and %s: it is on %s", d.Host, d.First, d.Second, d.First)
			})
		},
	},
	{
		Name: "path-down",
		When: "the path to a device fails: this device's hosts were told that those behind it cannot be reached",
		Do:   "look at the links and routes between the device ids: inofctl show bfd DEVICE",
		Find: paths("the path to %s fails: its hosts count as unreachable",
			func(f *Facts, s *api.BFDSession) bool { return s.Fault }),
	},
	{
		Name: "path-never-up",
		When: "the path to a device has not been seen to work for ten seconds since it is watched",
		Do:   "is UDP port 4784 open, is BFD on there, is there a route between the device ids?",
		Find: paths("the path to %s has never been seen to work: it is not watched", func(f *Facts, s *api.BFDSession) bool {
			return !s.Fault && !s.Keyless && s.Report == bfd.ReportUnknown.String() && s.Since != nil && f.Now.Sub(*s.Since) > slowUp
		}),
	},
	{
		Name: "path-keyless",
		When: "no reflector has handed out a key for the path to a device for ten seconds since it is watched",
		Do:   "inofctl show peer: is there a session with a reflector? For a device of another make write bfd.plain-peers",
		Find: paths("the path to %s is not watched: no reflector has handed out a key", func(f *Facts, s *api.BFDSession) bool {
			return s.Keyless && s.Since != nil && f.Now.Sub(*s.Since) > slowUp
		}),
	},
	{
		Name: "path-held-down",
		When: "the other device holds the BFD session down (bfd.enabled is false there)",
		Do:   "set bfd.enabled there to watch the path",
		Find: paths("the path to %s is not watched: the other device holds the session down", func(f *Facts, s *api.BFDSession) bool {
			return !s.Fault && s.Report == bfd.ReportAdminDown.String() && !f.Paths.Off
		}),
	},
	{
		Name: "bfd-off",
		When: "bfd.enabled is false on this device, and its reflectors ask for it",
		Do:   "set bfd.enabled to watch the paths to other devices",
		Find: func(f *Facts) []string {
			return when(f.Paths != nil && f.Paths.Off, "bfd.enabled is false on this device: paths to other devices are not watched")
		},
	},
	{
		Name: "bfd-process",
		When: "the process that watches the paths is not there, does not answer, cannot work, refuses sessions, or was lost in the last hour",
		Do:   "see its unit (systemctl status inofd-bfd) and its log",
		Find: bfdProcess,
	},
	{
		Name: "bfd-port-contested",
		When: "another process takes datagrams of BFD from this one, or has multihop sessions from the device id itself, which come to this one",
		Do:   "give the multihop sessions of the other process (bfdd of FRR) another local-address than the device id, or set bfd.enabled to false here",
		Find: bfdContested,
	},
}

const (
	// lostShown is how long the loss of the BFD process is worth a warning.
	lostShown = time.Hour
	// slowUp is how long a session may need to come up before it is worth a warning.
	slowUp = 10 * time.Second
	// strayShown is how long ago the last stray packet may have come.
	strayShown = 10 * time.Second
)

// paths finds sessions in one state; one text names them all.
func paths(text string, is func(*Facts, *api.BFDSession) bool) func(*Facts) []string {
	return func(f *Facts) []string {
		if f.Paths == nil {
			return nil
		}
		var devices []string
		for i := range f.Paths.Sessions {
			if s := &f.Paths.Sessions[i]; !s.Retiring && is(f, s) {
				devices = append(devices, s.Device.String())
			}
		}
		return when(len(devices) > 0, text, someOf(devices))
	}
}

// someOf names up to three and counts the rest.
func someOf(list []string) string {
	if len(list) <= 3 {
		return "device " + strings.Join(list, ", ")
	}
	return fmt.Sprintf("device %s and %d more", strings.Join(list[:3], ", "), len(list)-3)
}

func bfdProcess(f *Facts) (list []string) {
	if f.Paths == nil {
		return nil
	}
	p := &f.Paths.Process
	switch {
	case f.Paths.Off:
	case p.Needed && !p.Connected && f.Now.Sub(p.Since) > time.Second:
		list = append(list, fmt.Sprintf("no BFD process: paths to other devices are not watched: %s", p.LastError))
	case p.Connected && p.Started == nil: // it did not answer
		list = append(list, fmt.Sprintf("BFD process %d: %s", p.PID, p.LastError))
	case p.Failure != "":
		list = append(list, fmt.Sprintf("BFD process %d cannot work, paths to other devices are not watched: %s", p.PID, p.Failure))
	}
	if at := f.Paths.LastLost; !at.IsZero() && f.Now.Sub(at) < lostShown {
		list = append(list, fmt.Sprintf("the BFD process was lost %d time(s) since the daemon was started, the last time at %s", f.Paths.Lost, at.Format(time.DateTime)))
	}
	if p.Refused != "" {
		list = append(list, "BFD sessions were refused: "+p.Refused)
	}
	return list
}

// bfdContested is about UDP port 4784 of the device id. That another process is bound to all
// addresses does no harm by itself: it does not get what is sent to the device id.
func bfdContested(f *Facts) (list []string) {
	if f.Paths == nil {
		return nil
	}
	p := &f.Paths.Process
	var beside []string
	for _, h := range p.Holders {
		if h.Address == f.Paths.Device {
			list = append(list, fmt.Sprintf("%s has bound UDP port 4784 of the device id %s too: packets of BFD may not reach this device's sessions", h.Owner, h.Address))
		} else if h.Address.IsUnspecified() && h.Address.Is4() == f.Paths.Device.Is4() {
			beside = append(beside, h.Owner)
		}
	}
	if s := p.Stray; s != nil && len(beside) > 0 && s.Last.Sub(s.Since) >= slowUp && f.Now.Sub(s.Last) < strayShown {
		list = append(list, fmt.Sprintf("packets of BFD from %s to the device id %s are for no session of this device, since %s: %s has a multihop session with this local address, which does not get them",
			s.From, f.Paths.Device, s.Since.Format(time.DateTime), strings.Join(beside, ", ")))
	}
	return list
}
