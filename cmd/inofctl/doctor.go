package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/openinof/inof/internal/api"
	"github.com/openinof/inof/internal/query"
	"github.com/openinof/inof/snsd"
)

// advice is one thing that doctor has looked at.
type advice struct {
	Level string `json:"level"` // ok, none (there is nothing to check), hint or bad
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
}

// Bounds of what doctor takes for good.
const (
	clockHint   = time.Millisecond
	certHint    = 30 * 24 * time.Hour
	mostAdvices = 20 // of one kind
)

func (a *app) doctorCmd() *cobra.Command {
	return &cobra.Command{Use: "doctor", Short: "Look for what stands in the way of a fast fail-over here, and say what would help; exits with 3 when there is something bad", Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd, func(ctx context.Context, cl *api.Client) error {
				list, err := diagnose(ctx, cl, a.now())
				if err != nil {
					return err
				}
				if err := a.print(list, func(w io.Writer) {
					for _, x := range list {
						fmt.Fprintf(w, "%-4s %s\n", x.Level, query.Printable(x.What))
						if x.Do != "" {
							fmt.Fprintf(w, "     do: %s\n", query.Printable(x.Do))
						}
					}
				}); err != nil {
					return err
				}
				if slices.ContainsFunc(list, func(x advice) bool { return x.Level == "bad" }) {
					return finding{errors.New("something is bad")}
				}
				return nil
			})
		}}
}

// checkup is what one look at a device finds.
type checkup struct {
	list []advice
	now  time.Time
}

func (c *checkup) say(level, do, format string, args ...any) {
	c.list = append(c.list, advice{level, fmt.Sprintf(format, args...), do})
}

// nothing says that there is nothing to check, and why: that is not good, it is not known.
func (c *checkup) nothing(why string) { c.say("none", "", "nothing to check: %s", why) }

// several says what was found of one kind among so many things, the first of it; or that nothing was,
// or that there are no such things.
func (c *checkup) several(among int, none, level, do, good string, found []string) {
	if among == 0 {
		c.nothing(none)
		return
	}
	if len(found) == 0 {
		c.say("ok", "", "%s", good)
		return
	}
	for _, f := range found[:min(len(found), mostAdvices)] {
		c.say(level, do, "%s", f)
	}
	if more := len(found) - mostAdvices; more > 0 {
		c.say(level, do, "and %d more like it", more)
	}
}

// diagnose asks a daemon for what may be wrong. What a device does not have (zones, a cluster) is
// no finding.
func diagnose(ctx context.Context, cl *api.Client, now time.Time) ([]advice, error) {
	c := &checkup{now: now}
	st, err := api.Ask[api.Status](ctx, cl, "status", nil)
	if err != nil {
		return nil, err
	}
	var warned []string
	for _, w := range st.Warnings {
		c.say("bad", w.Do, "%s", w.Text)
		warned = append(warned, w.Text)
	}
	if len(warned) == 0 {
		c.say("ok", "", "device %s warns of nothing", st.Device)
	}
	c.carrier(st.Carrier)
	c.memory(st.Memory)
	for _, look := range []func(context.Context, *api.Client) error{c.clocks, c.sessions, c.ports, c.hosts, c.notices, c.zones, c.records} {
		if err := look(ctx, cl); err != nil {
			return nil, err
		}
	}
	return c.list, nil
}

// carrier looks at how soon a loss of carrier is heard.
func (c *checkup) carrier(s *api.CarrierSource) {
	switch {
	case s == nil:
	case s.Early():
		c.say("ok", "", "losses of carrier are %s", s.Heard())
	default:
		c.say("hint", "see \"Losses of carrier\" of docs/operations.md for what the kernel and the rights of the daemon must allow", "losses of carrier are %s", s.Heard())
	}
}

// memory looks at the limit of the daemon's control group.
func (c *checkup) memory(m *api.Memory) {
	switch {
	case m == nil:
	case m.Limit == 0:
		c.say("ok", "", "the daemon's memory has no limit; the least for this configuration is %d MiB", m.Least>>20)
	case m.Limit < m.Least:
		c.say("bad", "raise the limit of its unit or container", "the daemon may take %d MiB of memory (%s); the least for this configuration is %d MiB", m.Limit>>20, m.File, m.Least>>20)
	default:
		c.say("ok", "", "the daemon may take %d MiB of memory; the least for this configuration is %d MiB", m.Limit>>20, m.Least>>20)
	}
}

func (c *checkup) clocks(ctx context.Context, cl *api.Client) error {
	l, err := api.Ask[api.Latency](ctx, cl, "latency", nil)
	if err != nil {
		return err
	}
	var off []string
	for _, k := range l.Clocks {
		if d := time.Duration(k.Ahead * float64(time.Microsecond)).Abs(); d > clockHint {
			off = append(off, fmt.Sprintf("the clock of reflector %s differs by %s: times of notices are wrong by that", k.Reflector, query.Human(d)))
		}
	}
	c.several(len(l.Clocks), "no clock of a reflector was measured", "hint", "keep the clocks with NTP or PTP", "the clocks of the reflectors agree with this one", off)
	return nil
}

