package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The names of rules whose warnings events raise.
const (
	FramesDropped = "frames-dropped"
	RowsChanged   = "hard-zoning-undone"
)

// deviceRules are about this device alone.
var deviceRules = []Rule{
	{
		Name: "not-synchronized",
		When: "the device has not heard all that a reflector knows since it was started",
		Do:   "see the sessions: inofctl show peer",
		Find: func(f *Facts) []string {
			if f.LastSync != nil {
				return when(true, "not synchronized with a reflector since %s: what was known then decides; hosts are notified of losses, and not that a host is active", f.LastSync.Format(time.DateTime))
			}
			return when(!f.Synced, "not synchronized with a reflector since the start: what the hosts were told before stays in force")
		},
	},
	{
		Name: "observing",
		When: "the device observes (`mode: observe`, or halted): it decides and records, and notifies no host, shuts no port, blocks nothing",
		Do:   "when what it records is right: mode: act and a reload, or inofctl resume (--fabric at the reflector that was halted)",
		Find: func(f *Facts) []string {
			return when(f.Mode.Observes || f.Mode.Fabric != nil, "%s", f.Mode)
		},
	},
	{
		Name: "hosts-silent",
		When: "a local host was told something and has acked nothing for three seconds",
		Do:   "see that its agent runs; if all hosts of a port are silent, look for lost frames there: inofctl show notice --host ADDRESS, inofctl show port NAME",
		Find: silentHosts,
	},
	{
		Name:   FramesDropped,
		When:   "the kernel dropped control frames of a port, LLDP or acks, because they came faster than they were read",
		Do:     "look for a host that floods the port: inofctl show lldp --port NAME, and whether the processor is overloaded",
		Memory: 10 * time.Minute,
	},
	{
		Name: "reload-failed",
		When: "a configuration was read again and was refused, or could not be used, or not all of it",
		Do:   "correct the file (inofctl check FILE says what is wrong) and reload",
		Find: func(f *Facts) []string { return when(f.Reload != "", "%s", f.Reload) },
	},
	{
		Name: "port-removed",
		When: "the configuration does not name a port any more that has hosts; until the time that is said they stay what they are",
		Do:   "name the port in ports.access again and reload, or move the hosts before that time",
		Find: removedPorts,
	},
	{
		Name: "port-unconfirmed",
		When: "a port was shut or opened by error-down, and the switch has not confirmed it",
		Do:   "on SONiC see that orchagent and portmgrd run, and show interfaces status; until it is confirmed the port's hosts may still send",
		Find: func(f *Facts) (list []string) {
			for _, d := range f.Doubts {
				if d.Port == "" {
					continue
				}
				what := "shut"
				if d.Up {
					what = "opened"
				}
				text := fmt.Sprintf("port %s was to be %s %s ago, and the switch does not confirm it", d.Port, what, f.Now.Sub(d.Since).Round(time.Second))
				if d.Err != nil {
					text += ": " + d.Err.Error()
				}
				list = append(list, text)
			}
			return list
		},
	},
	{
		Name: "switch-not-programmed",
		When: "a program that brings the configuration of a SONiC switch into its ASIC does not run",
		Do:   "look at the containers swss and syncd: docker ps, show system-health",
		Find: func(f *Facts) (list []string) {
			for _, d := range f.Doubts {
				if d.Program != "" {
					list = append(list, fmt.Sprintf("%s does not run: %s", d.Program, d.Without))
				}
			}
			return list
		},
	},
	{
		Name: "cause-blind",
		When: "a cause of error-down is on for a port, and what it needs has not been read there for ten seconds",
		Do:   "see ports.counters, and on SONiC that counters and the PFC watchdog are on: counterpoll show, show pfcwd config; or set the action of the cause to none there",
		Find: func(f *Facts) (list []string) {
			for _, cause := range slices.Sorted(maps.Keys(f.Blind)) {
				ports := f.Blind[cause]
				text := strings.Join(ports[:min(len(ports), mostNamed)], ", ")
				if more := len(ports) - mostNamed; more > 0 {
					text += fmt.Sprintf(" and %d more", more)
				}
				list = append(list, fmt.Sprintf("%s is on and cannot see anything on port %s", cause, text))
			}
			return list
		},
	},
	{
		Name: "port-drained",
		When: "a port is drained by an operator: its hosts use other paths, or none",
		Do:   "when the work is done: inofctl drain PORT --undo",
		Find: func(f *Facts) (list []string) {
			for _, p := range f.Drained {
				what := "is being drained"
				if p.Closed {
					what = "is drained and shut"
				}
				list = append(list, fmt.Sprintf("port %s %s, since %s", p.Port, what, p.Since.Format(time.RFC3339)))
			}
			return list
		},
	},
	{
		Name: "port-unknown",
		When: "an entry of ports.access names no port that there is",
		Do:   "correct it and reload; inofd check FILE lists the ports of the switch",
		Find: func(f *Facts) []string {
			return when(len(f.IdleNames) > 0, "ports.access: %s: no such port here", strings.Join(f.IdleNames, ", "))
		},
	},
	{
		Name: "zones-not-in-force",
		When: "the zone file is not in force",
		Do:   "correct it (inofctl check FILE) and reload; until then the last good zones count",
		Find: func(f *Facts) []string { return when(f.Zones != "", "%s", f.Zones) },
	},
	{
		Name: "cluster-apart",
		When: "this member of a cluster takes no part in it, or reaches no majority of it",
		Do:   "see inofctl show cluster: have the members that are missing there run and be reached; one that has lost its state is replaced at another one (inofctl cluster replace)",
		Find: func(f *Facts) []string { return when(f.Cluster != "", "%s", f.Cluster) },
	},
	{
		Name: "state-not-saved",
		When: "the state file cannot be written",
		Do:   "make room in the state directory, or make it writable",
		Find: func(f *Facts) []string { return f.State },
	},
	{
		Name: "own-certificate",
		When: "a certificate of this device expires within 30 days, or has",
		Do:   "renew it; it is read again by itself",
		Find: func(f *Facts) []string { return f.Certificates },
	},
	{
		Name: "hard-zoning-abnormal",
		When: "zones are to be enforced, and this device does not, or not as it should",
		Do:   "see inofctl hard-zoning show; until it is mended hosts may reach others than those of their zones, or not reach some of them",
		Find: func(f *Facts) []string { return f.HardZoning },
	},
	{
		Name: "hard-zoning-suspended",
		When: "an operator has suspended the enforcement of zones on this device",
		Do:   "when the emergency is over: inofctl hard-zoning on",
		Find: func(f *Facts) []string {
			return when(f.HardSuspended, "hard zoning is suspended: this device lets everything pass")
		},
	},
	{
		Name: "port-not-guarded",
		When: "LLDP and SNSD frames that hosts send may pass to other hosts at the ports named",
		Do:   "the text has the reason: most often rights (CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN) or a kernel before 6.1; until it is mended a host can pose as the switch of a host without our agent (docs/security.md, who may speak to a host)",
		Find: func(f *Facts) []string { return f.PortGuard },
	},
	{
		Name:   RowsChanged,
		When:   "rows of hard zoning were deleted or changed by somebody else, and have been put back",
		Do:     "find out by whom: on SONiC config reload and config acl do so; until they were back zones were open or closed wrongly",
		Memory: 10 * time.Minute,
	},
	{
		Name: "fence-abnormal",
		When: "the dataplane that blocks copies of writes cannot be opened, or did not begin or lift a block",
		Do:   "see inofctl show fence and show counters fence_dataplane; until it is mended agents hear not fenced, and leave later or not",
		Find: func(f *Facts) []string { return when(f.Fence != "", "%s", f.Fence) },
	},
	{
		Name: "secret-exposed",
		When: "everybody on the switch may read a file with a password or key",
		Do:   "take the permission away, and change the secret if others use the switch",
		Find: func(f *Facts) []string { return f.Exposed },
	},
	{
		Name: "events-not-logged",
		When: "events came faster than the log takes them",
		Do:   "see which come most: inofctl show event; the journal's rate limit may be too low",
		Find: func(f *Facts) []string {
			return when(f.EventsNotLogged > 0, "%d event(s) did not get into the log", f.EventsNotLogged)
		},
	},
	{
		Name: "syslog-unreachable",
		When: "a server of log.syslog is not reached, or refuses",
		Do:   "see that it runs and takes what this device sends; events wait in the event log meanwhile, as many as management.events says",
		Find: func(f *Facts) []string { return f.Syslog },
	},
	{
		Name: "descriptors-short",
		When: "a connection from a network was closed in the last ten minutes because the process has no more descriptors for it",
		Do:   "raise LimitNOFILE of the unit, or the container's ulimit; inofctl show peer says who is connected",
		Find: func(f *Facts) []string {
			return when(f.NoDescriptors > 0, "%d connection(s) were closed for want of descriptors", f.NoDescriptors)
		},
	},
	{
		Name: "listener-failed",
		When: "management.http, management.gnmi or management.netconf cannot be opened",
		Do:   "see which process has the port (ss -ltnp), and give this device another one or another address; it tries again every 5 s",
		Find: func(f *Facts) []string { return f.Listeners },
	},
}

func removedPorts(f *Facts) []string {
	return most(f.Removed, "%d more ports with hosts were removed from the configuration", func(p *RemovedPort) string {
		return fmt.Sprintf("port %s was removed from the configuration: its %d host address(es) count as gone at %s", p.Port, p.Hosts, p.ToldAt.Format(time.RFC3339))
	})
}

// SilentAfter is how long a host may leave everything unacked before that is a warning: an
// agent acks at once.
const SilentAfter = 3 * time.Second

func silentHosts(f *Facts) []string {
	return most(f.Silent, "%d more hosts leave their notices unacked", func(s *Silent) string {
		return fmt.Sprintf("host %s on port %s leaves %d notice(s) unacked, for %s now", s.Host, s.Port, s.Notices, f.Now.Sub(s.Since).Round(time.Second))
	})
}
