package device

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/internal/api"
)

// agreement is what operators were told of reflectors that differ.
type agreement struct {
	due  time.Time // when a difference that began counts as one
	told bool
}

// agreementQuiet is how long reflectors may differ before that is an event: a change
// of zones does not reach all of them at once.
const agreementQuiet = 5 * time.Second

// watchAgreement follows whether the reflectors differ; one event tells the begin,
// one the end.
func (c *Core) watchAgreement(now time.Time) {
	g := &c.agreement
	switch differ := c.client.Differs(); {
	case differ && !g.told && g.due.IsZero():
		g.due = now.Add(agreementQuiet)
	case !differ && g.told:
		g.told = false
		c.event(api.Event{Time: now, Kind: "zone", Text: "the reflectors agree about all zones again",
			Fields: map[string]string{"change": "consistent"}})
	case !differ:
		g.due = time.Time{}
	}
}

// tickAgreement tells operators of reflectors that have differed for a while.
func (c *Core) tickAgreement(now time.Time) {
	g := &c.agreement
	if g.due.IsZero() || now.Before(g.due) {
		return
	}
	g.due, g.told = time.Time{}, true
	names := c.client.Differing()
	effect := "what not all of them say is not in force"
	if c.cfg.Agreement == client.AgreeUnion {
		effect = "what one of them says is in force"
	}
	first := names
	if len(first) > 3 {
		first = first[:3]
	}
	c.event(api.Event{Time: now, Kind: "zone", Fields: map[string]string{"change": "inconsistent", "zones": strconv.Itoa(len(names))},
		Text: fmt.Sprintf("the reflectors differ about %d zone(s), such as %s: %s; see show zone --inconsistent", len(names), strings.Join(first, ", "), effect)})
}

// ResumePoint is what was seen of a reflector, or of a client of ours.
func (c *Core) ResumePoint(dev netip.Addr, client bool) *wire.Resume {
	switch {
	case client && c.refl != nil:
		return c.refl.ResumePoint(dev)
	case !client && c.client != nil:
		return c.client.ResumePoint(dev)
	}
	return nil
}

// syncWith tells how the present session with a reflector began, what it sent.
func (c *Core) syncWith(reflector netip.Addr) string {
	in, _ := c.client.Sessions(reflector)
	return in.String()
}

// PeerSync says of a session how either direction began.
func (c *Core) PeerSync(p *api.Peer) {
	var in, out wire.ResumeKind
	switch {
	case p.State != api.PeerEstablished:
	case p.Role == "reflector" && c.client != nil:
		in, out = c.client.Sessions(p.Device)
	case p.Role == "client" && c.refl != nil:
		in, out = c.refl.Sessions(p.Device)
	}
	p.SyncIn, p.SyncOut, p.SyncOutWhy = in.String(), out.String(), out.Why
}

// zoneWords lists what each reflector says of a zone, where they differ.
func (c *Core) zoneWords(z *api.Zone) {
	if c.client == nil {
		return
	}
	words, differs := c.client.ZoneWords(z.Name)
	z.Inconsistent = differs
	if !differs {
		return
	}
	for _, w := range words {
		said := api.ZoneWord{Reflector: w.Reflector, Said: w.Said, Members: []string{}}
		for _, m := range w.Members {
			said.Members = append(said.Members, m.String())
		}
		z.Words = append(z.Words, said)
	}
}

// zoneSources names the reflectors that say a zone.
func (c *Core) zoneSources(name string) string {
	words, _ := c.client.ZoneWords(name)
	var ids []netip.Addr
	for _, w := range words {
		if w.Said {
			ids = append(ids, w.Reflector)
		}
	}
	return c.names(ids)
}

func (c *Core) names(ids []netip.Addr) string {
	switch {
	case len(ids) > 0:
	case c.client != nil && c.client.Recalling():
		return api.LearnedLast
	default:
		return c.reflectorName()
	}
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = id.String()
	}
	return strings.Join(parts, ",")
}