func (c *checkup) sessions(ctx context.Context, cl *api.Client) error {
	peers, err := api.Ask[[]api.Peer](ctx, cl, "peers", nil)
	if err != nil {
		return err
	}
	var ending []string
	certificates := 0
	for _, p := range peers {
		if p.CertificateExpires != nil {
			certificates++
		}
		if p.CertificateExpires != nil && p.CertificateExpires.Sub(c.now) < certHint {
			ending = append(ending, fmt.Sprintf("the certificate of %s ends %s", p.Device, p.CertificateExpires.Format(time.DateOnly)))
		}
	}
	c.several(certificates, "no session has a certificate", "hint", "renew it (docs/operations.md, Certificates)", "no certificate of a session ends within 30 days", ending)
	return nil
}

func (c *checkup) ports(ctx context.Context, cl *api.Client) error {
	ports, err := api.Ask[[]api.Port](ctx, cl, "ports", nil)
	if err != nil {
		return err
	}
	var untold []string
	for _, p := range ports {
		if p.Counters == nil {
			untold = append(untold, fmt.Sprintf("port %s tells no counters: faults that need them (CRC, PFC) are not seen there", p.Name))
		}
	}
	c.several(len(ports), "this device has no access ports", "hint", "see ports.counters, and on SONiC that counters are on: counterpoll show", "all ports tell their counters", untold)
	return nil
}

// hosts looks for storage of one name that is behind one switch alone: when that fails, nothing is
// left.
func (c *checkup) hosts(ctx context.Context, cl *api.Client) error {
	hosts, err := api.Ask[[]api.Host](ctx, cl, "hosts", nil)
	if err != nil {
		return err
	}
	behind := map[string][]netip.Addr{}
	var names []string
	for _, h := range hosts {
		if h.NQN == "" || h.Role == snsd.RoleInitiator {
			continue
		}
		if _, known := behind[h.NQN]; !known {
			names = append(names, h.NQN)
			behind[h.NQN] = nil
		}
		if h.State == snsd.Active && !slices.Contains(behind[h.NQN], h.Device) {
			behind[h.NQN] = append(behind[h.NQN], h.Device)
		}
	}
	slices.Sort(names)
	var single []string
	for _, n := range names {
		switch len(behind[n]) {
		case 0:
			single = append(single, fmt.Sprintf("%s cannot be reached at any switch now", n))
		case 1:
			single = append(single, fmt.Sprintf("%s is behind switch %s alone, as far as is known here", n, behind[n][0]))
		}
	}
	c.several(len(names), "no target is known by name", "hint", "attach it to a second switch, or zone both", "every target that is known by name is behind two switches or more", single)
	return nil
}

func (c *checkup) notices(ctx context.Context, cl *api.Client) error {
	list, err := api.Ask[[]api.Notice](ctx, cl, "notices", nil)
	if err != nil {
		return err
	}
	silent := map[netip.Addr]int{}
	var order []netip.Addr
	for _, n := range list {
		if n.Status == api.NoticeGivenUp || n.Status == api.NoticeSent && n.Retries > 0 {
			if silent[n.Host] == 0 {
				order = append(order, n.Host)
			}
			silent[n.Host]++
		}
	}
	slices.SortFunc(order, netip.Addr.Compare)
	var found []string
	for _, h := range order {
		found = append(found, fmt.Sprintf("host %s has left %d notices without an ack", h, silent[h]))
	}
	c.several(len(list), "no host was told anything by this device", "hint", "inofctl test-notice HOST, and snsd doctor there", "every host has acked what it was told", found)
	return nil
}

func (c *checkup) zones(ctx context.Context, cl *api.Client) error {
	z, err := cl.Zoning(ctx)
	if errors.Is(err, api.ErrRefused) {
		return nil // a client
	}
	if err != nil {
		return err
	}
	if z.Version.Confirm != nil {
		c.say("hint", "inofctl zone confirm, or zone abort", "version %d of the zones waits for its confirmation until %s", z.Version.Number, z.Version.Confirm.Format(time.RFC3339))
	}
	r, err := api.CheckZones.Ask(ctx, cl, api.ZoneCandidate{Plan: z.Plan, Base: z.Version.Base})
	if err != nil {
		return err
	}
	among := 0
	if z.Plan != nil {
		among = len(z.Plan.Zones)
	}
	c.several(among+len(r.Warnings), "there are no zones", "hint", "inofctl zone edit", "every zone has hosts of both roles, and every member is known", r.Warnings)
	return nil
}

func (c *checkup) records(ctx context.Context, cl *api.Client) error {
	l, err := api.Ask[api.AuditList](ctx, cl, "audit", api.Where("limit", "1"))
	if err != nil {
		return err
	}
	if !l.Whole {
		c.say("bad", "compare with a copy that is kept elsewhere", "the record of what operators did was tampered with or damaged: %s", l.Trouble)
		return nil
	}
	if l.Records == 0 {
		c.nothing("no operator has changed anything yet")
		return nil
	}
	c.say("ok", "", "the %d records of what operators did are whole", l.Records)
	return nil
}
